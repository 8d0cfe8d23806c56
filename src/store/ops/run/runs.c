/* SPDX-License-Identifier: Apache-2.0 */
/* Records the moves of a claimed run: start, end, return to the queue. */
#include "store/ops/run/runs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/pauses.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/run/locked_runs.h"
#include "store/ops/run/run_results.h"
#include "store/outcomes.h"
#include "store/set.h"
#include "store/store_private.h"
#include <assert.h>

/* ---- the runs of each operation, for the locks of their jobs ---- */

void run_started_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_started_op(op)->run);
}

void run_ended_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_ended_op(op)->attempt.run);
}

void run_give_back_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_give_back_op(op)->run);
}

/* ---- started ---- */

static void describe_start(struct set *set, const struct op_started *o)
{
	set_item(set);
	set_int(set, "run", o->run);
	set_int(set, "fence", o->fence);
	set_int(set, "attempt", o->attempt);
	set_text(set, "node", o->node);
	set_text(set, "spawner", o->spawner);
	set_int(set, "pid", o->pid);
	set_int(set, "at", o->started_at);
}

/*
 * The run was not in state 'claimed': the start was reported before, or the run has ended, or
 * another engine has it.
 */
static bool explain_start(struct store *s, struct op *op, struct err *e)
{
	const struct op_started *o = run_started_op(op);
	AUTO_DONE(locked_runs) held = {};
	AUTO_SET id = {};
	const struct locked_run *h;

	set_id(&id, o->run);
	if (!locked_runs_lock(s, &id, &held, e))
		return false;
	h = map_get(&held.by_id, o->run);
	if (!h)
		return op_refuse(op, ERR_NOT_FOUND, "no run %lld", (long long)o->run);
	if (h->fence != o->fence || h->state == RUN_QUEUED || !text_equal(h->node, o->node))
		return op_refuse(op, ERR_FENCED, "run %lld belongs to another engine now", (long long)o->run);
	return true;
}

/*
 * As a rule all starts are those of claimed runs, and no reply is needed. If one is not, the
 * statement fails, and the batch is repeated one by one.
 */
static bool starts_are_expected(const struct store *s, struct op *const *ops, size_t n)
{
	bool all = s->db->defer;

	for (size_t i = 0; i < n; i++)
		all = all && run_started_op(ops[i])->queue;
	return all;
}

static bool expected_starts_write(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	AUTO_DONE(map) seen = {};
	AUTO_SET moves = {};
	AUTO_QUERY q = query_start(s->db, Q_RUNS_STARTED_ALL, e);

	for (size_t i = 0; i < n; i++) {
		const struct op_started *o = run_started_op(ops[i]);

		if (map_get(&seen, o->run))
			continue;
		map_put(&seen, o->run, ops[i]);
		describe_start(&moves, o);
		counter_move(s, COUNT_RUNS, RUN_CLAIMED, RUN_RUNNING, o->queue);
	}
	set_bind(&q, &moves);
	query_int(&q, (int64_t)moves.n);
	return query_finish(&q) && set_execute(s, Q_ATTEMPTS_STARTED, &moves, e);
}

static bool starts_write(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	AUTO_DONE(map) waiting = {};
	AUTO_SET moves = {};
	AUTO_SET attempts = {};
	AUTO_QUERY q = query_start(s->db, Q_RUNS_STARTED, e);

	for (size_t i = 0; i < n; i++)
		if (!map_get(&waiting, run_started_op(ops[i])->run)) {
			map_put(&waiting, run_started_op(ops[i])->run, ops[i]);
			describe_start(&moves, run_started_op(ops[i]));
		}
	set_bind(&q, &moves);
	while (query_row(&q)) {
		const struct op *op = map_take(&waiting, query_get_int(&q));

		counter_move(s, COUNT_RUNS, RUN_CLAIMED, RUN_RUNNING, query_get_text(&q));
		if (op)
			describe_start(&attempts, run_started_op(op));
	}
	if (q.failed || !set_execute(s, Q_ATTEMPTS_STARTED, &attempts, e))
		return false;
	for (size_t i = 0; waiting.used && i < n; i++)
		if (map_get(&waiting, run_started_op(ops[i])->run) == ops[i] && !explain_start(s, ops[i], e))
			return false;
	return true;
}

