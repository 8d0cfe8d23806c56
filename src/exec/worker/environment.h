/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a worker: from nothing, the user's, his session's, the run's, then the job's own, then who started it. */
#pragma once
#include "base/text.h"
#include "exec/proto/payload.h"
#include <stdint.h>

struct frame_start;
struct user;

struct environ_vars {
	struct strv owned;  /* those made here */
	char **envp;        /* owned array; its texts are borrowed from 'owned' and the payload */
	size_t n;
};

struct environ_source {
	const struct user *user;
	const struct payload *payload;
	const struct frame_start *start;
	const char *lang;    /* NULL: C.UTF-8 */
	const char *artifact; /* the directory of it; NULL: none */
	const char *spawner; /* its id */
	const struct strv *session; /* NAME=value of the user's session; NULL: none */
};
void environ_build(struct environ_vars *v, const struct environ_source *from);
void environ_vars_done(struct environ_vars *v);
const char *environ_get(const struct environ_vars *v, const char *name); /* NULL: not set */
