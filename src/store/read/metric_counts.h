/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the figures of the whole cluster that metrics show, from kept counts. */
#pragma once
#include "base/clock.h"
#include "core/job/job.h"
#include "store/store.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define METRIC_QUEUES_MAX 100 /* queues with a series of their own */

struct metric_queue {
	char *name; /* owned */
	int64_t queued, active;
};

struct metric_job {
	int64_t id;
	char *owner, *name; /* owned; name is NULL: none */
	usec_t next;        /* the next slot; 0: none */
	usec_t success_at, failure_at, missed_at; /* 0: never */
	usec_t took;        /* 0: unknown */
};

enum metric_job_choice { METRIC_JOBS_NONE, METRIC_JOBS_TAGGED, METRIC_JOBS_ALL };

struct metric_counts {
	struct store_counts counts;
	int64_t *slots;      /* owned; by slot_outcomes[] */
	int64_t dead;
	usec_t oldest_due;   /* of the queued runs that are not held back; USEC_NEVER: none */
	int64_t output_bytes;
	struct metric_queue *queues; /* owned; the queues that have runs, by name */
	size_t n_queues;
	struct metric_job *jobs;     /* owned; by number */
	size_t n_jobs;
};

struct metric_counts_ask {
	enum metric_job_choice jobs;
	size_t jobs_max;
	bool one_owner;      /* user mode: an owner may have all of the series */
};
bool metric_counts_read(struct store *s, const struct metric_counts_ask *ask, struct metric_counts *ret,
	struct err *e);
void metric_counts_done(struct metric_counts *c);