bool run_started_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	return (starts_are_expected(s, ops, n) ? expected_starts_write : starts_write)(s, ops, n, e);
}

void run_started_free(struct op *op)
{
	free(run_started_op(op)->queue);
}

/* ---- ended ---- */

static void describe_attempt(struct set *set, const struct attempt *a, enum attempt_outcome outcome,
	const char *node)
{
	set_item(set);
	set_int(set, "run", a->run);
	set_int(set, "fence", a->fence);
	set_int(set, "attempt", a->number);
	set_text(set, "node", a->node ? a->node : node);
	set_text(set, "spawner", a->spawner);
	set_int(set, "pid", a->pid);
	set_int(set, "started_at", a->started_at);
	set_int(set, "ended_at", a->ended_at);
	set_int(set, "outcome", outcome);
	set_int(set, "exit_code", a->exit_code);
	set_int(set, "term_signal", a->term_signal);
	set_int(set, "cpu_user", a->cpu_user);
	set_int(set, "cpu_system", a->cpu_system);
	set_int(set, "max_rss", a->max_rss);
	set_int(set, "io_read", a->io_read);
	set_int(set, "io_written", a->io_written);
	set_int(set, "output_bytes", a->output_bytes);
	set_int(set, "output_dropped", a->output_dropped);
	set_text(set, "error", a->error);
}

static bool attempt_ran(enum attempt_outcome o)
{
	return o != ATTEMPT_NOT_STARTED && o != ATTEMPT_DENIED && o != ATTEMPT_GATED;
}

/* 'held' is the row before the end. A run that was replaced keeps that reason. */
static const char *end_reason(const struct op_ended *o, const struct locked_run *held)
{
	if (o->became == RUN_CANCELLED)
		return held->cancel_asked && text_equal(held->reason, "replaced") ? "replaced" : "cancelled";
	return o->reason[0] ? o->reason : NULL;
}

static void run_end_describe(struct set *set, const struct op_ended *o, const struct locked_run *held)
{
	usec_t ended_at = o->attempt.ended_at ? o->attempt.ended_at : 1; /* 0 means that the attempt is open */

	set_item(set);
	set_int(set, "run", o->attempt.run);
	set_int(set, "state", o->became);
	set_text(set, "reason", end_reason(o, held));
	set_int(set, "attempt", o->attempt.number);
	set_int(set, "lost", o->lost);
	set_int(set, "failures", o->failure);
	set_int(set, "first_start", attempt_ran(o->attempt.outcome) ? o->attempt.started_at : 0);
	set_int(set, "dead_at", o->dead && o->became == o->state ? ended_at : 0);
	set_int(set, "due_at", o->due_at);
	set_int(set, "started_at", o->attempt.started_at);
	set_int(set, "ended_at", ended_at);
	set_int(set, "exit_code", o->attempt.exit_code);
	set_int(set, "term_signal", o->attempt.term_signal);
}

struct ending {
	struct locked_runs held;
	struct set moves, attempts, stale, jobs, tails;
	struct results_new results;
	struct map finished;
	struct query facts; /* of their jobs, sent with the lock; unused: the replies of job_finish_idle() are waited for */
	struct map late; /* run → fence: written as stale in this group */
	usec_t now;
};

static void ending_done(struct ending *n)
{
	locked_runs_done(&n->held);
	set_done(&n->moves);
	set_done(&n->attempts);
	set_done(&n->stale);
	set_done(&n->jobs);
	set_done(&n->tails);
	results_new_done(&n->results);
	map_done(&n->finished);
	query_done(&n->facts);
	map_done(&n->late);
}

/* The recorded attempt of this run and fence. */
struct recorded {
	bool there;
	enum attempt_outcome outcome;
	int64_t kept; /* bytes of output */
};

static bool read_recorded(struct store *s, const struct attempt *a, struct recorded *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_ATTEMPT_OUTCOME, e);

	query_int(&q, a->run);
	query_int(&q, a->fence);
	if (query_row(&q)) {
		ret->there = true;
		ret->outcome = (enum attempt_outcome)query_get_int(&q);
		ret->kept = query_get_int(&q);
	}
	return !q.failed;
}

