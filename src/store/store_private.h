/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share: the handle, sets, counters, rows, and one function per operation. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "core/job/event.h"
#include "core/job/policy.h"
#include "store/backend/db.h"
#include "store/ops/op.h"
#include "store/backend/queries.h"
#include "store/store.h"

struct count;
struct noted;
struct map;

struct store {
	struct db *db; /* owned */
	const struct clock *clock; /* borrowed, see store_options */
	bool read_only;
	char id[RANDOM_ID_LEN + 1];
	char writer[RANDOM_ID_LEN + 1]; /* our row in 'writers' */
	int64_t batch;                  /* its number in that row */
	char *node_name;                /* owned; whose counters we keep; "" until a node is opened */
	struct count *counts;           /* owned; changes of the counters in this transaction */
	size_t n_counts;
	size_t counts_kept;             /* of these, before the last mark */
	struct event_list events;       /* of this batch, or of the last one until they are taken */
	struct noted *noted;            /* owned; ends of runs in this transaction that somebody may be told of */
	size_t n_noted;
	int64_t *notices_held;          /* owned; owners whose due notices wait for a slot, since the last OP_NOTICE_TAKE */
	size_t n_notices_held;
	struct {
		usec_t slot, until;
	} dense_slots[8];                   /* slots with as many jobs as anybody wants to know, and how long we believe it */
	size_t next_dense_slot;            /* whose place the next one takes */
	struct {
		int64_t uid;
		char *queue;            /* owned */
		usec_t at;
	} shut[32];                     /* lanes that a limit closed, and when that was last seen */
	size_t next_shut;               /* whose place the next one takes */
	struct look {
		bool known;             /* else the lanes must be asked */
		usec_t at;              /* nothing can be claimed before */
		bool full;              /* ... but for runs that end: some wait for room in their queue or of their owner */
	} look;
	int64_t segments;               /* a mask: those whose slots we wake up for; -1: all */
	usec_t leader_lease_ends;             /* boottime, as last seen: the leader's lease; 0: not seen yet */
	bool leads;                     /* ... and it was ours */
	usec_t lease;                   /* what is kept through it, see store_options */
	int64_t others;                 /* other nodes that are alive, as last seen: they are told what is new */
	bool news;                      /* this batch has something for them */
	_Atomic int64_t term;           /* no lower one may be found here; set by any thread */
	int64_t term_checked;           /* ... of this connection */
	bool gone_back;                 /* a lower one was found */
	usec_t notified_at;                 /* when they were last told; boottime */
	bool notify_pending;                 /* there was something since then */
	usec_t start_notified_at;           /* ... that a run has started */
};

/* The same as store_open with an engine of the caller's choice (tests put a failing one in front). */
bool store_open_with(const struct db_ops *ops, const struct db_options *o, struct store **ret, struct err *e);

bool store_reconnect(struct store *s, int wait_ms, struct err *e);

#define QUEUE_DEFAULT "default"
#define KEY_KEPT USEC_DAY /* a removed job's key means that job for at least so long */

/* ---- the one JSON parameter of a set-wise statement ---- */
struct set {
	struct buf b;
	size_t n;
	bool first;  /* no member of the open item yet */
	bool closed; /* nothing more can be added */
};
#define AUTO_SET AUTO_DONE(set)
void set_done(struct set *s);
void set_item(struct set *s); /* opens the next object; closes the one before */
void set_int(struct set *s, const char *name, int64_t v);
void set_text(struct set *s, const char *name, const char *v); /* what is not UTF-8 is escaped */
void set_id(struct set *s, int64_t id);                        /* for arrays of numbers */
const char *set_json(struct set *s);                           /* closes it; until set_done */

/* Runs a statement that takes one set and gives nothing. An empty set is not sent. */
bool set_execute(struct store *s, int query, struct set *set, struct err *e);

/* ---- counters: deltas are gathered here and written once per transaction ---- */
enum count_what {
	COUNT_JOBS,
	COUNT_RUNS,
	COUNT_OWNER,  /* live jobs; the "state" is the uid */
	COUNT_ACTIVE, /* claimed and running runs; the "state" is the uid */
	COUNT_OUTPUT, /* bytes of output that are kept; the "state" is the uid */
	COUNT_NOTICES, /* by their state */
	COUNT_STORE,  /* bytes of rows (store_quota.c); the "state" is the uid */
	COUNT_WHAT_MAX
};
void counter_change(struct store *s, enum count_what what, int64_t state, const char *queue, int64_t n);
void counter_move(struct store *s, enum count_what what, int64_t from, int64_t to, const char *queue);
/* A run of this owner moves: in COUNT_RUNS, and in COUNT_ACTIVE when it becomes or ceases to be active. */
void counter_run_moved(struct store *s, enum run_state from, enum run_state to, int64_t uid, const char *queue);
/* for (size_t i = 0; counter_next_pending(...);) walks over what was counted and is not written yet */
bool counter_next_pending(const struct store *s, enum count_what what, size_t *i, int64_t *ret_state, const char **ret_queue,
	int64_t *ret_n);
