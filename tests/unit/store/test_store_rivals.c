/* SPDX-License-Identifier: Apache-2.0 */
/* Several engines run all operations at once on one server: no deadlock, and no run is left behind. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/limits.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/op.h"
#include "store/ops/owners.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/triggers.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIVALS = 6, JOBS = 10, FEW = 3, ROUNDS = 60, HELD_MAX = 64, BATCH = 40, OWNERS = 3, NAMES = 4 };

struct rival {
	const char *where;
	char name[8];
	unsigned seed;
	pthread_t thread;
	struct store *s, *leases; /* as an engine has them */
	struct run *held[HELD_MAX]; /* owned: claimed and not ended */
	size_t n_held;
	struct op *batch[BATCH];
	size_t n;
	usec_t now;
	int failures;
	struct active *active; /* of all rivals */
};

/*
 * The active runs of each job and of the queue 'few', which has a limit. A run counts from the
 * commit of its claim until its end is submitted, so never longer than it is active in the store.
 */
struct active {
	atomic_int by_job[JOBS + 1], few;
	atomic_int overlaps, excesses; /* how often there were more than may be */
};

static unsigned dice(struct rival *r, unsigned sides)
{
	return (unsigned)rand_r(&r->seed) % sides;
}

/* Jobs of every kind. */
static struct start_policy policy_of(int64_t job)
{
	static const struct start_policy kinds[] = {
		{.overlap = OVERLAP_QUEUE, .overlap_waiting = 3, .permits = 1},
		{.overlap = OVERLAP_REPLACE, .permits = 1},
		{.overlap = OVERLAP_SKIP, .permits = 1},
		{.overlap = OVERLAP_QUEUE, .overlap_waiting = 5, .permits = 2},
		{.overlap = OVERLAP_ALLOW},
	};

	return kinds[job % (int64_t)ELEMENTS(kinds)];
}

static void active_add(struct rival *r, const struct run *run)
{
	if (run->job <= JOBS && policy_of(run->job).permits && atomic_fetch_add(&r->active->by_job[run->job], 1) >= policy_of(run->job).permits)
		r->active->overlaps++;
	if (text_equal(run->queue, "few") && atomic_fetch_add(&r->active->few, 1) >= FEW)
		r->active->excesses++;
}

static void active_remove(struct rival *r, const struct run *run)
{
	if (run->job <= JOBS && policy_of(run->job).permits)
		r->active->by_job[run->job]--;
	if (text_equal(run->queue, "few"))
		r->active->few--;
}

static void each_second(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	ret->policy = policy_of(due->job);
	plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = due->slot + USEC_SEC;
}

/* ---- what an engine does ---- */

static struct op *add(struct rival *r, struct op *op)
{
	r->batch[r->n++] = op;
	return op;
}

static void go(struct rival *r, struct store *s)
{
	struct err e = {};

	if (r->n > 0 && !batch_apply(s, r->batch, r->n, &(struct batch_wake){}, &e)) {
		print_error("%s: %s\n", r->name, e.msg);
		r->failures++;
	}
}

static void sweep(struct rival *r)
{
	for (size_t i = 0; i < r->n; i++)
		op_free(r->batch[i]);
	r->n = 0;
}

static void end_some(struct rival *r, unsigned of)
{
	for (size_t i = 0; i < r->n_held && r->n < BATCH - 6;) {
		AUTO(run) *run = NULL;
		struct op *op;

		if (dice(r, of) > 0) {
			i++;
			continue;
		}
		run = r->held[i];
		r->held[i] = r->held[--r->n_held];
		active_remove(r, run);
		if (dice(r, 4) == 0) {
			op = add(r, op_new(OP_GIVE_BACK, NULL, NULL));
			op_fill(run_give_back_op(op), .node = r->name, .run = run->id, .fence = run->fence, .due_at = r->now, .now = r->now);
		} else {
			op = add(r, op_started(run, r->now));
			run_started_op(op)->node = r->name;
		}
		op = add(r, op_ended(run, dice(r, 8) ? ATTEMPT_SUCCEEDED : ATTEMPT_LOST, r->now));
		run_ended_op(op)->node = r->name;
	}
}

static void claim_some(struct rival *r)
{
	struct op *op = add(r, op_claim(4, r->now));

	claim_op(op)->node = r->name;
}