/* An end that is reported twice, because the first acknowledgement was lost, is not stale. */
static bool end_was_recorded(const struct recorded *r)
{
	return r->there && r->outcome != ATTEMPT_RUNNING && r->outcome != ATTEMPT_LOST && r->outcome != ATTEMPT_STALE;
}

static void count_output(struct store *s, int64_t uid, const struct attempt *a, int64_t kept_before)
{
	int64_t kept = a->output_bytes > a->output_dropped ? a->output_bytes - a->output_dropped : 0;

	if (kept != kept_before)
		counter_change(s, COUNT_OUTPUT, uid, "", kept - kept_before);
}

static bool end_stale(struct store *s, struct op_ended *o, const struct locked_run *h, struct ending *n, struct err *e)
{
	int64_t fence_before = (int64_t)(intptr_t)map_get(&n->late, o->attempt.run);
	struct recorded was = {};

	o->job = h->job;
	o->became = h->state;
	if (h->ended_by && h->fence == o->attempt.fence)
		return true;
	if (!read_recorded(s, &o->attempt, &was, e))
		return false;
	o->stale = !end_was_recorded(&was);
	if (!o->stale || was.outcome == ATTEMPT_STALE || fence_before == o->attempt.fence)
		return true;
	count_output(s, h->uid, &o->attempt, was.kept > 0 ? was.kept : 0);
	describe_attempt(&n->stale, &o->attempt, ATTEMPT_STALE, o->node);
	map_put(&n->late, o->attempt.run, (void *)(intptr_t)o->attempt.fence);
	return true;
}

static bool end_one(struct store *s, struct op *op, struct ending *n, struct err *e)
{
	struct op_ended *o = run_ended_op(op);
	struct locked_run *h = map_get(&n->held.by_id, o->attempt.run);

	if (!h)
		return op_refuse(op, ERR_NOT_FOUND, "no run %lld", (long long)o->attempt.run);
	if (!locked_run_is_ours(h, o->attempt.fence, o->node))
		return end_stale(s, o, h, n, e);
	o->became = o->state == RUN_QUEUED && !locked_run_may_requeue(h) ? RUN_CANCELLED : o->state;
	o->job = h->job;
	assert(run_move_allowed(h->state, o->became));
	counter_run_moved(s, h->state, o->became, h->uid, h->queue);
	run_end_describe(&n->moves, o, h);
	count_output(s, h->uid, &o->attempt, 0);
	describe_attempt(&n->attempts, &o->attempt, o->attempt.outcome, o->node);
	results_new_add(s, &n->results, h->id, h->uid, h->slot_first, o->attempt.number <= 1, &o->results);
	if (o->dead && o->became == o->state)
		counter_change(s, COUNT_DEAD, 0, "", 1);
	if (o->became != RUN_QUEUED) {
		counter_slots(s, o->became, end_reason(o, h), 1);
		set_id(&n->jobs, h->job);
		outcome_note(s, &(struct outcome){.job = h->job, .run = h->id, .state = o->became,
			.notifies = h->notifies, .slot = h->slot, .at = o->attempt.ended_at,
			.took = o->attempt.started_at ? o->attempt.ended_at - o->attempt.started_at : 0,
			.output = o->attempt.output_bytes > 0});
	} else {
		wakeup_claim_by(s, o->due_at);
	}
	if (o->attempt.ended_at > n->now)
		n->now = o->attempt.ended_at;
	h->state = o->became;
	h->ended_by = op;
	return true;
}

/* Pauses the job, unless it has finished with this run. */
static bool pause_by_exit(struct store *s, struct op_ended *o, usec_t now, struct err *e)
{
	AUTO_TEXT reason = xprintf("exit code %lld", (long long)o->attempt.exit_code);

	return job_pause(s, &(struct job_pause){.job = o->job, .by_uid = -1, .by_name = "jobsched", .reason = reason,
				 .now = now}, &o->job_paused, e);
}

/*
 * Suspends jobs whose further runs would be refused as well, for example because the uid belongs to
 * another user now. Finished jobs stay finished.
 */
