/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the crontabs with the jobs of the store; makes the operations that bring them in step. */
#pragma once
#include "base/clock.h"
#include "base/err.h"
#include "daemon/loop/store_thread.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct op;
struct table_list;

/* One table, as 'jobctl cron' shows it. */
struct table_state {
	char *path;      /* owned, as are the texts below */
	char *user;      /* of a user table; NULL: none */
	char *problem;   /* why nothing of it runs; NULL: it is used */
	char *note;      /* what is left out of it; NULL: nothing */
	size_t jobs;
};
struct table_states {
	struct table_state *v;
	size_t n;
};
void table_states_done(struct table_states *l);

/* An owner without a number in the store. */
struct table_owner {
	uint32_t uid;
	char *name; /* owned */
};

struct table_plan {
	struct read_task task;          /* first member */
	/* input */
	const struct table_list *list;  /* borrowed; NULL: the jobs of all tables are removed */
	usec_t now;
	void *arg;
	/* results */
	bool ok;
	struct err err;
	struct table_owner *missing;    /* these owners must be added first; then there are no changes */
	size_t n_missing;
	struct op **changes;            /* owned: one OP_JOB_APPLY for each table that has changed */
	size_t n_changes;
	struct table_states states;
};
void table_plan_free(struct table_plan *p);
/* On a store thread: reads the store and the user database, changes nothing. */
void table_plan_work(struct store *s, struct read_task *task);
