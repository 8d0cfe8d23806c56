/* SPDX-License-Identifier: Apache-2.0 */
/* Records the end of an attempt, with a retry if one is due. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/decide/judge.h"
#include "core/start/start_failure.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "daemon/metrics/metrics.h"
#include "daemon/schedule/chain_start.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/schedule/state_transfer.h"
#include "exec/proto/output_file.h"
#include "store/ops/op.h"
#include "store/ops/run/runs.h"
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define TAIL_MAX 8192 /* bytes of output that are kept in the store, for other nodes to show */

/*
 * After these errors the daemon ends. The end is not acknowledged, so the spawner reports it to the
 * next daemon.
 */
static bool ends_daemon(enum err_kind kind)
{
	return kind == ERR_UNCERTAIN || kind == ERR_REFUSED;
}

bool dispatcher_may_retry(enum err_kind kind)
{
	return kind != ERR_NOT_FOUND && kind != ERR_FENCED && !ends_daemon(kind);
}

/* Logs the first failure, and then one line a minute for all of them. */
static void note_late(struct dispatcher *d, struct active_run *a, const struct op *op)
{
	log_line(log_repeat(&d->not_recorded, clock_boot(d->o.clock)), NULL,
		"could not record the end of run %" PRId64
		", trying again every second, also for runs that end meanwhile: %s",
		run_ended_op(op)->attempt.run, op->err.msg);
	d->late_ends += a && !a->late;
	if (a)
		a->late = true;
}

static void note_recorded(struct dispatcher *d, const struct active_run *a)
{
	const struct active_run *other;

	if (!a || !a->late)
		return;
	for (size_t i = 0; (other = map_next(&d->active_runs.by_run, &i));)
		if (other->late && other != a)
			return;
	log_info("the store has recorded the delayed end%s of %zu run%s",
		d->late_ends == 1 ? "" : "s", d->late_ends, d->late_ends == 1 ? "" : "s");
	d->not_recorded = (struct log_repeat){};
	d->late_ends = 0;
}

static void count_end(const struct dispatcher *d, const struct op *op)
{
	const struct op_ended *o = run_ended_op(op);
	const struct attempt *a = &o->attempt;

	if (!op->ok)
		return;
	metrics_add(d->o.metrics, METRIC_ATTEMPTS, o->stale ? ATTEMPT_STALE : a->outcome, 0, 1);
	if (!o->stale && o->became == RUN_QUEUED)
		metrics_add(d->o.metrics, METRIC_RETRIES, 0, 0, 1);
	if (a->pid > 0 && a->started_at && a->ended_at)
		metrics_observe(d->o.metrics, METRIC_RUN_SECONDS, 0, a->ended_at - a->started_at);
}

static void on_end_recorded(struct op *op, void *arg)
{
	struct dispatcher *d = arg;
	const struct attempt *end = &run_ended_op(op)->attempt;
	struct active_run *a = active_runs_get(&d->active_runs, end->run, end->fence);

	if (!op->ok && dispatcher_may_retry(op->err.kind)) {
		note_late(d, a, op);
		if (!a) {
			dispatcher_submit_later(d, op);
			return;
		}
		a->recording = false;
		dispatcher_retry_in(d, DISPATCHER_RETRY_DELAY);
		op_free(op);
		return;
	}
	if (!op->ok && ends_daemon(op->err.kind)) {
		op_free(op);
		return;
	}
	note_recorded(d, a);
	count_end(d, op);
	if (a)
		dispatcher_trace_end(d, a, op);
	failpoint_pass(FP_RESULT_ACK);
	if (!a || a->call)
		dispatcher_call_ack(d, end->run, end->fence);
	if (!a || !a->call)
		spawner_link_ack(d->o.spawner, end->run, end->fence);
	/* of other runs, for example after a restart, the retention finds the directory */
	if (op->ok && a && a->checkpoint && run_state_final(run_ended_op(op)->became))
		spawner_link_forget_output(d->o.spawner, end->run, 0);
	if (op->ok && a && a->state_size && run_state_final(run_ended_op(op)->became))
		state_transfers_drop(d->states, end->run);
	if (!op->ok)
		log_warning("dropped the end of run %" PRId64 ": %s", end->run, op->err.msg);
	else if (run_ended_op(op)->stale)
		log_warning("run %" PRId64 " was taken over meanwhile; its end is kept as stale",
			end->run);
	else
		run_watch_notify(d->o.run_watch_set, run_ended_op(op)->job, end->run,
			run_ended_op(op)->became);
	if (a)
		active_runs_remove(&d->active_runs, a);
	op_free(op);
}

/* A copy, because the operation is submitted again if the store refuses it. */
static void copy_end(struct attempt *to, const struct attempt *from)
{
	*to = *from;
	to->node = xstrdup(from->node);
	to->spawner = xstrdup(from->spawner);
	to->node_name = xstrdup(from->node_name);
	to->error = xstrdup(from->error);
}

