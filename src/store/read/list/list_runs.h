/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of runs by filter, newest slot first. */
#pragma once
#include "base/clock.h"
#include "store/lists.h"
#include <stdbool.h>

struct err;
struct store;

#define RUN_JOBS_MAX 32

/* The order is by slot, then by id. */
struct run_filter {
	int64_t uid;          /* -1: all owners */
	int64_t job;          /* 0: any, or those of 'jobs' */
	const int64_t *jobs;  /* borrowed; several jobs, up to RUN_JOBS_MAX */
	size_t jobs_n;
	const char *owner;    /* name of the owner; NULL: any */
	const char *tag_key, *tag_value; /* of the job; NULL: any */
	const char *result_key, *result_value; /* of the run; NULL: any */
	const char *queue;    /* NULL: any */
	usec_t due_by;        /* queued runs with a later slot are left out; 0: none */
	unsigned states;      /* bits 1 << enum run_state; 0: all */
	bool dead;            /* only dead letters, the latest first; the times are then the times of dying */
	usec_t slot_since, slot_until;
	int64_t before;       /* cursor: id of a run, older runs follow; 0: from the newest */
	size_t limit;
};
bool list_runs_page(struct store *s, const struct run_filter *f, struct run_list *ret, struct err *e);
