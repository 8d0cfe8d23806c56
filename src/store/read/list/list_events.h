/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of the audit trail. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_list;
struct store;

/*
 * The order is by number, newest first unless 'ascending'. An ascending page ends where a transaction in progress may
 * still add events; a page in the other direction has all events that are there.
 */
struct event_filter {
	int64_t uid;          /* only events that this owner may see; -1: all */
	const int64_t *jobs;  /* borrowed */
	size_t n_jobs;        /* 0: any job */
	int64_t run;          /* 0: any */
	uint64_t whats;       /* bits 1 << enum event_what; 0: all */
	usec_t since, until;  /* 0: open */
	bool ascending;
	int64_t from;         /* cursor: id of an event, the events beyond it follow; 0: from the start */
	size_t limit;
};
bool list_events_page(struct store *s, const struct event_filter *f, struct event_list *ret, struct err *e);
/* The number after which an ascending reader continues to see what is committed from now on. 0: there are no events. */
bool list_events_newest(struct store *s, int64_t *ret, struct err *e);
