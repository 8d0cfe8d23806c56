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
	usec_t span;         /* from the first job to the end of all schedules */
	int accidents;       /* crashes, pauses, changes of limits … over the span */
	const char *where;   /* the store */
	const char *journal; /* file to write */
};

/* What a job's commands do; only the fake workers know. */
struct habits {
	usec_t shortest, longest;
	int ok, odd; /* percent that end with 0; of the others, those with a special code */
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

/* A process, as the spawner knows it: it outlives the engine. */
struct worker {
	int64_t run, job, fence;
	usec_t began, ends;
	enum attempt_outcome outcome;
	int64_t exit_code, term_signal;
};

/* A run as the engine knows it. */
struct active_run {
	struct run *run; /* owned */
	struct retry_policy retry;
	usec_t timeout;
};

struct life {
	struct life_options o;
	uint64_t random;
	usec_t now, end;
	bool catching_up; /* back, and what passed is not planned yet */
	size_t room_said; /* the last that was left, as the journal has it */
	struct store *store;
	struct batch_wake wake;
	struct schedule_cache *schedule_cache;
	struct zone_cache *zones;
	FILE *journal;
	struct life_job *jobs;
	size_t n_jobs;

	bool up;
	usec_t up_at;       /* when it comes back, if not up */
	usec_t asleep_until; /* 0: awake */
	usec_t seen;        /* the last look at the clock */
	int nodes, spawners;
	char node[32], spawner[32];
	size_t room_max, owner_max;
	struct machine_figures machine;
	struct map active_runs; /* run → active_run */
	struct map workers; /* run → worker */
	struct map cancels; /* job → 1: whose job was cancelled */
	bool draining;
	long batches, claims, spins;
};

/* ---- chance ---- */
uint64_t life_random(struct life *l);
int64_t life_between(struct life *l, int64_t low, int64_t high); /* both included */
bool life_chance(struct life *l, int percent);
usec_t life_duration(struct life *l, usec_t low, usec_t high);   /* short ones are as likely as long ones */

/* ---- the store ---- */
void life_apply(struct life *l, struct op **ops, size_t n); /* fails loudly unless the batch as such worked */
bool life_apply_one(struct life *l, struct op *op);         /* op->ok */

/* ---- jobs ---- */
void life_add_jobs(struct life *l, int n);
void life_change_job(struct life *l, struct life_job *j);
struct life_job *life_job_of(struct life *l, int64_t id);

/* ---- the engine ---- */
void life_engine_open(struct life *l);
void life_engine_gone(struct life *l); /* its memory is lost */
void life_engine_pump(struct life *l);
usec_t life_engine_alarm(const struct life *l); /* when it must look again; USEC_NEVER: nothing is waited for */
void life_late(struct life *l, usec_t since, bool set_back);
void life_spawner_new(struct life *l); /* the old one and its workers are gone */
void life_cancel_worker(struct life *l, int64_t run, int64_t fence);
size_t life_room(const struct life *l);

/* ---- accidents ---- */
void life_accident(struct life *l);
void life_meddle(struct life *l); /* somebody changes or pauses a job that has just been planned */
void life_calm(struct life *l); /* ends pauses and limits, so that all can come to its end */

/* ---- the journal: a JSON object a line ---- */
void life_say(struct life *l, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void life_say_rows(struct life *l); /* all runs, attempts and jobs as they are in the end */