int64_t counter_pending(const struct store *s, enum count_what what, int64_t state); /* not written yet */
int64_t counter_pending_in(const struct store *s, enum count_what what, int64_t state, const char *queue);
size_t counters_mark(struct store *s);
void counters_rewind(struct store *s, size_t mark); /* forgets what came after that mark */
bool counters_write(struct store *s, struct err *e);
bool counters_differ(const struct store *s); /* some of the gathered changes do not come to nothing */

/* ---- the bytes of an owner's rows: {job_size}, {run_size} and others in the .sql files; fixed parts stand for indexes ---- */
#define JOB_BYTES 1000
#define REVISION_BYTES 200
#define TEMPLATE_BYTES 200
#define RUN_BYTES 400 /* with its attempts */
void owner_quota_add(struct store *s, int64_t uid, int64_t bytes); /* uid below 0: the owner is unknown */
bool owner_quota_subtract_rows(struct store *s, struct query *q);       /* of a statement that deletes, with the columns uid and size */
bool owner_quota_used(struct store *s, int64_t uid, int64_t *ret, struct err *e); /* with what is not written yet */
void owner_quota_refuse(struct err *why, const char *owner, int64_t used, int64_t limit);
/* Sets 'why' if so many more bytes would exceed the owner's limit; 0: none. */
bool owner_quota_check(struct store *s, int64_t uid, const char *owner, int64_t more, int64_t limit, struct err *why, struct err *e);

/* ---- events: gathered here and written once per transaction; those of a refused operation must not be added ---- */
void event_add(struct store *s, const struct event_new *n);
size_t event_mark(const struct store *s);
void event_rewind(struct store *s, size_t mark); /* forgets what came after that mark */
bool event_write(struct store *s, struct err *e);

/* ---- notices: whoever makes a run final notes it; who is told of it is decided once per transaction ---- */
struct outcome {
	int64_t job, run;
	enum run_state state;
	const char *reason; /* NULL: none */
	bool notifies;      /* of the run's row: false, and nothing is noted */
	usec_t slot;        /* slot_last */
	usec_t at;
	usec_t took;        /* of an attempt that succeeded */
};
void outcome_note(struct store *s, const struct outcome *o);
size_t outcome_mark(const struct store *s);
void outcome_rewind(struct store *s, size_t mark); /* forgets what came after that mark */
bool outcomes_write(struct store *s, struct err *e);
/*
 * How many rows of a page to read next, after 'rows' of 'wanted' with 'bytes' in all, so that the page ends near 'bytes_max'
 * (0: no bound) without one statement per row; 0: the page is full.
 */
size_t page_chunk(size_t rows, size_t bytes, size_t wanted, size_t bytes_max);
bool notices_prune(struct store *s, struct set *jobs, struct err *e); /* those of jobs that go */
bool notices_read(struct store *s, struct set *ids, struct notice_list *ret, struct err *e);
bool notices_drop_old(struct store *s, usec_t now, struct err *e); /* some of those that were sent long ago */
/* When the next waiting notice is due, without those of 'notices_held'; USEC_NEVER: none. */
bool notices_due_first(struct store *s, usec_t *ret, struct err *e);

/* ---- rows ---- */
struct run *row_run(struct query *q);
struct job *row_job(struct query *q, struct err *e); /* NULL: the row is damaged */
uint64_t row_digest(int64_t uid, const char *owner, const char *spec);
bool jobs_read(struct store *s, int64_t uid, const char *ids, struct job_list *ret, struct err *e);
bool row_runs_read(struct store *s, const char *ids, struct run_list *ret, struct err *e);
bool claim_read_runs(struct store *s, const char *ids, struct claim_list *ret, struct err *e);
bool row_run_read(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e);
void run_list_add(struct run_list *l, struct run *r /* moved */);

/*
 * Whether there is such a queue (NULL: the default one, which is always there). If not, *refusal is ERR_INVALID for the
 * field "queue" and says what may have been meant. In a transaction that writes, the queue stays until it ends.
 */
bool limit_queue_check(struct store *s, const char *queue, struct err *refusal, struct err *e);

