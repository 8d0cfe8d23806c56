/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated scheduler: a fake clock, the real store, fake workers, and a journal of events. */
#pragma once
#include "base/clock.h"
#include "base/map.h"
#include "core/decide/machine_conditions.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OWNERS 4
#define QUEUES 4

struct life_options {
	uint64_t seed;
	int jobs;
	usec_t span;         /* from the start to the end of all schedules */
	int accidents;       /* number of crashes, pauses, changes of limits and so on */
	const char *where;   /* the store */
	const char *journal; /* file to write */
	int defect; /* planted: 1: a gate that delays counts as a failure, 2: an attempt loses a step of its state; 0: none */
};

/* The behaviour of a job's command. Only the simulated workers use it. */
struct habits {
	usec_t shortest, longest;
	int ok, odd; /* percent with exit code 0; percent of the others with a special exit code */
};
struct life_job {
	int64_t id;
	uint32_t uid;
	const char *queue;
	char *spec;
	int64_t revision;
	bool over; /* cancelled */
	struct habits habits;
};

/* A simulated process of the spawner. It continues when the daemon crashes. */
struct worker {
	int64_t run, job, fence;
	usec_t began, ends;
	enum attempt_outcome outcome;
	int64_t exit_code, term_signal;
	int64_t steps;  /* its state at the start: how many attempts before have stored theirs */
	int64_t result; /* the command writes this number as a result; 0: none */
};

/* A run in the memory of the daemon. */
struct active_run {
	struct run *run; /* owned */
	struct retry_policy retry;
	usec_t timeout;
	usec_t deadline, expires; /* latest start after a gate; 0: no limit */
	bool gate;                /* its job has a gate */
	bool moves;               /* its attempts take a state from node to node */
};

struct life {
	struct life_options o;
	uint64_t random;
	usec_t now, end;
	bool catching_up; /* the missed slots are not planned yet */
	size_t room_said; /* the free room of the last "room" event */
	struct store *store;
	struct batch_wake wake;
	struct schedule_cache *schedule_cache;
	struct zone_cache *zones;
	FILE *journal;
	struct life_job *jobs;
	size_t n_jobs;

	bool up;
	usec_t up_at;       /* when the daemon restarts, if it is not up */
	usec_t asleep_until; /* 0: awake */
	usec_t seen;        /* when the clock was last read */
	int nodes, spawners;
	char node[32], spawner[32];
	size_t room_max, owner_max;
	struct machine_figures machine;
	struct map active_runs; /* by run id */
	struct map workers; /* by run id */
	struct map cancels; /* job id → 1: the job was cancelled */
	bool draining;
	long batches, claims, spins;
};

/* ---- random numbers ---- */
uint64_t life_random(struct life *l);
int64_t life_between(struct life *l, int64_t low, int64_t high); /* both included */
bool life_chance(struct life *l, int percent);
usec_t life_duration(struct life *l, usec_t low, usec_t high);   /* evenly distributed orders of magnitude */

/* ---- the store ---- */
void life_apply(struct life *l, struct op **ops, size_t n); /* aborts if the batch fails */
bool life_apply_one(struct life *l, struct op *op);         /* returns op->ok */

/* ---- jobs ---- */
void life_add_jobs(struct life *l, int n);
void life_change_job(struct life *l, struct life_job *j);
struct life_job *life_job_of(struct life *l, int64_t id);

/* ---- the daemon ---- */
void life_engine_open(struct life *l);
void life_engine_gone(struct life *l); /* discards the memory of the daemon */
void life_engine_pump(struct life *l);
usec_t life_engine_alarm(const struct life *l); /* time of the next timer, or USEC_NEVER */
void life_late(struct life *l, usec_t since, bool set_back);
void life_spawner_new(struct life *l); /* discards the old spawner and its workers */
void life_cancel_worker(struct life *l, int64_t run, int64_t fence);
size_t life_room(const struct life *l);

/* ---- accidents ---- */
void life_accident(struct life *l);
void life_change_planned(struct life *l); /* changes or pauses a job with a planned slot */
void life_clear_limits(struct life *l); /* ends pauses and limits, so that all runs can end */

/* ---- the journal: one JSON object per line ---- */
void life_say(struct life *l, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void life_say_rows(struct life *l); /* the final rows of all runs, attempts and jobs */