static struct judge_verdict decide_run_end(const struct dispatcher *d, const struct active_run *a)
{
	struct judge_case c = {
		.outcome = a->end.outcome,
		.denial = a->refused ? start_failure_name(a->refused) : NULL,
		.stopped = a->stopped,
		.final = a->failure.final,
		.status = a->failure.status,
		.retry_after = a->failure.retry_after,
		.exit_code = a->end.exit_code,
		.term_signal = a->end.term_signal,
		.cancel_asked = a->run->cancel_asked,
		.failures = a->run->failures,
		.lost = a->run->lost,
		.number = a->end.number,
		.deadline = a->deadline,
		.expires = a->expires,
		/* a gate is not a start of the run */
		.first_start = a->run->first_start || a->end.outcome == ATTEMPT_GATED ? a->run->first_start : a->end.started_at,
		.now = clock_now(d->o.clock),
	};

	if (c.outcome != ATTEMPT_SUCCEEDED)
		io_random(&c.random, sizeof(c.random));
	return judge_attempt(&a->retry, &c);
}

/*
 * The last bytes of the output as base64, which other nodes show from the store; NULL: none, or
 * there are no other nodes.
 */
static char *read_end_tail(const struct dispatcher *d, const struct active_run *a)
{
	AUTO_FD dir = -1;
	AUTO_FD file = -1;
	AUTO_DONE(buf) text = {};
	int64_t from = a->end.output_bytes - TAIL_MAX;
	struct err e = {};
	size_t n = 0;
	char *bytes;

	if (a->end.output_bytes <= a->end.output_dropped || !d->o.others || !d->o.others(d->o.arg))
		return NULL;
	dir = open(d->o.output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = dir >= 0 ? output_file_open(dir, a->run->id, a->end.number) : -1;
	bytes = xcalloc(1, TAIL_MAX);
	for (size_t more = 1; file >= 0 && more > 0 && n < TAIL_MAX; n += more) {
		int64_t at = from > 0 ? from : 0;

		if (!output_file_read(
			    file, at + (int64_t)n, bytes + n, TAIL_MAX - n, &at, &more, &e))
			break;
		if (n == 0)
			from = at;
	}
	buf_base64(&text, bytes, n);
	free(bytes);
	return n > 0 ? buf_steal(&text) : NULL;
}

static void record_end(struct dispatcher *d, const struct active_run *a)
{
	struct judge_verdict v = decide_run_end(d, a);
	struct op *op = op_new(OP_ENDED, on_end_recorded, d);

	op_fill(run_ended_op(op), .node = d->o.node_id, .state = v.state, .due_at = v.due_at,
		.chain = chain_start_child, .parent = chain_start_parent(a, &v),
		.failure = v.failure, .lost = v.lost, .dead = v.dead, .pause = v.pause,
		.suspend = a->failure.gone			     ? "gone"
			: start_failure_suspends(a->refused) ? start_failure_name(a->refused)
							     : NULL);
	memcpy(run_ended_op(op)->reason, v.reason, sizeof(v.reason));
	copy_end(&run_ended_op(op)->attempt, &a->end);
	run_ended_op(op)->attempt.outcome = v.outcome;
	strv_copy(&run_ended_op(op)->results, &a->results);
	run_ended_op(op)->tail = a->response ? xstrdup(a->response) : read_end_tail(d, a);
	op->patient = true;
	store_thread_submit(d->o.store, op);
}

static void fill_origin(const struct dispatcher *d, struct active_run *a)
{
	const char *id = spawner_link_id(d->o.spawner);

	if (!a->end.node)
		a->end.node = xstrdup(d->o.node_id);
	if (!a->end.spawner)
		a->end.spawner = xstrdup(id ? id : "");
}

/* Another attempt will follow, and the directory may have changed. */
static bool state_wanted(const struct dispatcher *d, const struct active_run *a)
{
	return a->state_size && a->end.pid > 0 && a->end.outcome != ATTEMPT_GATED && decide_run_end(d, a).state == RUN_QUEUED;
}

void dispatcher_end_run(struct dispatcher *d, struct active_run *a)
{
	active_runs_end(&d->active_runs, a);
	a->recording = true;
	fill_origin(d, a);
	if (!state_wanted(d, a) || !state_transfer_save(d->states, a))
		record_end(d, a);
}

void dispatcher_state_saved(struct dispatcher *d, struct active_run *a)
{
	record_end(d, a);
}

void dispatcher_end_unknown_run(struct dispatcher *d, struct active_run *a)
{
	fill_origin(d, a);
	record_end(d, a);
	active_run_free(a);
}

void dispatcher_retry_ends(struct dispatcher *d)
{
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));)
		if (a->stage == ACTIVE_RUN_ENDED && !a->recording) {
			a->recording = true;
			record_end(d, a);
		}
}