static void take_claimed(struct rival *r)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; r->batch[i]->kind == OP_CLAIM && k < claim_op(r->batch[i])->claimed.n; k++)
			if (r->n_held < HELD_MAX) {
				r->held[r->n_held++] = STEAL(claim_op(r->batch[i])->claimed.v[k].run);
				active_add(r, r->held[r->n_held - 1]);
			}
}

static void plan_some(struct rival *r)
{
	struct op *op = add(r, op_new(OP_PLAN, NULL, NULL));

	op_fill(plan_op(op), .node = r->name, .now = r->now, .horizon = r->now, .limit = 100, .fn = each_second);
}

static void change_some(struct rival *r)
{
	int64_t job = 1 + dice(r, JOBS);
	struct op *op;

	switch (dice(r, 4)) {
	case 0:
		op = add(r, op_new(OP_PAUSE, NULL, NULL));
		op_fill(pause_op(op), .uid = -1, .job = job, .pause = {.by_name = (char *)"eve", .at = r->now});
		break;
	case 1:
		op = add(r, op_new(OP_EXPIRE, NULL, NULL));
		expired_runs_op(op)->now = r->now;
		break;
	case 2:
		op = add(r, op_new(OP_JOB_CHANGE, NULL, NULL));
		op_fill(job_change_op(op), .uid = -1, .id = job, .what = "all", .reschedule = dice(r, 2),
			.to = {.spec = "{\"command\":[\"true\"]}", .queue = dice(r, 2) ? "few" : NULL, .now = r->now,
				.next_slot = r->now + USEC_SEC, .policy = policy_of(job)});
		break;
	default:
		op = add(r, op_new(OP_RESUME, NULL, NULL));
		op_fill(resume_op(op), .uid = -1, .job = job, .now = r->now);
	}
}

static void meddle(struct rival *r)
{
	int64_t job = 1 + dice(r, JOBS);
	struct op *op;

	switch (dice(r, 7)) {
	case 0:
		op = add(r, op_new(OP_TRIGGER, NULL, NULL));
		op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .policy = policy_of(job), .now = r->now);
		break;
	case 1:
		op = add(r, op_new(OP_RUN_CANCEL, NULL, NULL));
		op_fill(run_cancel_op(op), .uid = -1, .id = 1 + dice(r, 4 * ROUNDS), .now = r->now);
		break;
	case 2:
	case 3:
	case 4:
		change_some(r);
		break;
	case 5:
		op = add(r, op_job_cancel(OP_JOB_CANCEL, JOBS / 2 + job));
		job_cancel_op(op)->running = true;
		job_cancel_op(op)->now = r->now;
		break;
	default:
		op = add(r, op_add(NULL, NULL, NULL));
		job_add_op(op)->job.policy = policy_of(job);
		job_add_op(op)->job.next_slot = job_add_op(op)->job.run_at = r->now;
	}
}

/*
 * Jobs of several owners with names that other engines take, too, in any order, together with a
 * change of a name by the number of the job.
 */
static void add_named(struct rival *r)
{
	static const char *const names[NAMES] = {"a", "b", "c", "d"};
	int64_t job;
	struct op *op;

	for (unsigned n = 1 + dice(r, 4); n > 0; n--) {
		op = add(r, op_add(names[dice(r, NAMES)], dice(r, 2) ? names[dice(r, NAMES)] : NULL, NULL));
		job_add_op(op)->job.uid = 1000 + dice(r, OWNERS);
		job_add_op(op)->job.limit = 1000;
		job_add_op(op)->job.run_at = 0;
	}
	if (dice(r, 2))
		return;
	job = 1 + dice(r, JOBS);
	op = add(r, op_new(OP_JOB_CHANGE, NULL, NULL));
	op_fill(job_change_op(op), .uid = -1, .id = job, .what = "name", .to = {.spec = "{\"command\":[\"true\"]}",
		.name = names[dice(r, NAMES)], .now = r->now, .next_slot = r->now + USEC_SEC, .policy = policy_of(job)});
}

/* Some of them are batches without another operation, which do not take the lock of all writers. */
static void name_some(struct rival *r)
{
	add_named(r);
	if (dice(r, 2)) {
		go(r, r->s);
		sweep(r);
	}
}

