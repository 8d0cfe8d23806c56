/* SPDX-License-Identifier: Apache-2.0 */
/* A run is what became of one slot, an attempt one try at it; here are their states and moves. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
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
bool run_revival_allowed(enum run_state from); /* of a dead letter: to RUN_QUEUED once more, by its owner's word */

enum run_kind { RUN_KIND_SCHEDULE, RUN_KIND_MANUAL, RUN_KIND_BOOT, RUN_KIND_MAX };
const char *run_kind_name(enum run_kind k);
bool run_kind_parse(const char *name, enum run_kind *ret);

/* What keeps a due run out of its lane, beside queues and owners that are full. */
enum run_hold {
	HOLD_NONE,
	HOLD_PERMIT,  /* the runs of its job that go on: overlap queue or replace, max_running */
	HOLD_PAUSED, /* it cannot be skipped: it was begun, or asked for, or is the last there is */
	HOLD_FROZEN,
	HOLD_MAX
};

/* What a triggered run overrules. */
enum run_force {
	FORCE_NONE,
	FORCE_PAUSE,  /* a pause, and the runs of its job that go on */
	FORCE_FREEZE, /* a freeze, too */
	FORCE_MAX
};

enum attempt_outcome {
	ATTEMPT_RUNNING, /* no end known yet */
	ATTEMPT_SUCCEEDED,
	ATTEMPT_FAILED,
	ATTEMPT_TIMED_OUT,
	ATTEMPT_CANCELLED,
	ATTEMPT_LOST,
	ATTEMPT_NOT_STARTED,
	ATTEMPT_DENIED,
	ATTEMPT_STALE,   /* ended after somebody else had taken the run over */
	ATTEMPT_OUTCOME_MAX
};
const char *attempt_outcome_name(enum attempt_outcome o);
bool attempt_outcome_parse(const char *name, enum attempt_outcome *ret);

struct run {
	int64_t id, job;
	char *job_name;      /* NULL: none */
	int64_t uid;         /* the owner's number: core/job/owner.h */
	char *owner;
	enum run_kind kind;
	enum run_state state;
	char *reason;        /* NULL: nothing to say */
	usec_t slot;         /* the instant it is for */
	usec_t slot_last;    /* of a stretch of missed slots; else equal to slot */
	int64_t slot_count;  /* 1 but for such a stretch */
	usec_t due_at;       /* when it may start: slot plus jitter, or the retry's time */
	int64_t revision, priority;
	char *queue;
	char *node;          /* id of the engine that claimed it; NULL: none */
	char *node_name;     /* what people call it; NULL: not known, or nobody has asked */
	int64_t attempt;     /* tries so far */
	int64_t lost;        /* of these, lost ones */
	int64_t fence;       /* grows by one with every claim */
	bool cancel_asked;
	usec_t created_at, claimed_at, started_at, ended_at; /* 0: not yet */
	int64_t exit_code;   /* -1: none */
	int64_t term_signal; /* 0: none */
	usec_t dead_at;      /* 0: no dead letter */
	int64_t failures;    /* attempts that count against its retries */
	usec_t first_start;  /* of its first attempt; 0: none yet */
	enum run_hold hold;
	bool forced;         /* triggered in spite of a pause and of other runs */
	char *params;        /* JSON object of what it was triggered with; NULL: nothing */
	char *waiting_code, *waiting_message; /* what it waits for (core/decide/why.h); NULL: nothing, or nobody has asked */
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
	int64_t io_read, io_written; /* bytes; -1: not known */
	int64_t output_bytes;     /* written by the command */
	int64_t output_dropped;   /* of these, not kept */
	char *error;              /* why it did not start, or what else went wrong; NULL: nothing */
};
void attempt_free(struct attempt *a);
AUTO_DEFINE(attempt);
