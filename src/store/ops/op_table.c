/* SPDX-License-Identifier: Apache-2.0 */
/* The operation table, one row per kind. */
#include "store/ops/event_op.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/job/templates.h"
#include "store/ops/limits.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/node/nodes.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/notices.h"
#include "store/ops/notices_due.h"
#include "store/ops/op_private.h"
#include "store/ops/owners.h"
#include "store/ops/retention.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/dead_letters.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/run_progress.h"
#include "store/ops/run/run_states.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/triggers.h"
#include "store/ops/tokens.h"

#define SIZE(name) .size = sizeof(struct op_##name)

/*
 * Operations with a phase may be reordered within a batch: no other operation can refer to a new
 * job yet, a start precedes its end, and a claim names no run.
 */
static const struct op_info table[OP_KIND_MAX] = {
	[OP_JOB_ADD] = {SIZE(job_add), .apply = job_add_apply, .reset = job_add_reset, .phase = 1, .grows = true,
		.writers_of = job_add_writers, .owners = job_add_owners},
	[OP_PLAN] = {SIZE(plan), .apply = plan_apply, .reset = plan_reset, .phase = 2, .grows = true, .writers = WRITERS_SHARED},
	[OP_STARTED] = {SIZE(started), .apply = run_started_apply, .free = run_started_free, .phase = 3, .writers = WRITERS_SHARED,
		.jobs = run_started_jobs},
	[OP_ENDED] = {SIZE(ended), .apply = run_ended_apply, .reset = run_ended_reset, .free = run_ended_free, .phase = 4,
		.writers = WRITERS_SHARED, .jobs = run_ended_jobs},
	[OP_PROGRESS] = {SIZE(progress), .apply = run_progress_apply, .free = run_progress_free, .grows = true, .quiet = true,
		.writers = WRITERS_FREE},
	[OP_STATE_PUT] = {SIZE(state_put), .apply = run_states_put_apply, .free = run_states_put_free, .grows = true, .quiet = true,
		.writers = WRITERS_SHARED, .jobs = run_states_put_jobs},
	[OP_STATE_DROP] = {SIZE(state_drop), .apply = run_states_drop_apply, .quiet = true, .writers = WRITERS_SHARED,
		.jobs = run_states_drop_jobs},
	[OP_GIVE_BACK] = {SIZE(give_back), .apply = run_give_back_apply, .phase = 5, .writers = WRITERS_SHARED,
		.jobs = run_give_back_jobs},
	[OP_CLAIM] = {SIZE(claim), .apply = claim_apply, .reset = claim_reset, .phase = 6, .grows = true, .writers = WRITERS_SHARED},
	[OP_RELAY_ADD] = {SIZE(relay), .apply = output_relay_apply, .reset = output_relay_op_reset, .free = output_relay_op_free,
		.phase = 7, .grows = true, .quiet = true, .writers = WRITERS_FREE},
	[OP_RELAY] = {SIZE(relay), .apply = output_relay_apply, .reset = output_relay_op_reset, .free = output_relay_op_free,
		.phase = 8, .quiet = true, .writers = WRITERS_FREE},

	[OP_JOB_BULK] = {SIZE(job_bulk), .apply = job_bulk_apply, .reset = job_bulk_reset, .free = job_bulk_free,
		.grows = true, .writers_of = job_bulk_writers, .owners = job_bulk_owners},
	[OP_JOB_APPLY] = {SIZE(job_apply), .apply = job_apply_apply, .reset = job_apply_reset, .free = job_apply_free,
		.grows = true, .owners = job_apply_owners},
	[OP_JOB_CANCEL] = {SIZE(job_cancel), .apply = job_cancel_apply, .reset = job_cancel_reset, .writers = WRITERS_SHARED,
		.jobs = job_cancel_jobs, .prefetch = job_cancel_prefetch},
	[OP_JOB_REMOVE] = {SIZE(job_cancel), .apply = job_cancel_apply, .reset = job_cancel_reset, .writers = WRITERS_SHARED,
		.jobs = job_cancel_jobs, .prefetch = job_cancel_prefetch},
	[OP_JOB_CHANGE] = {SIZE(job_change), .apply = job_change_apply, .reset = job_change_reset, .grows = true,
		.owners = job_change_owners, .writers_of = job_change_writers, .jobs = job_change_jobs, .prefetch = job_change_prefetch},
	[OP_TEMPLATE_PUT] = {SIZE(template), .apply = template_op_apply, .reset = template_op_reset, .grows = true},
	[OP_TEMPLATE_REMOVE] = {SIZE(template), .apply = template_op_apply, .reset = template_op_reset},
	[OP_RUN_CANCEL] = {SIZE(run_cancel), .apply = run_cancel_apply, .reset = run_cancel_reset, .writers = WRITERS_SHARED,
		.jobs = run_cancel_jobs, .prefetch = run_cancel_prefetch},
	[OP_PAUSE] = {SIZE(pause), .apply = pause_apply, .reset = pause_reset, .writers_of = pause_writers, .jobs = pause_jobs, .prefetch = pause_prefetch},
	[OP_RESUME] = {SIZE(resume), .apply = resume_apply, .reset = resume_reset, .owners = resume_owners, .writers_of = resume_writers,
		.jobs = resume_jobs, .prefetch = resume_prefetch},
	[OP_PAUSES_END] = {SIZE(pauses_end), .apply = pause_times_apply, .reset = pause_times_reset},
	[OP_EXPIRE] = {SIZE(expire), .apply = expired_runs_apply, .reset = expired_runs_reset, .writers = WRITERS_SHARED},
	[OP_TRIGGER] = {SIZE(trigger), .apply = trigger_apply, .reset = trigger_reset, .grows = true, .owners = trigger_owners,
		.writers = WRITERS_SHARED, .jobs = trigger_jobs, .prefetch = trigger_prefetch},
	[OP_LATE] = {SIZE(late), .apply = late_runs_apply, .reset = late_runs_reset},
	[OP_BOOT] = {SIZE(boot), .apply = boot_runs_apply, .reset = boot_runs_reset, .grows = true},
	[OP_DEAD_RETRY] = {SIZE(dead), .apply = dead_letters_apply, .reset = dead_letters_reset, .grows = true},
	[OP_DEAD_PURGE] = {SIZE(dead), .apply = dead_letters_apply, .reset = dead_letters_reset},
	[OP_NODE_OPEN] = {SIZE(node_open), .apply = node_open_apply, .reset = node_open_reset},
	[OP_NODE_CLOSE] = {SIZE(node_close), .apply = node_close_apply, .free = node_close_free},
	[OP_NODE_COMMAND] = {SIZE(node_command), .apply = node_command_apply, .reset = node_command_reset},
	[OP_LEASE] = {SIZE(lease), .apply = lease_apply, .reset = lease_reset, .quiet = true, .writers = WRITERS_FREE,
		.repeatable = true},
	[OP_LEAD] = {SIZE(lead), .apply = leader_apply, .reset = leader_reset, .quiet = true, .writers = WRITERS_FREE},
	[OP_NODE_POLL] = {SIZE(node_poll), .apply = node_poll_apply, .reset = node_poll_reset, .quiet = true,
		.writers = WRITERS_FREE, .repeatable = true},
	[OP_PRUNE] = {SIZE(prune), .apply = retention_prune_apply, .reset = retention_prune_reset, .quiet = true, .writers = WRITERS_SHARED,
		.jobs = retention_prune_jobs},
	[OP_FORGET] = {SIZE(forget), .apply = retention_forget_apply, .quiet = true, .writers = WRITERS_SHARED,
		.jobs = retention_forget_jobs},
	[OP_EVENT] = {SIZE(event), .apply = event_op_apply, .grows = true, .quiet = true, .writers = WRITERS_FREE},
	[OP_LIMIT_SET] = {SIZE(limit), .apply = limit_set_apply, .reset = limit_reset},
	[OP_LIMIT_RM] = {SIZE(limit), .apply = limit_remove_apply, .reset = limit_reset},
	[OP_TOKEN_ADD] = {SIZE(token_add), .apply = token_add_apply, .grows = true},
	[OP_TOKEN_REMOVE] = {SIZE(token_remove), .apply = token_remove_apply, .reset = token_remove_reset},
	[OP_OWNER] = {SIZE(owner), .apply = owner_apply},
	[OP_NOTICE_ADD] = {SIZE(notice_add), .apply = notice_add_apply, .reset = notice_add_reset, .grows = true},
	[OP_NOTICE_TAKE] = {SIZE(notice_take), .apply = notices_due_apply, .reset = notices_due_reset,
		.free = notices_due_free},
	[OP_NOTICE_DONE] = {SIZE(notice_done), .apply = notice_done_apply, .reset = notice_done_reset,
		.free = notice_done_free},
	[OP_NOTICE_RESUME] = {SIZE(notice_resume), .apply = notice_resume_apply, .free = notice_resume_free},
};

const struct op_info *op_info(const struct op *op)
{
	return &table[op->kind];
}
