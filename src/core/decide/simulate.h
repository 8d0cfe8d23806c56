/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the runs of many jobs over days, from their schedules and usual durations. */
#pragma once
#include "base/clock.h"
#include "core/job/policy.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schedule_set;
struct zone;

#define SIMULATE_JOB_LIMITS 3    /* all nodes, the queue, the owner */
#define SIMULATE_BUSIEST 10
#define SIMULATE_CHANGE_JOBS 5   /* jobs that a clock change names */
#define SIMULATE_WAITING_MAX 100000 /* waiting runs; with more the simulation ends */

struct simulate_job {
	/* input, borrowed */
	const struct schedule_set *set;
	const struct zone *zone;
	usec_t first;           /* first slot in the period; 0: none */
	usec_t resumes_at;      /* slots before this are skipped because of a pause; 0: none */
	struct start_policy policy;
	usec_t usual, slow;     /* median and 95th percentile of its durations */
	size_t limits[SIMULATE_JOB_LIMITS]; /* indexes of the limits that apply */
	size_t n_limits;

	/* result */
	int64_t slots, runs;
	int64_t paused;         /* slots inside its pause */
	int64_t skipped;        /* slots skipped because a run of usual duration still runs */
	usec_t first_skipped;
	int64_t replaced;       /* runs ended by the next slot */
	int64_t expired;        /* runs that could not start before their deadline */
	int64_t possible;       /* slots at which a slow run would still run, and a usual one does not */
};

/* A maximum of running runs: of all nodes, of a queue or of an owner. */
struct simulate_limit {
	int64_t running;        /* 0: no limit */
	/* result */
	int64_t peak;
	int64_t delayed;        /* runs that waited for it */
	usec_t longest;         /* longest wait */
	usec_t first_at;        /* slot of the first delayed run */
};

struct simulate_day {
	usec_t from;            /* the days are ascending; a day ends where the next one begins */
	/* result */
	int64_t runs, skipped, delayed;
	int64_t peak;           /* concurrent runs */
	usec_t peak_at;
	usec_t busy;            /* sum of the durations of its runs */
};

struct simulate_minute {
	usec_t at;
	int64_t starts;
};

enum simulate_stop {
	SIMULATE_COMPLETE,
	SIMULATE_SLOTS,         /* 'slots_max' was reached */
	SIMULATE_WAITING,       /* SIMULATE_WAITING_MAX was reached: the limits are too low for the schedules */
	SIMULATE_STOP_MAX
};

struct simulate {
	/* input; the arrays are borrowed, and their result members must be 0 */
	usec_t from, until;
	struct simulate_job *jobs;
	size_t n_jobs;
	struct simulate_limit *limits;
	size_t n_limits;
	struct simulate_day *days;
	size_t n_days;
	int64_t slots_max;

	/* result */
	enum simulate_stop stop;
	usec_t stopped_at;      /* the figures end here, if not complete */
	int64_t slots, runs;
	int64_t peak;
	usec_t peak_at;
	struct simulate_minute busiest[SIMULATE_BUSIEST]; /* most starts first */
	size_t n_busiest;
};
/*
 * Each run takes the usual duration of its job. Failures, retries, jitter, rates and conditions are
 * not simulated.
 */
void simulate_run(struct simulate *s);

/* A change of the clock within the period. */
struct simulate_change {
	const struct zone *zone;
	usec_t at;
	int64_t shift;          /* seconds; more than 0: the clock skips this time, less: it repeats it */
	int64_t jobs;           /* jobs in this zone that have a slot in that hour a week before */
	size_t some[SIMULATE_CHANGE_JOBS]; /* indexes of the first of them */
};
/* Appends at most 'max' changes that concern the zones of the jobs; returns their number. */
size_t simulate_changes(const struct simulate *s, struct simulate_change *ret, size_t max);
