/* SPDX-License-Identifier: Apache-2.0 */
/* Retries or purges dead letters. */
#pragma once
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/store.h"

/* OP_DEAD_RETRY and OP_DEAD_PURGE */
struct op_dead {
	struct op op;
	int64_t uid;                 /* whose runs may be used; -1: all */
	int64_t id;                  /* this run; 0: all that match the filter, oldest first */
	int64_t job;                 /* filter; 0: any */
	usec_t since, until;         /* filter: dead from 'since' to before 'until'; 0: open */
	usec_t after_at;             /* cursor: later than this time ... */
	int64_t after;               /* ... or this run */
	size_t limit;                /* rows examined in one step */
	usec_t now;
	/* results */
	struct run_list runs;        /* those that changed, as they are now */
	int64_t refused;             /* matching runs that were refused; the first reason is in 'why' */
	struct err why;
	bool more;                   /* continue from next_at and next */
	usec_t next_at;
	int64_t next;
};
OP_DEFINE(dead_letters, dead, OP_DEAD_RETRY, OP_DEAD_PURGE)