static bool suspended_jobs_write(struct store *s, struct op *const *ops, size_t n, usec_t now, struct err *e)
{
	AUTO_SET jobs = {};
	AUTO_SET due = {};

	for (size_t i = 0; i < n; i++) {
		const struct op_ended *o = run_ended_op(ops[i]);

		if (!o->suspend || o->stale || !ops[i]->ok || !o->job)
			continue;
		set_item(&jobs);
		set_int(&jobs, "job", o->job);
		set_text(&jobs, "reason", o->suspend);
		set_id(&due, o->job);
	}
	return jobs.n == 0 || (set_execute(s, Q_DUE_DROP, &due, e) && job_rows_suspend(s, &jobs, now, e));
}

/* Adds audit events for dead letters and for jobs paused by an exit code. */
static void run_end_event(struct store *s, const struct op_ended *o, const struct locked_run *h, usec_t now)
{
	struct event_new ev = {.at = now, .job = o->job, .run = o->attempt.run, .owner = h->uid, .detail = o->reason};

	if (o->dead && o->became == o->state) {
		ev.what = EVENT_RUN_DEAD;
		event_add(s, &ev);
	}
	if (o->job_paused) {
		AUTO_TEXT detail = xprintf("exit code %lld", (long long)o->attempt.exit_code);

		ev.what = EVENT_JOB_PAUSE;
		ev.detail = detail;
		event_add(s, &ev);
	}
}

static void describe_tail(struct set *set, const struct op *op)
{
	if (!op->ok || !run_ended_op(op)->tail)
		return;
	set_item(set);
	set_int(set, "run", run_ended_op(op)->attempt.run);
	set_int(set, "fence", run_ended_op(op)->attempt.fence);
	set_text(set, "value", run_ended_op(op)->tail);
}

static bool put_tails(struct store *s, struct set *tails, struct err *e)
{
	AUTO_QUERY q = {};

	if (tails->n == 0)
		return true;
	q = query_start(s->db, Q_OUTPUTS_PUT, e);
	set_bind(&q, tails);
	while (query_row(&q)) {
		int64_t uid = query_get_int(&q);

		owner_quota_add(s, uid, query_get_int(&q));
	}
	return !q.failed;
}

/* Queues the runs of jobs that run after those whose runs are final now. */
static bool run_end_chains(struct store *s, struct op *const *ops, size_t n, const struct ending *end, struct err *e)
{
	struct chain_end *v = NULL;
	size_t count = 0;
	bool ok;

	for (size_t i = 0; i < n; i++) {
		const struct op_ended *o = run_ended_op(ops[i]);
		const struct locked_run *h = map_get(&end->held.by_id, o->attempt.run);

		if (!h || h->ended_by != ops[i] || !h->chained || o->became == RUN_QUEUED)
			continue;
		v = xgrow(v, count, sizeof(*v));
		v[count++] = (struct chain_end){.op = o, .job = h->job, .run = h->id, .slot = h->slot_first, .state = o->became,
			.exit_code = o->attempt.exit_code};
	}
	ok = chains_fire(s, v, count, end->now, e);
	free(v);
	return ok;
}

/* On a server one round trip locks the runs and reads what their jobs wait for. */
static bool ending_read(struct store *s, struct op *const *ops, size_t n, struct ending *end, struct err *e)
{
	AUTO_SET ids = {};
	AUTO_QUERY q = query_start(s->db, Q_RUNS_LOCK, e);

	for (size_t i = 0; i < n; i++)
		set_id(&ids, run_ended_op(ops[i])->attempt.run);
	set_bind(&q, &ids);
	if (s->db->defer) {
		end->facts = query_start(s->db, Q_ENDS_FACTS, e);
		set_bind(&end->facts, &ids);
	}
	return query_ahead(&q) && (!end->facts.db || query_send(&end->facts)) && locked_runs_take(&q, ids.n, &end->held);
}

/* The jobs that have a run of this group which is still open. */
static void open_jobs(const struct ending *end, struct map *ret)
{
	for (size_t i = 0; i < end->held.n; i++)
		if (!run_state_final(end->held.v[i].state))
			map_put(ret, end->held.v[i].job, (void *)end);
}

