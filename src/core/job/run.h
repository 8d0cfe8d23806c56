/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and attempts: states, outcomes and allowed transitions. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/job/sign.h"
#include <stdbool.h>
#include <stdint.h>

enum run_state {
	RUN_QUEUED,
	RUN_CLAIMED,
	RUN_RUNNING,
	RUN_SUCCEEDED,
	RUN_FAILED,
	RUN_TIMED_OUT,
	RUN_CANCELLED,
	RUN_LOST,
	RUN_SKIPPED,
	RUN_EXPIRED,
	RUN_STATE_MAX
};
const char *run_state_name(enum run_state s);
bool run_state_parse(const char *name, enum run_state *ret);
bool run_state_final(enum run_state s);
bool run_move_allowed(enum run_state from, enum run_state to);
bool run_revival_allowed(enum run_state from); /* a dead letter may be queued again by its owner */

enum run_kind { RUN_KIND_SCHEDULE, RUN_KIND_MANUAL, RUN_KIND_BOOT, RUN_KIND_CHAIN, RUN_KIND_MAX };
const char *run_kind_name(enum run_kind k);
bool run_kind_parse(const char *name, enum run_kind *ret);

/* Why a queued run is on hold, outside its lane. */
enum run_hold {
	HOLD_NONE,
	HOLD_PERMIT,  /* waits for an overlap permit: overlap queue or replace, max_running */
	HOLD_PAUSED, /* paused, and cannot be skipped: it has an attempt, was triggered, or is the last slot */
	HOLD_FROZEN,
	HOLD_MAX
};

/* Obstacles that a triggered run ignores. */
enum run_force {
	FORCE_NONE,
	FORCE_PAUSE,  /* pauses and overlap */
	FORCE_FREEZE, /* also a freeze */
	FORCE_MAX
};

enum attempt_outcome {
	ATTEMPT_RUNNING, /* not ended */
	ATTEMPT_SUCCEEDED,
	ATTEMPT_FAILED,
	ATTEMPT_TIMED_OUT,
	ATTEMPT_CANCELLED,
	ATTEMPT_LOST,
	ATTEMPT_NOT_STARTED,
	ATTEMPT_DENIED,
	ATTEMPT_STALE,   /* ended after another node had taken over the run */
	ATTEMPT_STALLED, /* gave no sign within its heartbeat, and was ended */
	ATTEMPT_GATED,   /* its gate did not let it start; the exit code is that of the gate */
	ATTEMPT_OUTCOME_MAX
};
const char *attempt_outcome_name(enum attempt_outcome o);
bool attempt_outcome_parse(const char *name, enum attempt_outcome *ret);

struct attempt;
struct run {
	int64_t id, job;
	char *job_name;      /* NULL: none */
	int64_t uid;         /* the owner number, see core/job/owner.h */
	char *owner;
	enum run_kind kind;
	enum run_state state;
	char *reason;        /* NULL: none */
	usec_t slot;         /* the scheduled time */
	usec_t slot_last;    /* if the run stands for several missed slots: the last one; else equal to slot */
	int64_t slot_count;  /* number of these slots, usually 1 */
	usec_t due_at;       /* earliest start: slot plus jitter, or time of the retry */
	int64_t revision, priority;
	char *queue;
	char *node;          /* id of the engine that claimed it; NULL: none */
	char *node_name;     /* name of the node; NULL: unknown, or not read */
	int64_t attempt;     /* attempts so far */
	int64_t lost;        /* lost attempts among them */
	int64_t fence;       /* incremented by every claim */
	bool cancel_asked;
	usec_t created_at, claimed_at, started_at, ended_at; /* 0: not yet */
	int64_t exit_code;   /* -1: none */
	int64_t term_signal; /* 0: none */
	usec_t dead_at;      /* 0: no dead letter */
	int64_t failures;    /* attempts that count against its retries */
	usec_t first_start;  /* of its first attempt; 0: none yet */
	enum run_hold hold;
	bool forced;         /* triggered with --force: overrides pauses and overlap */
	char *params;        /* parameters given at the trigger, a JSON object; NULL: none */
	struct progress progress; /* of its last attempt, filled in by run_progress_read() */
	usec_t estimated_end; /* of its running attempt, filled in by run_progress_read(); 0: unknown */
	struct strv results; /* KEY=VALUE, filled in by run_results_read() */
	struct attempt *previous; /* owned; of a claimed run: its last attempt before this one; NULL: none */
	char *waiting_code, *waiting_message; /* what it waits for (core/decide/why.h); NULL: nothing, or not computed */
};
void run_free(struct run *r);
AUTO_DEFINE(run);

struct attempt {
	int64_t run, number, fence;
	char *node, *spawner;
	char *node_name;          /* as in struct run */
	int64_t pid;
	usec_t started_at, ended_at;
	enum attempt_outcome outcome;
	int64_t exit_code, term_signal;
	usec_t cpu_user, cpu_system;
	int64_t max_rss;          /* bytes */
	int64_t io_read, io_written; /* bytes; -1: unknown */
	int64_t output_bytes;     /* written by the command */
	int64_t output_dropped;   /* of these, not kept */
	char *error;              /* why it did not start, or another error; NULL: none */
};
void attempt_free(struct attempt *a);
AUTO_DEFINE(attempt);
