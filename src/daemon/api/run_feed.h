/* SPDX-License-Identifier: Apache-2.0 */
/* The starts and ends of runs on all nodes, read once for all event streams of this daemon. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct run_feed;
struct run_feed_reader;
struct run_watch_set;
struct sd_event;
struct store_thread;

struct run_feed_options { /* all pointers are borrowed */
	struct sd_event *ev;
	const struct clock *clock;
	struct store_thread *store;
	struct run_watch_set *watches;
	const char *node_name;
};
struct run_feed *run_feed_new(const struct run_feed_options *o);
void run_feed_stop(struct run_feed *f); /* reads nothing more; NULL is accepted */
void run_feed_free(struct run_feed *f); /* after the store threads have ended, with no reader left */
AUTO_DEFINE(run_feed);
/* Other nodes may have started or ended runs. Nothing is read while there is no reader. */
void run_feed_recheck(struct run_feed *f);

enum run_feed_kind { RUN_FEED_START, RUN_FEED_END, RUN_FEED_LOST /* moves of other nodes are not known */ };

struct run_feed_item {
	enum run_feed_kind kind;
	int64_t owner, job, run;
	char *data; /* the event as JSON */
};

/*
 * Begins at the place of an earlier reader, or with the next item (0). *ret_missed: items since
 * that place are no longer kept. 'fn' is called on the loop when there are items, and when the reader is ready.
 */
struct run_feed_reader *run_feed_reader_new(struct run_feed *f, int64_t place, bool *ret_missed,
	void (*fn)(void *arg), void *arg);
void run_feed_reader_free(struct run_feed_reader *r);
AUTO_DEFINE(run_feed_reader);
bool run_feed_reader_ready(const struct run_feed_reader *r); /* moves from now on become items */
bool run_feed_reader_has_more(const struct run_feed_reader *r);
int64_t run_feed_reader_place(const struct run_feed_reader *r);
/* The next item, valid until the loop continues; NULL: none. *ret_missed: so many were dropped before it. */
const struct run_feed_item *run_feed_reader_next(struct run_feed_reader *r, int64_t *ret_missed);
