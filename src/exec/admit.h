/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have workers: what the spawner itself believes, whatever the engine says. */
#pragma once
#include "core/plan.h"
#include "exec/user.h"
#include <stdbool.h>

struct err;
struct frame_start;
struct payload;
struct spawner_conf;

struct admission {
	const struct spawner_conf *conf; /* we are root and start workers as their owners; NULL: only our own */
	struct user self;                /* who we are */
};

/* Whether this start may be, and as whom. */
bool admit(const struct admission *a, const struct frame_start *s, const struct payload *p, struct user *ret,
	enum start_failure *why, struct err *e);
