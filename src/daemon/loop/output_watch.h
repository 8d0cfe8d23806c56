/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies readers when an attempt writes output. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct err;
struct output_watch;
struct sd_event;

/* A reader that follows one attempt. Embedded; all zero: not following. */
struct output_follower {
	/* Must not follow or unfollow another reader. */
	void (*on_change)(struct output_follower *f);
	int64_t run, attempt;
	struct output_watch *watch; /* NULL: not following */
	int wd;
	TAILQ_ENTRY(output_follower) in_list;
};

bool output_watch_new(struct sd_event *ev, int dir /* borrowed */, struct output_watch **ret,
	struct err *e);
void output_watch_free(struct output_watch *w); /* no follower may be left; NULL is fine */
AUTO_DEFINE(output_watch);

/*
 * Follows the file behind 'fd', or with -1 the directory until the file exists. A second call
 * replaces the first.
 */
bool output_watch_follow(struct output_watch *w, struct output_follower *f, int fd, struct err *e);
void output_watch_unfollow(struct output_follower *f);
