/* SPDX-License-Identifier: Apache-2.0 */
/* Launches commands on a thread of its own: a slow disk or directory then holds up nothing but launches. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "exec/child.h"
#include "exec/environ.h"
#include "exec/payload.h"
#include <stdbool.h>

struct err;
struct launcher;

/* One launch; it moves to the thread and back with a message, so that nothing is ever shared. */
struct launch {
	struct payload payload;    /* owned, as is the next */
	struct environ_vars vars;
	struct child_plan plan;    /* borrows from both; its descriptors are set by the launcher */
	void *owner;
	int result;                /* of child_launch, as are the next two */
	struct child child;
	struct child_word word;
	usec_t started_at;
};
void launch_free(struct launch *one);
AUTO_DEFINE(launch);

bool launcher_new(struct launcher **ret, struct err *e);
void launcher_free(struct launcher *l); /* nothing may be under way */
int launcher_fd(const struct launcher *l); /* readable when there is something to take */
/* The descriptors stay the caller's; in -1: /dev/null. 0, or -errno and the launch is still the caller's. */
int launcher_submit(struct launcher *l, struct launch *one /* moved */, int in, int out);
struct launch *launcher_take(struct launcher *l); /* one that is done, moved; NULL: none */
