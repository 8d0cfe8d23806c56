/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the daemon without an event loop, and the spawner without processes, on the fake clock. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/decide/judge.h"
#include "core/job/gate.h"
#include "core/job/job.h"
#include "core/time/slots.h"
#include "daemon/schedule/chain_start.h"
#include "daemon/schedule/schedule_cache.h"
#include "sim/life.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_states.h"
#include "store/ops/run/runs.h"
#include "store/read/run_state.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_LIMIT 500
#define PLAN_STEPS 20000 /* small, so that long ranges of missed slots need several rounds */
#define ROUNDS_MAX 20000 /* at one time; more means an endless loop */

/* ---- active runs ---- */

static void active_run_free(struct active_run *f)
{
	run_free(f->run);
	free(f);
}

static struct active_run *sim_active_run_add(struct life *l, struct claimed *c)
{
	struct active_run *f = xcalloc(1, sizeof(*f));
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	job_spec_init(&spec);
	if (!spec_json_from_text(c->spec, &spec, &e)) {
		fprintf(stderr, "spec: %s\n", e.msg);
		abort();
	}
	f->run = STEAL(c->run);
	if (f->run->state == RUN_CLAIMED)
		f->run->attempt++; /* the store counts an attempt when its start is recorded */
	policy_retry_of(&spec, &f->retry);
	f->timeout = spec.timeout;
	f->deadline = spec.deadline ? f->run->slot + spec.deadline : 0;
	f->expires = spec.expires ? f->run->slot + spec.expires : 0;
	f->gate = spec.gate != NULL;
	f->moves = spec.state_size > 0;
	map_put(&l->active_runs, f->run->id, f);
	return f;
}

static void sim_active_run_drop(struct life *l, struct active_run *f)
{
	map_take(&l->active_runs, f->run->id);
	active_run_free(f);
}

size_t life_room(const struct life *l)
{
	return l->active_runs.used < l->room_max ? l->room_max - l->active_runs.used : 0;
}

void life_engine_gone(struct life *l)
{
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&l->active_runs, &i));)
		active_run_free(f);
	map_done(&l->active_runs);
	l->up = false;
}

/* ---- ends ---- */

struct ending {
	struct active_run *active_run;
	struct worker worker; /* as reported by the spawner */
	bool began;
};

static struct op *end_op(struct life *l, const struct ending *end)
{
	const struct active_run *f = end->active_run;
	const struct worker *w = &end->worker;
	struct judge_case c = {
		.outcome = w->outcome,
		.exit_code = w->exit_code,
		.term_signal = w->term_signal,
		.cancel_asked = f->run->cancel_asked,
		.failures = f->run->failures,
		.lost = f->run->lost,
		.number = f->run->attempt,
		.deadline = f->deadline,
		.expires = f->expires,
		.first_start = f->run->first_start || w->outcome == ATTEMPT_GATED ? f->run->first_start : w->began,
		.now = l->now,
		.random = life_random(l),
	};
	struct judge_verdict v = judge_attempt(&f->retry, &c);
	struct op *op = op_new(OP_ENDED, NULL, NULL);

	if (l->o.defect == 1 && w->outcome == ATTEMPT_GATED && v.state == RUN_QUEUED)
		v.failure = true;

	op_fill(run_ended_op(op), .node = l->node, .state = v.state, .due_at = v.due_at, .failure = v.failure,
		.lost = v.lost, .dead = v.dead, .pause = v.pause, .chain = chain_start_child);
	if (w->result)
		strv_take(&run_ended_op(op)->results, xprintf("n=%" PRId64, w->result));
	memcpy(run_ended_op(op)->reason, v.reason, sizeof(v.reason));
	run_ended_op(op)->attempt = (struct attempt){.run = f->run->id, .number = f->run->attempt, .fence = f->run->fence,
		.node = xstrdup(l->node), .spawner = xstrdup(l->spawner), .pid = 1, .started_at = w->began,
		.ended_at = w->ends < l->now ? w->ends : l->now, .outcome = v.outcome, .exit_code = w->exit_code,
		.term_signal = w->term_signal};
	return op;
}

