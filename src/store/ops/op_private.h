/* SPDX-License-Identifier: Apache-2.0 */
/* The operation table: the functions of each kind of operation. */
#pragma once
#include "store/ops/op.h"
#include "store/store_private.h"
#include <stddef.h>

struct set;
struct store;

/*
 * Applies all operations of one kind in a batch. A refused operation is marked by op_refuse() and
 * has changed nothing. False: the database failed, and the transaction must be rolled back.
 */
typedef bool op_fn(struct store *s, struct op *const *ops, size_t n, struct err *e);

struct op_info {
	op_fn *apply;
	void (*reset)(struct op *op); /* frees and clears the results; NULL: there are none */
	void (*free)(struct op *op);  /* frees what the operation owns beside its results; NULL: nothing */
	size_t size;                  /* of its struct */
	int phase;                    /* 1 to OP_PHASES: may be reordered within a batch; 0: keeps its position */
	bool grows;                   /* adds rows: refused while the disk is full */
	bool quiet;                   /* other nodes are not notified */
	enum writers_lock writers;    /* how it excludes other engines, see batch.c; the default is WRITERS_EXCLUSIVE */
	enum writers_lock (*writers_of)(const struct op *op); /* the same, if it depends on the operation; NULL: it does not */
	/*
	 * With WRITERS_SHARED: adds the jobs that it writes, and runs whose jobs it writes; NULL: it
	 * locks jobs itself.
	 */
	void (*jobs)(const struct op *op, struct set *jobs, struct set *runs);
	/*
	 * Adds the owners of which it may take a name, a key or one of the last jobs, and the
	 * jobs whose owners are meant; NULL: none.
	 */
	void (*owners)(const struct store *s, const struct op *op, struct set *owners, struct set *jobs);
	/*
	 * Sends reads that the operation needs, with the locks of the batch, see ops/prefetch.h. The operation calls
	 * prefetch_job() with the only job that it writes. NULL: none.
	 */
	bool (*prefetch)(struct store *s, const struct op *op, struct err *e);
	bool repeatable;              /* has the same effect when it is committed twice */
};
#define OP_PHASES 8

const struct op_info *op_info(const struct op *op);
bool op_refuse(struct op *op, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* returns true: the batch continues */
/*
 * For an operation that finds in a batch without the exclusive lock of all writers that it needs
 * it: false, and the batch is rolled back and repeated with that lock. True: the batch has it.
 */
bool batch_needs_exclusive(struct store *s, struct err *e);
void op_reset(struct op *op); /* frees and clears the results */

/* The rows of the table, by file. */
op_fn token_add_apply, token_remove_apply;
op_fn event_op_apply, limit_set_apply, limit_remove_apply, owner_apply, retention_prune_apply, retention_forget_apply;
op_fn notice_add_apply, notice_done_apply, notice_resume_apply, notices_due_apply;
op_fn job_add_apply, job_apply_apply, job_bulk_apply, job_cancel_apply, job_change_apply, template_op_apply;
op_fn pause_apply, pause_times_apply, resume_apply;
op_fn claim_apply, run_started_apply, run_ended_apply, run_give_back_apply, run_cancel_apply, trigger_apply, plan_apply;
op_fn run_progress_apply, run_states_put_apply, run_states_drop_apply;
op_fn late_runs_apply, boot_runs_apply, expired_runs_apply, dead_letters_apply;
op_fn node_open_apply, node_close_apply, node_command_apply, node_poll_apply, lease_apply, leader_apply, output_relay_apply;

typedef enum writers_lock op_writers_fn(const struct op *op);
op_writers_fn job_add_writers, job_bulk_writers, job_change_writers, pause_writers, resume_writers;
typedef void op_jobs_fn(const struct op *op, struct set *jobs, struct set *runs);
op_jobs_fn run_started_jobs, run_ended_jobs, run_give_back_jobs, run_cancel_jobs, trigger_jobs, job_cancel_jobs;
op_jobs_fn job_change_jobs, pause_jobs, resume_jobs, run_states_put_jobs, run_states_drop_jobs, retention_prune_jobs, retention_forget_jobs;
typedef void op_owners_fn(const struct store *s, const struct op *op, struct set *owners, struct set *jobs);
op_owners_fn job_add_owners, job_bulk_owners, job_apply_owners, job_change_owners, resume_owners, trigger_owners;

typedef bool op_prefetch_fn(struct store *s, const struct op *op, struct err *e);
op_prefetch_fn job_cancel_prefetch, job_change_prefetch, pause_prefetch, resume_prefetch, run_cancel_prefetch, trigger_prefetch;

typedef void op_clear_fn(struct op *op);
op_clear_fn token_remove_reset;
op_clear_fn limit_reset, retention_prune_reset;
op_clear_fn notice_add_reset, notice_done_reset, notice_done_free, notice_resume_free, notices_due_reset, notices_due_free;
op_clear_fn job_add_reset, job_apply_reset, job_apply_free, job_bulk_reset, job_bulk_free, job_cancel_reset, job_change_reset, template_op_reset;
op_clear_fn pause_reset, pause_times_reset, resume_reset;
op_clear_fn claim_reset, run_ended_reset, run_ended_free, run_started_free, run_cancel_reset, trigger_reset, plan_reset;
op_clear_fn run_progress_free, run_states_put_free;
op_clear_fn late_runs_reset, boot_runs_reset, expired_runs_reset, dead_letters_reset;
op_clear_fn node_open_reset, node_close_free, node_command_reset, node_poll_reset, lease_reset, leader_reset;
op_clear_fn output_relay_op_reset, output_relay_op_free;
