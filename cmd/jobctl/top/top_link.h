/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of 'jobctl top' to the daemon, in threads, so that the screen never waits. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;
struct top_link;

enum top_link_kind {
	TOP_LINK_ANSWER,  /* of a request */
	TOP_LINK_CHANGED, /* the daemon reported an event, or the stream of events ended */
	TOP_LINK_OUTPUT,  /* output of the followed run */
	TOP_LINK_OUTPUT_END /* the followed run has ended: 'answer' is the run */
};
struct top_link_event {
	enum top_link_kind kind;
	int tag;           /* of the request */
	json_t *answer;    /* owned; NULL: 'err' says why */
	struct err err;
	char *data;        /* owned: of TOP_LINK_OUTPUT */
	size_t len;
	int64_t run;       /* of TOP_LINK_OUTPUT and TOP_LINK_OUTPUT_END */
};
void top_link_event_done(struct top_link_event *ev);

/* Starts the threads. The signals that the caller waits for must be blocked before. */
bool top_link_open(const struct ctl *c, struct top_link **ret, struct err *e);
void top_link_free(struct top_link *l);
AUTO_DEFINE(top_link);

int top_link_fd(const struct top_link *l); /* readable while there are events */
bool top_link_take(struct top_link *l, struct top_link_event *ret); /* false: no event */

/* Requests are sent one after another. 'tag' returns with the answer. */
void top_link_ask(struct top_link *l, int tag, const char *method, const char *path);
size_t top_link_waiting(struct top_link *l); /* requests without an answer */

/* Follows the output of a run, from the last 256 KiB on. Ends an earlier following. */
void top_link_follow(struct top_link *l, int64_t run);
void top_link_unfollow(struct top_link *l);
