/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts runs; records their start, end or return to the queue. */
#pragma once
#include "base/text.h"
#include "core/decide/judge.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/ops/op.h"
#include "store/ops/run/chains.h"
#include <stddef.h>

struct set;
struct store;

/* A run that an operation changed without starting it. */
struct run_change {
	int64_t job, run, fence;
	enum run_state state;  /* as it is now */
};
struct run_changes {
	struct run_change *v;  /* owned */
	size_t n;
};
void run_changes_add(struct run_changes *l, const struct run_change *r);
void run_changes_done(struct run_changes *l);

struct op_started {
	struct op op;
	const char *node, *spawner; /* borrowed */
	int64_t run, fence, attempt;
	int64_t pid;
	usec_t started_at;
	char *queue;                /* owned: of the run; NULL: not known */
};
OP_DEFINE(run_started, started, OP_STARTED, OP_STARTED)

struct op_ended {
	struct op op;
	const char *node;            /* borrowed */
	struct attempt attempt;      /* owned strings; identified by run, number and fence */
	enum run_state state;        /* new state of the run, as judge_attempt() decided */
	usec_t due_at;               /* when state is RUN_QUEUED */
	char reason[RUN_REASON_MAX]; /* empty: none */
	bool failure, lost;          /* which counter of the run is increased */
	bool dead;                   /* the run becomes a dead letter */
	struct strv results;         /* KEY=VALUE, valid; see core/job/result.h */
	char *tail;                  /* owned, base64: the end of the output, for other nodes; NULL: not stored */
	bool pause;                  /* the exit code pauses the job */
	chain_fn *chain;             /* how jobs that run after this one begin; NULL: with the default policy */
	char *parent;                /* owned: lines NAME=VALUE about the run for these jobs; NULL: none */
	const char *suspend;         /* static: why the job is suspended; NULL: it is not */
	/* results */
	enum run_state became;       /* 'state', or RUN_CANCELLED instead of RUN_QUEUED if the job was cancelled */
	bool stale;                  /* another engine has the run: recorded as a stale attempt */
	bool job_finished, job_paused;
	int64_t job;
};
OP_DEFINE(run_ended, ended, OP_ENDED, OP_ENDED)

struct op_give_back {
	struct op op;
	const char *node;
	int64_t run, fence;
	usec_t due_at;               /* when it may be claimed again */
	usec_t now;                  /* when it ended, if its job was cancelled */
};
OP_DEFINE(run_give_back, give_back, OP_GIVE_BACK, OP_GIVE_BACK)

/* A run to be inserted. */
struct run_new {
	int64_t id, job, revision, priority;
	int64_t uid;
	enum run_kind kind;
	enum run_state state;
	const char *reason, *queue;
	usec_t slot, slot_last, due_at, now;
	int64_t slot_count;
	struct start_policy policy;
	enum run_force forced;
	bool caught_up;
	const char *params; /* JSON; NULL: none */
};
void runs_describe(struct set *set, const struct run_new *r);
/*
 * Inserts and counts runs; *ret_n is increased by the number of new ones (NULL: not needed). The
 * set has the ids.
 */
/*
 * Counts a run that is inserted without waiting for the reply (runs_insert_new), because its job was
 * locked before the slot was found free. If the slot has a run, the batch fails and is repeated one
 * by one.
 */
void run_new_account(struct store *s, const struct run_new *r);
bool run_insert_free(struct store *s, struct set *set /* has only this run */, const struct run_new *r, struct err *e);
bool runs_insert(struct store *s, struct set *set, size_t *ret_n, struct err *e);
void runs_describe_end(struct set *set, int64_t run, enum run_state state, const char *reason);
/*
 * Makes queued runs final: 'set' has {run, state, reason}. Updates the counters and adds the
 * outcomes. 'ret' gets the runs, 'jobs' their jobs, for job_finish_idle().
 */
bool runs_end_queued(struct store *s, struct set *set, usec_t now, struct run_changes *ret, struct set *jobs,
	struct err *e);