static void say_end(struct life *l, const struct ending *end, const struct op *op)
{
	life_say(l, "end",
		"\"run\":%" PRId64 ",\"job\":%" PRId64 ",\"fence\":%" PRId64 ",\"outcome\":\"%s\",\"code\":%" PRId64
		",\"signal\":%" PRId64 ",\"began\":%" PRId64 ",\"at\":%" PRId64 ",\"became\":\"%s\",\"stale\":%d,\"paused\":%d"
		",\"result\":%" PRId64,
		end->active_run->run->id, end->active_run->run->job, end->active_run->run->fence, attempt_outcome_name(end->worker.outcome),
		end->worker.exit_code, end->worker.term_signal, end->worker.began, run_ended_op(op)->attempt.ended_at,
		run_state_name(run_ended_op(op)->became), run_ended_op(op)->stale, run_ended_op(op)->job_paused,
		end->worker.result);
}

/* ---- the state of runs: the number of attempts that have reached their end ---- */

static void put_part(struct life *l, const struct active_run *f, int64_t part, bool last, const char *bytes)
{
	AUTO(op) *op = op_new(OP_STATE_PUT, NULL, NULL);
	AUTO_DONE(buf) text = {};

	buf_base64(&text, bytes, strlen(bytes));
	op_fill(run_states_put_op(op), .node = l->node, .run = f->run->id, .fence = f->run->fence, .part = part, .last = last,
		.total = (int64_t)text.len, .data = buf_steal(&text), .owner = xstrdup("x"));
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "state of run %" PRId64 ": %s\n", f->run->id, op->err.msg);
		abort();
	}
}

/* Before an end after which the run is tried again. Sometimes an earlier daemon has written the first part only. */
static void save_state(struct life *l, const struct ending *end, const struct op *ended)
{
	const struct active_run *f = end->active_run;
	enum attempt_outcome outcome = end->worker.outcome;
	AUTO_TEXT steps = xprintf("%" PRId64, end->worker.steps + 1);
	int parts = (int)life_between(l, 1, 3);

	if (!f->moves || run_ended_op(ended)->state != RUN_QUEUED || outcome == ATTEMPT_LOST || outcome == ATTEMPT_NOT_STARTED ||
		outcome == ATTEMPT_GATED)
		return;
	if (life_chance(l, 10))
		put_part(l, f, 0, false, "unfinished");
	for (int i = 0; i < parts - 1; i++)
		put_part(l, f, i, false, " ");
	put_part(l, f, parts - 1, true, steps);
	life_say(l, "save", "\"run\":%" PRId64 ",\"steps\":%" PRId64, f->run->id, end->worker.steps + 1);
}

/* The number of steps that the attempt finds. */
static int64_t fill_state(struct life *l, const struct active_run *f)
{
	AUTO_DONE(buf) found = {};
	struct err e = {};
	int64_t steps;

	if (!f->moves)
		return 0;
	if (!run_state_read(l->store, f->run->id, &found, &e)) {
		fprintf(stderr, "state of run %" PRId64 ": %s\n", f->run->id, e.msg);
		abort();
	}
	steps = found.len ? strtoll(found.data, NULL, 10) : 0;
	steps -= l->o.defect == 2 && steps > 0;
	life_say(l, "fill", "\"run\":%" PRId64 ",\"steps\":%" PRId64, f->run->id, steps);
	return steps;
}

/* The retention deletes what the daemon has not. */
static void drop_state(struct life *l, const struct ending *end, const struct op *ended)
{
	AUTO(op) *op = NULL;

	if (!end->active_run->moves || !run_state_final(run_ended_op(ended)->became) || life_chance(l, 10))
		return;
	op = op_new(OP_STATE_DROP, NULL, NULL);
	op_fill(run_states_drop_op(op), .run = end->active_run->run->id);
	life_apply_one(l, op);
}

/* Records several ends in one batch, like ends that arrive during a commit. */
static void record_ends(struct life *l, struct ending *v, size_t n)
{
	struct op **ops = xcalloc(n ? n : 1, sizeof(struct op *));

	for (size_t i = 0; i < n; i++)
		ops[i] = end_op(l, &v[i]);
	for (size_t i = 0; i < n; i++)
		save_state(l, &v[i], ops[i]);
	if (n)
		life_apply(l, ops, n);
	for (size_t i = 0; i < n; i++) {
		if (!ops[i]->ok) {
			fprintf(stderr, "end of run %" PRId64 ": %s\n", v[i].active_run->run->id, ops[i]->err.msg);
			abort();
		}
		say_end(l, &v[i], ops[i]);
		drop_state(l, &v[i], ops[i]);
		free(map_take(&l->workers, v[i].active_run->run->id));
		sim_active_run_drop(l, v[i].active_run);
		op_free(ops[i]);
	}
	free(ops);
}