static bool jobs_settle(struct store *s, struct ending *end, struct err *e)
{
	AUTO_DONE(map) open = {};

	if (end->jobs.n == 0)
		return true;
	if (!end->facts.db)
		return job_finish_idle(s, set_json(&end->jobs), end->now, &end->finished, e);
	open_jobs(end, &open);
	return job_finish_known(s, set_json(&end->jobs), end->now, &end->facts, &open, &end->finished, e);
}

bool run_ended_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	AUTO_DONE(ending) end = {};

	if (!ending_read(s, ops, n, &end, e))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!end_one(s, ops[i], &end, e))
			return false;
		describe_tail(&end.tails, ops[i]);
	}
	if (!put_tails(s, &end.tails, e) || !results_new_write(s, &end.results, e) || !set_execute(s, Q_RUNS_END, &end.moves, e) || !set_execute(s, Q_ATTEMPTS_ENDED, &end.attempts, e) ||
	    !set_execute(s, Q_ATTEMPTS_ENDED, &end.stale, e) || !jobs_settle(s, &end, e))
		return false;
	if (!suspended_jobs_write(s, ops, n, end.now, e) || !run_end_chains(s, ops, n, &end, e))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct op_ended *o = run_ended_op(ops[i]);
		const struct locked_run *h;

		o->job_finished = map_get(&end.finished, o->job) != NULL;
		h = map_get(&end.held.by_id, o->attempt.run);
		if (!h || h->ended_by != ops[i])
			continue;
		if (o->pause && o->became == RUN_FAILED && !pause_by_exit(s, o, end.now, e))
			return false;
		run_end_event(s, o, h, end.now);
	}
	return true;
}

/* ---- given back ---- */

static bool give_back(struct store *s, const struct op_give_back *g, const struct locked_run *h, struct err *e)
{
	bool again = locked_run_may_requeue(h);
	AUTO_QUERY q = {};
	AUTO_SET set = {};
	AUTO_SET job = {};

	counter_run_moved(s, h->state, again ? RUN_QUEUED : RUN_CANCELLED, h->uid, h->queue);
	if (again) {
		wakeup_claim_by(s, g->due_at);
		q = query_start(s->db, Q_RUN_GIVE_BACK, e);
		query_int(&q, g->run);
		query_int(&q, g->fence);
		query_text(&q, g->node);
		query_int(&q, g->due_at);
		return query_finish(&q);
	}
	counter_slots(s, RUN_CANCELLED, "cancelled", 1);
	run_end_describe(&set, &(struct op_ended){
		.attempt = {.run = g->run, .ended_at = g->now, .exit_code = -1},
		.state = RUN_QUEUED,
		.became = RUN_CANCELLED,
	}, h);
	set_id(&job, h->job);
	return set_execute(s, Q_RUNS_END, &set, e) && job_finish_idle(s, set_json(&job), g->now, NULL, e);
}

bool run_give_back_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct op_give_back *g = run_give_back_op(ops[i]);
		AUTO_DONE(locked_runs) held = {};
		AUTO_SET id = {};
		const struct locked_run *h;

		set_id(&id, g->run);
		if (!locked_runs_lock(s, &id, &held, e))
			return false;
		h = map_get(&held.by_id, g->run);
		if (!h || !locked_run_is_ours(h, g->fence, g->node) || h->state != RUN_CLAIMED)
			op_refuse(ops[i], ERR_FENCED, "run %lld is not claimed by this engine any more",
				(long long)g->run);
		else if (!give_back(s, g, h, e))
			return false;
	}
	return true;
}

void run_ended_reset(struct op *op)
{
	struct op_ended *o = run_ended_op(op);

	o->became = o->state;
	o->stale = o->job_finished = o->job_paused = false;
	o->job = 0;
}

void run_ended_free(struct op *op)
{
	struct op_ended *o = run_ended_op(op);

	free(o->tail);
	strv_done(&o->results);
	free(o->parent);
	free(o->attempt.node);
	free(o->attempt.spawner);
	free(o->attempt.error);
}