static void keep_lease(struct rival *r)
{
	struct op *op = add(r, op_new(OP_LEASE, NULL, NULL));
	struct err e = {};

	op_fill(lease_op(op), .node = r->name, .name = r->name, .ttl = USEC_MIN, .stands = true, .guarded = true,
		.resigns = dice(r, 3) == 0, .at = r->now);
	go(r, r->leases);
	if (op->ok && lease_op(op)->leads) {
		AUTO(op) *lead = op_new(OP_LEAD, NULL, NULL);

		op_fill(leader_op(lead), .node = r->name, .term = lease_op(op)->term, .now = r->now);
		r->failures += !batch_apply(r->s, &lead, 1, &(struct batch_wake){}, &e);
	}
	sweep(r);
}

static void *rival_main(void *arg)
{
	struct rival *r = arg;

	for (int round = 0; round < ROUNDS; round++) {
		r->now = T0 + round * USEC_SEC / 4;
		if (round % 4 == 0)
			keep_lease(r);
		name_some(r);
		end_some(r, 3);
		if (dice(r, 3) == 0)
			plan_some(r);
		if (dice(r, 3) == 0) {
			if (dice(r, 2)) { /* the ends and the plan without an operation that excludes all other writers */
				go(r, r->s);
				take_claimed(r);
				sweep(r);
			}
			meddle(r);
		}
		claim_some(r);
		go(r, r->s);
		take_claimed(r);
		sweep(r);
	}
	return NULL;
}

static void trigger_some(struct rival *r)
{
	for (int i = 0; i < 4; i++) {
		int64_t job = 1 + dice(r, JOBS);
		struct op *op = add(r, op_new(OP_TRIGGER, NULL, NULL));

		op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .policy = policy_of(job), .now = r->now);
	}
}

static void cancel_some(struct rival *r)
{
	struct op *op = add(r, op_new(OP_RUN_CANCEL, NULL, NULL));

	op_fill(run_cancel_op(op), .uid = -1, .id = 1 + dice(r, 4 * ROUNDS), .now = r->now);
}

static void *sharer_main(void *arg)
{
	struct rival *r = arg;

	keep_lease(r);
	for (int round = 0; round < 2 * ROUNDS; round++) {
		r->now = T0 + round * USEC_SEC;
		end_some(r, 2);
		if (dice(r, 6) == 0) /* triggers wait for each other, because the jobs have one owner */
			trigger_some(r);
		for (int i = 0; i < 3; i++)
			cancel_some(r);
		for (int i = 0; i < 3; i++)
			change_some(r);
		if (dice(r, 2))
			plan_some(r);
		claim_some(r);
		go(r, r->s);
		take_claimed(r);
		sweep(r);
	}
	return NULL;
}

/* Jobs without permits: only the limit of their queue keeps the claims apart. */
static void *emptier_main(void *arg)
{
	struct rival *r = arg;

	for (int round = 0; round < 2 * ROUNDS; round++) {
		r->now = T0 + round * USEC_SEC / 4;
		end_some(r, 1);
		if (round % 4 == 0)
			for (int i = 0; i < 4; i++) {
				struct op *op = add(r, op_add(NULL, NULL, NULL));

				job_add_op(op)->job.queue = "few";
			}
		go(r, r->s);
		sweep(r);
		claim_some(r);
		go(r, r->s);
		take_claimed(r);
		sweep(r);
	}
	return NULL;
}

/* ---- the tests ---- */

static void rival_open(struct rival *r, const char *where, struct active *active, int i)
{
	AUTO(op) *open = NULL;

	*r = (struct rival){.where = where, .active = active, .seed = (unsigned)(i + 1) * 7919};
	snprintf(r->name, sizeof(r->name), "r%d", i);
	r->s = open_or_fail(where, false);
	r->leases = open_or_fail(where, false);
	open = op_node_open(r->name, r->name, r->name);
	assert_true(apply_one(r->s, open));
}

/* One engine is left: all waiting runs must end. */
static void finish_all(struct rival *r)
{
	for (int64_t job = 1; job <= JOBS; job++) {
		struct op *op = add(r, op_new(OP_RESUME, NULL, NULL));

		op_fill(resume_op(op), .uid = -1, .job = job, .now = r->now);
	}
	go(r, r->s);
	sweep(r);
	r->now += USEC_HOUR;
	for (int idle = 0; idle < 3; idle = r->n_held ? 0 : idle + 1) {
		end_some(r, 1);
		claim_some(r);
		go(r, r->s);
		take_claimed(r);
		sweep(r);
	}
}