static void end_without_worker(struct life *l, struct active_run *f, enum attempt_outcome outcome)
{
	struct ending end = {.active_run = f, .worker = {.began = l->now, .ends = l->now, .outcome = outcome, .exit_code = -1}};

	record_ends(l, &end, 1);
}

static void take_ends(struct life *l)
{
	struct ending v[64];
	struct worker *w;
	size_t n;

	do {
		n = 0;
		for (size_t i = 0; n < ELEMENTS(v) && (w = map_next(&l->workers, &i));) {
			struct active_run *f = w->ends <= l->now ? map_get(&l->active_runs, w->run) : NULL;

			if (f && f->run->fence == w->fence)
				v[n++] = (struct ending){.active_run = f, .worker = *w};
		}
		record_ends(l, v, n);
	} while (n == ELEMENTS(v));
}

/* ---- starts ---- */

static struct worker *worker_new(struct life *l, const struct active_run *f, usec_t timeout)
{
	static const int64_t odd_codes[] = {2, 75, 78, 100};
	const struct habits *h = &life_job_of(l, f->run->job)->habits;
	struct worker *w = xcalloc(1, sizeof(*w));

	*w = (struct worker){.run = f->run->id, .job = f->run->job, .fence = f->run->fence, .began = l->now,
		.outcome = ATTEMPT_SUCCEEDED};
	w->ends = l->now + life_duration(l, h->shortest, h->longest);
	w->result = life_chance(l, 50) ? life_between(l, 1, 9) : 0;
	if (!l->draining && !life_chance(l, h->ok)) {
		w->outcome = ATTEMPT_FAILED;
		w->exit_code = life_chance(l, h->odd) ? odd_codes[life_between(l, 0, 3)] : 1;
		if (life_chance(l, 10)) {
			w->exit_code = -1;
			w->term_signal = 9;
		}
	}
	if (!l->draining && life_chance(l, 3)) {
		w->outcome = ATTEMPT_STALLED;
		w->ends = l->now + life_duration(l, USEC_SEC, USEC_HOUR);
		w->exit_code = -1;
		w->term_signal = 15;
	}
	if (f->gate && !l->draining && life_chance(l, 30)) {
		static const int64_t gate_codes[] = {GATE_DELAY, GATE_DELAY, GATE_DELAY, GATE_SKIP, 1};

		w->outcome = ATTEMPT_GATED;
		w->ends = l->now + life_duration(l, USEC_MSEC, USEC_MIN);
		w->exit_code = gate_codes[life_between(l, 0, ELEMENTS(gate_codes) - 1)];
		w->term_signal = 0;
		w->result = 0;
	}
	if (timeout && w->ends - l->now > timeout) {
		w->ends = l->now + timeout;
		w->outcome = ATTEMPT_TIMED_OUT;
		w->exit_code = -1;
		w->term_signal = 15;
	}
	return w;
}

static void record_start(struct life *l, const struct active_run *f)
{
	AUTO(op) *op = op_new(OP_STARTED, NULL, NULL);

	op_fill(run_started_op(op), .node = l->node, .spawner = l->spawner, .run = f->run->id, .fence = f->run->fence,
		.attempt = f->run->attempt, .pid = 1, .started_at = l->now);
	life_apply_one(l, op);
	if (f->retry.run_timeout)
		life_say(l, "start", "\"run\":%" PRId64, f->run->id);
}

static void start(struct life *l, struct active_run *f)
{
	struct worker *w;
	usec_t timeout;

	if (!judge_time_left(&f->retry, f->run->first_start, f->timeout, l->now, &timeout)) {
		end_without_worker(l, f, ATTEMPT_TIMED_OUT);
		return;
	}
	if (life_random(l) % 500 == 0) {
		end_without_worker(l, f, ATTEMPT_NOT_STARTED);
		return;
	}
	w = worker_new(l, f, timeout);
	w->steps = fill_state(l, f);
	map_put(&l->workers, f->run->id, w);
	if (life_chance(l, 70))
		record_start(l, f);
}

void life_cancel_worker(struct life *l, int64_t run, int64_t fence)
{
	struct active_run *f = map_get(&l->active_runs, run);
	struct worker *w = map_get(&l->workers, run);
	usec_t at = l->now + life_between(l, 0, 5) * USEC_SEC;

	if (f && f->run->fence == fence)
		f->run->cancel_asked = true;
	if (w && w->fence == fence && w->ends > at) {
		w->ends = at;
		w->outcome = ATTEMPT_CANCELLED;
		w->exit_code = -1;
		w->term_signal = 15;
	}
}

