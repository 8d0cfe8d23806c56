/* SPDX-License-Identifier: Apache-2.0 */
/* Filtered event stream of one client. */
#pragma once
#include "base/text.h"
#include "store/read/list/list_events.h"
#include "store/store.h"

struct event;
struct request;

#define EVENT_JOBS_MAX 16

/* Events that a client has requested. */
struct event_feed_filter {
	struct event_filter filter; /* borrows 'jobs' */
	struct strv refs;           /* jobs as given in the request */
	int64_t jobs[EVENT_JOBS_MAX];
};
void event_feed_filter_done(struct event_feed_filter *w);
/* Sets 'jobs'. */
bool event_feed_filter_resolve(struct store *s, int64_t scope, struct event_feed_filter *w,
	struct err *e);
void event_feed_write_event(struct buf *out, const struct event *ev);

/*
 * Responds with an unlimited stream of JSON lines, or with 'sse' of server-sent events, starting at
 * the cursor or with the newest events.
 */
void event_feed_start(struct request *r, struct event_feed_filter *w /* emptied */,
	int64_t place /* in the feed of runs; 0: from now on */, bool sse);