static void rival_close(struct rival *r)
{
	r->seed = 1;
	while (r->n_held > 0) {
		end_some(r, 1);
		go(r, r->s);
		sweep(r);
	}
	store_free(r->s);
	store_free(r->leases);
	assert_int_equal(r->failures, 0);
}

static void world_open(struct fixture *f)
{
	AUTO(op) *few = op_new(OP_LIMIT_SET, NULL, NULL);

	for (int i = 0; i < OWNERS; i++) {
		AUTO(op) *op = op_new(OP_OWNER, NULL, NULL);
		AUTO_TEXT name = xprintf("owner%d", i);

		op_fill(owner_op(op), .uid = 1000 + (uint32_t)i, .name = name, .now = T0);
		assert_true(apply_one(f->store, op));
		assert_int_equal(owner_op(op)->number, 1000 + i);
	}
	op_fill(limit_op(few), .scope = LIMIT_QUEUE, .key = "few", .running_given = true, .running = FEW, .now = T0);
	assert_true(apply_one(f->store, few));
	for (int i = 0; i < JOBS; i++) {
		AUTO(op) *op = op_add(NULL, NULL, NULL);

		job_add_op(op)->job.queue = i % 2 ? "few" : NULL;
		job_add_op(op)->job.policy = policy_of(i + 1);
		job_add_op(op)->job.next_slot = T0 + 1;
		assert_true(apply_one(f->store, op));
	}
}

/* Each batch keeps its locks for some time, as with a distant server, so that the batches really overlap. */
static void commits_slow(struct fixture *f)
{
	place_query(f->where, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
		"$$ BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END $$", NULL);
	place_query(f->where, "CREATE TRIGGER slow AFTER UPDATE ON writers FOR EACH ROW EXECUTE FUNCTION slow()", NULL);
}

static void commits_fast(struct fixture *f)
{
	place_query(f->where, "DROP TRIGGER slow ON writers", NULL);
	place_query(f->where, "DROP FUNCTION slow()", NULL);
}

static void rivals_run(struct fixture *f, void *(*what)(void *))
{
	struct rival rivals[RIVALS];
	struct active active = {};
	AUTO_DONE(buf) waiting = {};
	AUTO_DONE(buf) deadlocks = {};

	world_open(f);
	commits_slow(f);
	for (int i = 0; i < RIVALS; i++)
		rival_open(&rivals[i], f->where, &active, i);
	for (int i = 0; i < RIVALS; i++)
		pthread_create(&rivals[i].thread, NULL, what, &rivals[i]);
	for (int i = 0; i < RIVALS; i++)
		pthread_join(rivals[i].thread, NULL);
	commits_fast(f);
	for (int i = 1; i < RIVALS; i++)
		rival_close(&rivals[i]);
	finish_all(&rivals[0]);
	rival_close(&rivals[0]);
	place_query(f->where, "SELECT id, job, hold, reason FROM runs WHERE ended_at = 0", &waiting);
	if (waiting.len)
		fail_msg("they wait for ever: %s", waiting.data);
	assert_int_equal(active.overlaps, 0);
	assert_int_equal(active.excesses, 0);
	assert_counts_true(f->store);
	place_query(f->where, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", &deadlocks);
	assert_string_equal(deadlocks.data, "0|\n");
}

static void engines_that_do_everything_at_once_never_wait_in_a_circle(void **state)
{
	rivals_run(*state, rival_main);
}

/* No batch excludes the others: the rows of jobs and limits alone keep them apart. */
static void engines_that_share_jobs_and_a_queue_keep_limits_and_permits(void **state)
{
	rivals_run(*state, sharer_main);
}

static void engines_that_claim_from_a_queue_at_once_keep_its_limit(void **state)
{
	rivals_run(*state, emptier_main);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(engines_that_do_everything_at_once_never_wait_in_a_circle),
	STORE_TEST(engines_that_share_jobs_and_a_queue_keep_limits_and_permits),
	STORE_TEST(engines_that_claim_from_a_queue_at_once_keep_its_limit),
};
const struct suite_part store_rivals_part = {tests, ELEMENTS(tests)};