static void give_back(struct life *l, struct active_run *f)
{
	AUTO(op) *op = op_new(OP_GIVE_BACK, NULL, NULL);

	op_fill(run_give_back_op(op), .node = l->node, .run = f->run->id, .fence = f->run->fence, .due_at = l->now, .now = l->now);
	life_apply_one(l, op);
	life_say(l, "back", "\"run\":%" PRId64 ",\"fence\":%" PRId64, f->run->id, f->run->fence);
	sim_active_run_drop(l, f);
}

/* ---- claims ---- */

static void die(struct life *l)
{
	life_say(l, "down", "\"how\":\"crash\"");
	life_engine_gone(l);
	l->up_at = l->now + life_duration(l, USEC_SEC, USEC_HOUR);
}

static void take_claimed(struct life *l, struct op_claim *c)
{
	size_t n = c->claimed.n;
	/* one of 4000 claims: the daemon crashes between the commit and the starts */
	size_t until = !l->draining && n && life_random(l) % 4000 == 0 ? (size_t)life_between(l, 0, (int64_t)n - 1) : n;

	for (size_t i = 0; i < n; i++) {
		const struct run *r = c->claimed.v[i].run;

		life_say(l, "claim",
			"\"run\":%" PRId64 ",\"job\":%" PRId64 ",\"fence\":%" PRId64 ",\"attempt\":%" PRId64
			",\"due\":%" PRId64 ",\"slot\":%" PRId64 ",\"kind\":\"%s\",\"forced\":%d",
			r->id, r->job, r->fence, r->attempt, r->due_at, r->slot, run_kind_name(r->kind), r->forced);
	}
	for (size_t i = 0; i < until; i++)
		start(l, sim_active_run_add(l, &c->claimed.v[i]));
	if (until < n)
		die(l);
}

static void gate_of_spec(const char *text, const struct machine_figures *machine, struct gate_says *ret)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	job_spec_init(&spec);
	if (!spec_json_from_text(text, &spec, &e))
		abort();
	*ret = (struct gate_says){.met = machine_conditions_hold(machine, &spec.when)};
	if (spec.rate && !policy_rate_parse(spec.rate, &ret->rate, &e))
		abort();
}

/* Returns true if another claim at the same time can have an effect. */
static bool claim(struct life *l)
{
	AUTO(op) *op = op_new(OP_CLAIM, NULL, NULL);
	size_t room = life_room(l);
	usec_t was = l->wake.next_due;
	bool more;

	op_fill(claim_op(op), .node = l->node, .now = l->now, .room = room, .owner_max = l->owner_max,
		.gate = gate_of_spec, .machine = l->machine);
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "claim: %s\n", op->err.msg);
		abort();
	}
	l->claims++;
	for (size_t i = 0; i < claim_op(op)->replaced.n; i++) {
		const struct run_change *r = &claim_op(op)->replaced.v[i];

		life_say(l, "replaced", "\"run\":%" PRId64 ",\"fence\":%" PRId64, r->run, r->fence);
		life_cancel_worker(l, r->run, r->fence);
	}
	more = claim_op(op)->claimed.n + claim_op(op)->settled.n + claim_op(op)->replaced.n > 0 || l->wake.next_due != was;
	if (!more)
		l->spins++;
	if (l->room_said || room > claim_op(op)->claimed.n)
		life_say(l, "room", "\"left\":%zu", room - claim_op(op)->claimed.n);
	l->room_said = room - claim_op(op)->claimed.n;
	take_claimed(l, claim_op(op));
	return more;
}

/* ---- planning ---- */

static void plan(struct life *l)
{
	AUTO(op) *op = op_new(OP_PLAN, NULL, NULL);

	op_fill(plan_op(op), .now = l->now, .horizon = l->now + SLOTS_LOOKAHEAD, .limit = PLAN_LIMIT,
		.steps = PLAN_STEPS, .fn = schedule_cache_plan, .fn_arg = l->schedule_cache);
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "plan: %s\n", op->err.msg);
		abort();
	}
	if (!l->draining && plan_op(op)->runs && life_random(l) % 60 == 0)
		life_change_planned(l);
	/* a crash after runs were planned for the next seconds */
	if (!l->draining && plan_op(op)->runs && life_random(l) % 150 == 0)
		die(l);
}