/* ---- transactions ---- */
struct tx {
	struct store *s; /* NULL: none is open */
};
#define AUTO_TX AUTO_DONE(tx)
bool tx_begin(struct tx *t, struct store *s, bool write, struct err *e);
bool tx_commit(struct tx *t, struct err *e);
void tx_done(struct tx *t); /* rolls back unless committed */

/*
 * One function per kind of operation, for all of that kind in a batch. A refusal is op_refuse()d and has
 * changed nothing; false means the engine failed and the transaction must be given up.
 */
typedef bool op_fn(struct store *s, struct op *const *ops, size_t n, struct err *e);
op_fn job_add_apply, job_bulk_apply, job_cancel_apply, run_cancel_apply, pause_apply, resume_apply, pause_times_apply, expired_runs_apply,
	trigger_apply, plan_apply, boot_runs_apply, claim_apply, run_started_apply, run_ended_apply, run_give_back_apply, node_open_apply,
	node_close_apply, retention_prune_apply, retention_forget_apply, late_runs_apply, event_op_apply, limit_set_apply, limit_remove_apply, dead_letters_apply, owner_apply;
op_fn job_change_apply, template_op_apply;
op_fn node_command_apply, lease_apply, leader_apply, node_poll_apply;
op_fn output_relay_apply;
op_fn lease_renew_outside_tx; /* as lease_apply, without a transaction around it: each is one of its own, sent as a whole (db_ops.transact) */
op_fn notice_add_apply, notices_due_apply, notice_done_apply, notice_resume_apply;
#ifdef JOBSCHED_FAILPOINTS
bool batch_failpoints(struct op *const *ops, size_t n, bool committed, struct err *e);
#else
#define batch_failpoints(ops, n, committed, e) true
#endif
bool op_refuse(struct op *op, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* returns true: the batch goes on */
void op_reset(struct op *op); /* frees and clears the results */

/*
 * Runs of these jobs have ended, or their slots have. Places that came free are settled. Those with no slot left and
 * no open run are finished, 'ret' gets their ids and may be NULL; those that waited for the end are looked at by the
 * planner from 'now' on.
 */
bool job_rows_suspend(struct store *s, struct set *set /* of job and reason */, usec_t now, struct err *e);
bool job_finish_idle(struct store *s, const char *ids, usec_t now, struct map *ret, struct err *e);

/* A job row that is held until the commit, to be paused, resumed or triggered. */
struct job_row {
	int64_t id;
	int64_t uid;
	char *owner, *name, *reason, *queue, *spec; /* owned */
	enum job_state state;
	int64_t revision, priority;
	usec_t created_at;
	bool sound; /* nobody but us has written it */
};
void job_row_done(struct job_row *j);
bool job_row_lock(struct store *s, int64_t uid, int64_t id, struct job_row *ret, struct err *e); /* id 0: no such job */
void job_row_words(const struct job_row *j, struct buf *out); /* 12 'backup' */
/* Refuses a job that would come back to life in a queue that was removed since. True; op->ok says. False: the store failed. */
bool job_row_check_queue(struct store *s, struct op *op, const struct job_row *j, struct err *e);
bool job_row_name_taken(struct store *s, const struct job_row *j, int64_t *ret, struct err *e); /* by that live job; 0: it is free */
/* Moves it, and counts the move. */
bool job_row_set_state(struct store *s, struct job_row *j, enum job_state to, const char *reason, usec_t now, struct err *e);

/*
 * Slots that were made runs, but are not due yet, are to be planned again: after this the planner finds the first of
 * them in 'due'. The caller holds the job's row.
 */
bool job_row_unplan(struct store *s, int64_t job, usec_t now, struct err *e);
bool job_row_put_due(struct store *s, int64_t job, usec_t slot, struct err *e); /* its next slot, whether it had one or not */

/* A job to be paused. */
struct job_pause {
	int64_t job, by_uid; /* by_uid -1: we did it ourselves */
	const char *by_name, *reason;
	usec_t now, until;   /* until 0: until somebody resumes it */
};
/* *ret: whether it was active; others are left as they are. */
bool job_pause(struct store *s, const struct job_pause *p, bool *ret, struct err *e);
/* The pause of a job that is paused, or will be ('later'); without a row of its own it says no more than the job. */
bool pause_row_of_job(struct store *s, const struct job_row *j, struct pause_order *ret, struct err *e);
bool pause_rows_read(struct store *s, int64_t uid, struct pause_list *ret, struct err *e);
/*
 * The pause of this job that an administrator set and that is not over. 'uid' is the scope of an operation: an
 * administrator (below 0) is not bound by it, and *ret_found is false. The row outlives a cancellation by the owner.
 */
bool pause_imposed_on_job(struct store *s, int64_t uid, const struct job_row *j, usec_t now, struct pause_order *ret,
	bool *ret_found, struct err *e);
/* "job 12 is paused by root since …: reason; only an administrator can end that". False. */
bool pause_deny(struct err *e, const char *subject, const struct pause_order *p);
/* The same, for an operation; true. */
bool pause_deny_op(struct op *op, const struct job_row *j, const struct pause_order *p);
/* Refuses an ordinary user ('uid' 0 or more) who would change or end this pause when an administrator set it. */
bool pause_check_scope(struct store *s, struct op *op, int64_t uid, const struct pause_order *wanted, struct err *e);
bool pause_row_write(struct store *s, const struct pause_order *p, struct err *e); /* of a scope; it replaces the one before */
/* Writes down that a pause began or ended; 'by' NULL: by itself. */
void pause_event(struct store *s, const struct actor *by, enum event_what what, const struct pause_order *p, usec_t now,
	const char *detail);

/* These runs are this node's from now on (same fence). */
bool claim_take_over(struct store *s, const char *node, struct set *ids, struct claim_list *ret, struct err *e);

/* Frees the places of runs of these jobs that are over; as many of those that wait for one come back into their lanes. */
bool permits_settle(struct store *s, const char *jobs, struct err *e);

/*
 * When a claim may find something. An operation that queues a run says wakeup_claim_by() when it is due. After one without a
 * phase (batch.c) the lanes are read anew, and it needs not say anything.
 */
void wakeup_claim_by(struct store *s, usec_t due_at);
void wakeup_claim_unknown(struct store *s);
/* Others have a reason to look, after the commit; 'soon': not at once, if they were told a moment ago. */
void wakeup_peers(struct store *s, bool soon);
/* Whether this engine is open and its lease not over; it stays so until the commit. NULL in *ret_spawner: it is not. */
bool node_hold(struct store *s, const char *node, char **ret_spawner, bool *ret_draining, struct err *e);
bool leader_worked(struct store *s, usec_t at, struct err *e); /* for those who watch the leader */
bool nodes_others(struct store *s, const char *node, int64_t *ret, struct err *e); /* that are alive; the store tells them news */
bool output_relays_prune(struct store *s, struct err *e); /* those that nobody wants any more */
/* ---- definitions ---- */
int64_t job_content_digest(int64_t uid, const char *content);
const char *job_queue(const struct job_new *j);
/* Jobs due at a slot, counted up to 'max'; slot_density_of_job() believes for a while what it found. */
bool slot_density_count(struct store *s, usec_t slot, int64_t max, int64_t *ret, struct err *e);
bool slot_density_of_job(struct store *s, const struct job_new *j, int64_t *ret, struct err *e);
bool owner_live_jobs(struct store *s, int64_t uid, int64_t *ret, struct err *e);
bool job_tags_insert(struct store *s, const struct job_new *j, struct err *e);
/* Why not is in *why and nothing was changed; false means that the engine failed. */
bool job_change(struct store *s, struct op_job_change *c, const struct actor *by, struct err *why, struct err *e);

/* A run to be made. */
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
/* Inserts runs, counts them; 'n' gets how many were new. The set has the ids. */
bool runs_insert(struct store *s, struct set *set, size_t *ret_n, struct err *e);
/*
 * Queued runs become final: 'set' has {run, state, reason}. Counts them and notes who is to be notified. 'ret' gets the
 * runs, 'jobs' their jobs, for job_finish_idle().
 */
bool runs_end_queued(struct store *s, struct set *set, usec_t now, struct run_changes *ret, struct set *jobs, struct err *e);
void run_changes_add(struct run_changes *l, const struct run_change *r);
/* Pauses that are about to end: kept for the slots inside them. */
bool pause_keep_jobs(struct store *s, const char *ids, usec_t now, struct err *e);
bool pause_keep_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid, usec_t now, struct err *e);
/* When a limit was last seen to close the lane of this queue and owner; 0: not lately. */
usec_t claim_lane_closed_at(const struct store *s, const char *queue, int64_t uid);
/* A restored store: what went on is lost, nobody is open, the counts are made anew. */
bool restore_reset(struct store *s, bool from_now, usec_t now, struct err *e);
void job_new_reset(struct job_new *j); /* forgets the results */
bool row_ids_take(struct store *s, int query, size_t n, int64_t *ids, struct err *e);
