/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the audit trail for one client, as fast as it reads, with the ends of runs between. */
#pragma once
#include "base/text.h"
#include "store/store.h"

struct event;
struct request;

#define EVENT_JOBS_MAX 16

/* Which events somebody wants. */
struct event_feed_filter {
	struct event_filter filter; /* its jobs are ours */
	struct strv refs;           /* jobs as they were named */
	int64_t jobs[EVENT_JOBS_MAX];
};
void event_feed_filter_done(struct event_feed_filter *w);
bool event_feed_filter_resolve(struct store *s, int64_t scope, struct event_feed_filter *w, struct err *e); /* fills in the jobs */
void event_feed_write_event(struct buf *out, const struct event *ev);

/* Answers with lines of JSON without end: from the cursor on, or from the newest few. */
void event_feed_start(struct request *r, struct event_feed_filter *w /* emptied */);
