/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a worker: from nothing, ours first, then the plan's, then who started it. */
#pragma once
#include "base/text.h"
#include "exec/payload.h"
#include <stdint.h>

/* Looked up once per spawner. */
struct environ_base {
	struct strv vars;   /* HOME LOGNAME USER SHELL PATH LANG */
	char *home;         /* owned */
	char *spawner;      /* owned: JOBSCHED_SPAWNER=… */
};
void environ_base_init(struct environ_base *b, const char *spawner);
void environ_base_done(struct environ_base *b);

struct environ_vars {
	char **envp;        /* owned array; its texts are borrowed from base, payload and here */
	size_t n;
	char run[48], fence[48];
};
void environ_build(struct environ_vars *v, const struct environ_base *b, const struct payload *p,
	int64_t run, int64_t fence);
void environ_vars_done(struct environ_vars *v);
const char *environ_get(const struct environ_vars *v, const char *name); /* NULL: not set */
