/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that an attempt has written more output, or its first; inotify, no polling. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct err;
struct output_watch;
struct sd_event;

/* Somebody who follows one attempt. Embedded; all zero: not following. */
struct output_follower {
	void (*on_change)(struct output_follower *f); /* may not change who follows what */
	int64_t run, attempt;
	struct output_watch *watch; /* NULL: not following */
	int wd;
	TAILQ_ENTRY(output_follower) in_list;
};

bool output_watch_new(struct sd_event *ev, int dir /* borrowed */, struct output_watch **ret, struct err *e);
void output_watch_free(struct output_watch *w); /* nobody may be following; NULL is fine */
AUTO_DEFINE(output_watch);

/* Follows the file behind 'fd', or with -1 the directory until the file is there. Called again to change over. */
bool output_watch_follow(struct output_watch *w, struct output_follower *f, int fd, struct err *e);
void output_watch_unfollow(struct output_follower *f);