void life_late(struct life *l, usec_t since, bool set_back)
{
	int64_t after = 0;

	life_say(l, "late", "\"since\":%" PRId64 ",\"seen\":%" PRId64, since, l->seen);
	l->catching_up = true;
	do {
		AUTO(op) *op = op_new(OP_LATE, NULL, NULL);

		op_fill(late_runs_op(op), .since = since, .now = l->now, .after = after, .set_back = set_back,
			.fn = schedule_cache_missed, .fn_arg = l->schedule_cache);
		if (!life_apply_one(l, op)) {
			fprintf(stderr, "late: %s\n", op->err.msg);
			abort();
		}
		after = late_runs_op(op)->more;
	} while (after);
}

/* ---- start and event loop ---- */

void life_spawner_new(struct life *l)
{
	struct worker *w;

	for (size_t i = 0; (w = map_next(&l->workers, &i));)
		free(w);
	map_done(&l->workers);
	snprintf(l->spawner, sizeof(l->spawner), "spawner-%d", ++l->spawners);
}

/*
 * Opens the node like the daemon: runs that the spawner has continue, claimed runs that it never got are given back, and
 * runs of another spawner are lost.
 */
void life_engine_open(struct life *l)
{
	AUTO(op) *op = op_new(OP_NODE_OPEN, NULL, NULL);
	struct op_node_open *o = node_open_op(op);

	snprintf(l->node, sizeof(l->node), "node-%d", ++l->nodes);
	o->node = l->node;
	o->name = "one";
	o->spawner = l->spawner;
	o->host = "here";
	o->now = l->now;
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "open: %s\n", op->err.msg);
		abort();
	}
	l->up = true;
	life_say(l, "up", "\"spawner\":\"%s\"", l->spawner);
	for (size_t i = 0; i < o->same_spawner.n; i++) {
		struct active_run *f = sim_active_run_add(l, &o->same_spawner.v[i]);
		const struct worker *w = map_get(&l->workers, f->run->id);

		if (w && f->run->cancel_asked)
			life_cancel_worker(l, f->run->id, f->run->fence);
		else if (!w && f->run->cancel_asked)
			end_without_worker(l, f, ATTEMPT_CANCELLED);
		else if (!w)
			give_back(l, f);
	}
	for (size_t i = 0; i < o->other_spawner.n; i++)
		end_without_worker(l, sim_active_run_add(l, &o->other_spawner.v[i]), ATTEMPT_LOST);
	life_late(l, o->last_seen, false);
}

static void end_pauses(struct life *l)
{
	AUTO(op) *op = op_new(OP_PAUSES_END, NULL, NULL);

	pause_times_op(op)->now = l->now;
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "pauses: %s\n", op->err.msg);
		abort();
	}
}

static void expire(struct life *l)
{
	AUTO(op) *op = op_new(OP_EXPIRE, NULL, NULL);

	expired_runs_op(op)->now = l->now;
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "expire: %s\n", op->err.msg);
		abort();
	}
}

static void say_planned(struct life *l)
{
	if (l->catching_up)
		life_say(l, "planned", "\"next\":%" PRId64, l->wake.next_slot);
	l->catching_up = false;
}

/* Processes all events that are due. */
void life_engine_pump(struct life *l)
{
	bool claimable = true, planning;

	l->seen = l->now;
	for (int i = 0; l->up; i++) {
		if (i == ROUNDS_MAX) {
			fprintf(stderr, "seed %" PRIu64 ": endless loop at %" PRId64 ", next slot %" PRId64 ", next due %" PRId64 "\n",
				l->o.seed, l->now, l->wake.next_slot, l->wake.next_due);
			abort();
		}
		take_ends(l);
		planning = l->wake.next_slot != USEC_NEVER && l->wake.next_slot - SLOTS_LOOKAHEAD <= l->now;
		if (!planning)
			say_planned(l);
		if (l->wake.pause_end <= l->now)
			end_pauses(l);
		else if (l->wake.expiry < l->now)
			expire(l);
		else if (planning)
			plan(l);
		else if (claimable && l->wake.next_due <= l->now && life_room(l) > 0)
			claimable = claim(l);
		else
			break;
	}
}

usec_t life_engine_alarm(const struct life *l)
{
	usec_t at = USEC_NEVER;

	if (l->wake.next_slot != USEC_NEVER)
		at = l->wake.next_slot - SLOTS_LOOKAHEAD;
	if (life_room(l) > 0 && l->wake.next_due < at)
		at = l->wake.next_due;
	if (l->wake.expiry != USEC_NEVER && l->wake.expiry + 1 < at)
		at = l->wake.expiry + 1;
	return l->wake.pause_end < at ? l->wake.pause_end : at;
}
