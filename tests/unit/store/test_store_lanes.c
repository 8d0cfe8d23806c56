/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lanes: limits of queues and owners, order, wake-up times, the cost of a backlog. */
#include "base/io.h"
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/store.h"
#include "unit/store/claim_fixture.h"
#include <string.h>

static void limit(void **state, const char *scope, const char *key, int64_t running, int64_t weight, const char *rate)
{
	struct rate r = {};
	struct err e = {};

	assert_true(!rate || policy_rate_parse(rate, &r, &e));
	sql(state, "DELETE FROM limits WHERE scope = '%s' AND key = '%s'", scope, key);
	sql(state, "INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) "
		"VALUES ('%s', '%s', %lld, %lld, %lld, %lld, %lld)", scope, key, (long long)running, (long long)weight,
		(long long)r.n, (long long)r.per, (long long)r.burst);
}

static struct batch_wake claim_wakes(struct store *s, size_t room, usec_t now, size_t *ret_n)
{
	AUTO(op) *op = op_claim(room, now);
	struct batch_wake wake = apply_all(s, &op, 1);

	assert_true(op->ok);
	*ret_n = claim_op(op)->claimed.n;
	return wake;
}

/* Counts the claimed runs of one owner. */
static size_t count_uid(const struct op *op, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < claim_op(op)->claimed.n; i++)
		n += claim_op(op)->claimed.v[i].run->uid == uid;
	return n;
}

/* ---- limits ---- */

static void a_full_queue_waits_for_an_end_and_not_for_time(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 5, .step = 1, .queue = "narrow"};
	struct batch_wake wake;
	AUTO(run) *run = NULL;
	AUTO(op) *end = NULL;
	size_t n;

	limit(state, "queue", "narrow", 2, 100, NULL);
	add_slots(s, &w);
	wake = claim_wakes(s, 10, T0 + 10, &n);
	assert_int_equal(n, 2);
	assert_int_equal(wake.next_due, USEC_NEVER); /* no time changes that */
	wake = claim_wakes(s, 10, T0 + 10, &n);
	assert_int_equal(n, 0);
	run = get_run(s, 1);
	end = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 20);
	wake = apply_all(s, &end, 1);
	assert_true(wake.next_due <= T0 + 20);
	wake = claim_wakes(s, 10, T0 + 20, &n);
	assert_int_equal(n, 1);
	assert_int_equal(wake.next_due, USEC_NEVER);
	kept_is_true(state);
}

static void an_owner_has_no_more_runs_than_allowed_in_all_queues_together(void **state)
{
	struct store *s = store_of(state);
	struct slots here = {.n = 3, .step = 1}, there = {.n = 3, .step = 1, .queue = "other"};
	struct slots another = {.n = 3, .step = 1, .uid = 2000};
	AUTO(op) *claim = op_claim(20, T0 + 10);

	limit(state, "queue", "other", 0, 100, NULL);
	limit(state, "owner", "1000", 4, 100, NULL);
	add_slots(s, &here);
	add_slots(s, &there);
	add_slots(s, &another);
	assert_true(apply_one(s, claim));
	assert_int_equal(count_uid(claim, 1000), 4);
	assert_int_equal(count_uid(claim, 2000), 3);
	kept_is_true(state);
}

static void one_owner_leaves_room_for_another(void **state)
{
	struct store *s = store_of(state);
	struct slots many = {.n = 20, .step = 1}, few = {.first = T0 + 100, .n = 1, .uid = 2000};
	AUTO(op) *first = op_claim(8, T0 + 50);
	AUTO(op) *second = op_claim(2, T0 + 100);
	struct batch_wake wake;

	claim_op(first)->owner_max = claim_op(second)->owner_max = 6;
	add_slots(s, &many);
	wake = apply_all(s, &first, 1);
	assert_int_equal(claim_op(first)->claimed.n, 6);
	assert_int_equal(wake.next_due, USEC_NEVER);
	add_slots(s, &few);
	assert_true(apply_one(s, second));
	assert_int_equal(claim_op(second)->claimed.n, 1);
	assert_int_equal(count_uid(second, 2000), 1);
	kept_is_true(state);
}

static void rates_of_queues_and_owners_say_when_to_look_again(void **state)
{
	static const struct {
		const char *scope, *key;
	} scopes[] = {{"queue", "default"}, {"owner", "1000"}};
	struct store *s = store_of(state);

	for (size_t i = 0; i < ELEMENTS(scopes); i++) {
		usec_t now = T0 + (usec_t)i * USEC_DAY;
		struct slots w = {.first = now - 10, .n = 5, .step = 1};
		struct batch_wake wake;
		size_t n;

		sql(state, "UPDATE limits SET rate_n = 0");
		sql(state, "UPDATE runs SET state = 6, ended_at = 1 WHERE ended_at = 0 AND state = 0");
		limit(state, scopes[i].scope, scopes[i].key, 0, 100, "6/1m:2");
		add_slots(s, &w);
		wake = claim_wakes(s, 10, now, &n);
		assert_int_equal(n, 2);
		assert_int_equal(wake.next_due, now + 10 * USEC_SEC);
		claim_wakes(s, 10, now + 10 * USEC_SEC - 1, &n);
		assert_int_equal(n, 0);
		claim_wakes(s, 10, now + 10 * USEC_SEC, &n);
		assert_int_equal(n, 1);
	}
}

static void a_run_that_expires_in_a_full_queue_names_the_queue(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .step = 1, .policy = {.overlap = OVERLAP_ALLOW, .deadline = USEC_MIN}};

	limit(state, "queue", "default", 1, 100, NULL);
	add_slots(s, &w);
	claim_is(state, 5, T0 + 10, "1");
	w.first = T0 + 5 * USEC_MIN; /* due after the limit was last seen */
	w.n = 1;
	add_slots(s, &w);
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 10 * USEC_MIN);
	claim_is(state, 5, T0 + 10 * USEC_MIN, "");
	states_are(state, "succeeded expired:deadline (limit) expired:deadline (limit) expired:deadline");
	kept_is_true(state);
}

/* ---- order of lanes ---- */

static void two_owners_share_the_room(void **state)
{
	struct store *s = store_of(state);
	struct slots many = {.n = 50, .step = 1}, other = {.first = T0 + 60, .n = 50, .step = 1, .uid = 2000};
	AUTO(op) *claim = op_claim(10, T0 + USEC_SEC);

	add_slots(s, &many);
	add_slots(s, &other);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 10);
	assert_int_equal(count_uid(claim, 1000), 5);
	assert_int_equal(count_uid(claim, 2000), 5);
	kept_is_true(state);
}

static void two_queues_share_by_their_weight(void **state)
{
	struct store *s = store_of(state);
	struct slots heavy = {.n = 50, .step = 1, .queue = "heavy"}, light = {.n = 50, .step = 1, .queue = "light"};
	AUTO(op) *claim = op_claim(20, T0 + USEC_SEC);
	size_t n = 0;

	limit(state, "queue", "heavy", 0, 300, NULL);
	limit(state, "queue", "light", 0, 100, NULL);
	add_slots(s, &light);
	add_slots(s, &heavy);
	assert_true(apply_one(s, claim));
	for (size_t i = 0; i < claim_op(claim)->claimed.n; i++)
		n += text_equal(claim_op(claim)->claimed.v[i].run->queue, "heavy");
	assert_int_equal(n, 15);
	kept_is_true(state);
}

static void an_old_run_of_low_priority_goes_before_a_young_one_of_high(void **state)
{
	struct store *s = store_of(state);
	struct slots low = {.first = T0 - 6 * USEC_MIN, .n = 1}, high = {.first = T0, .n = 1, .priority = 5};

	add_slots(s, &high);
	add_slots(s, &low);
	claim_is(state, 1, T0, "2");
	claim_is(state, 1, T0, "1");
}

/* ---- wake-up times ---- */

static void a_claim_reports_the_next_due_time(void **state)
{
	struct store *s = store_of(state);
	struct slots now = {.n = 2, .step = 50}, later = {.first = T0 + 30, .n = 1, .uid = 2000};
	struct batch_wake wake;
	size_t n;

	add_slots(s, &now);
	add_slots(s, &later);
	wake = claim_wakes(s, 10, T0, &n);
	assert_int_equal(n, 1);
	assert_int_equal(wake.next_due, T0 + 30);
	wake = claim_wakes(s, 10, T0 + 30, &n);
	assert_int_equal(n, 1);
	assert_int_equal(wake.next_due, T0 + 50); /* the next one in a lane that was read */
	wake = claim_wakes(s, 10, T0 + 50, &n);
	assert_int_equal(n, 1);
	assert_int_equal(wake.next_due, USEC_NEVER);
}

static void a_run_without_capacity_stays_due(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .step = 1};
	struct batch_wake wake;
	size_t n;

	add_slots(s, &w);
	wake = claim_wakes(s, 2, T0 + 10, &n);
	assert_int_equal(n, 2);
	assert_true(wake.next_due <= T0 + 10);
	wake = claim_wakes(s, 2, T0 + 10, &n);
	assert_int_equal(n, 1);
	assert_int_equal(wake.next_due, USEC_NEVER);
}

static void runs_that_come_back_are_told(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 1};
	AUTO(op) *nothing = op_claim(1, T0 + 1);
	AUTO(run) *run = NULL;
	AUTO(op) *end = NULL;
	struct batch_wake wake;

	add_slots(s, &w);
	claim_is(state, 1, T0, "1");
	run = get_run(s, 1);
	end = op_ended(run, ATTEMPT_LOST, T0 + 5);
	wake = apply_all(s, &end, 1);
	assert_int_equal(wake.next_due, T0 + 5);
	claim_is(state, 1, T0 + 5, "1");
	give_back(s, 1, T0 + 99);
	wake = apply_all(s, &nothing, 1);
	assert_int_equal(wake.next_due, T0 + 99);
}

static void a_failed_batch_forgets_what_it_knew(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .step = USEC_MIN};
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *foreign = op_claim(1, T0);
	struct op *ops[] = {claim, foreign};
	struct batch_wake wake;

	add_slots(s, &w);
	claim_op(foreign)->node = "nobody";
	wake = apply_all(s, ops, 2);
	assert_true(claim->ok);
	assert_false(foreign->ok);
	assert_true(wake.next_due <= T0 + USEC_MIN);
}

/* ---- the cost of a backlog ---- */

static const struct db_ops *real_ops;
static size_t steps;

static enum db_step counted_step(struct db *db, int query, struct err *e)
{
	steps++;
	return real_ops->step(db, query, e);
}

static size_t steps_of_claim(struct store *s, usec_t now, size_t room, size_t *ret_n)
{
	struct db_ops counting = *s->db->ops;

	real_ops = s->db->ops;
	counting.step = counted_step;
	s->db->ops = &counting;
	steps = 0;
	claim_wakes(s, room, now, ret_n);
	s->db->ops = real_ops;
	return steps;
}

#define BACKLOG 10000

static void a_backlog_of_one_job_costs_others_nothing(void **state)
{
	static const struct start_policy policies[] = {
		{.overlap = OVERLAP_ALLOW, .permits = 1},
		{.overlap = OVERLAP_SKIP, .permits = 1},
	};
	struct store *s = store_of(state);
	usec_t now = T0;

	for (size_t p = 0; p < ELEMENTS(policies); p++, now += USEC_DAY) {
		struct slots backlog = {.first = now, .n = BACKLOG, .step = 1, .policy = policies[p]};
		struct slots other = {.first = now + USEC_SEC, .n = 1, .uid = 2000};
		struct slots same_lane = {.first = now + 2 * USEC_SEC, .n = 1};
		size_t n, claims = 0, cost;
		struct batch_wake wake;

		add_slots(s, &backlog);
		add_slots(s, &other);
		cost = steps_of_claim(s, now + USEC_SEC, 8, &n);
		assert_int_equal(n, 2); /* the first of the job, and the other owner's */
		assert_true(cost < 1500);
		do {
			wake = claim_wakes(s, 8, now + USEC_SEC, &n);
			assert_int_equal(n, 0);
		} while (wake.next_due <= now + USEC_SEC && ++claims < 100);
		assert_in_range(claims, 10, 60); /* each was examined once, in chunks */
		add_slots(s, &same_lane);
		cost = steps_of_claim(s, now + 2 * USEC_SEC, 8, &n);
		assert_int_equal(n, 1);
		assert_true(cost < 60);
		sql(state, "UPDATE runs SET state = 6, ended_at = 1, hold = 0 WHERE ended_at = 0");
		sql(state, "DELETE FROM running_jobs");
		sql(state, "DELETE FROM counters");
	}
}

static void a_backlog_in_a_full_queue_costs_nothing(void **state)
{
	struct store *s = store_of(state);
	struct slots backlog = {.n = BACKLOG, .step = 1, .queue = "narrow"}, other = {.first = T0 + USEC_SEC, .n = 1};
	size_t n;

	limit(state, "queue", "narrow", 1, 100, NULL);
	add_slots(s, &backlog);
	claim_wakes(s, 8, T0 + USEC_SEC, &n);
	assert_int_equal(n, 1);
	assert_true(steps_of_claim(s, T0 + USEC_SEC, 8, &n) < 30);
	assert_int_equal(n, 0);
	add_slots(s, &other);
	assert_true(steps_of_claim(s, T0 + USEC_SEC, 8, &n) < 30);
	assert_int_equal(n, 1);
}

static void batches_do_not_pay_for_lanes(void **state)
{
	struct store *s = store_of(state);
	size_t few, many;

	for (int round = 0; round < 2; round++) {
		struct db_ops counting = *s->db->ops;
		struct slots w = {.n = 1, .first = T0 + USEC_MIN};
		AUTO(op) *add = op_add(NULL, NULL, NULL);

		real_ops = s->db->ops;
		counting.step = counted_step;
		s->db->ops = &counting;
		steps = 0;
		assert_true(apply_one(s, add));
		*(round ? &many : &few) = steps;
		s->db->ops = real_ops;
		for (uint32_t uid = 3000; !round && uid < 3100; uid++) {
			w.uid = uid;
			add_slots(s, &w);
		}
	}
	assert_true(many <= few); /* on a server the first batch reads numbers that the second one finds in the reserve */
}

/* ---- several nodes ---- */

struct world {
	struct store *stores[2];
	struct run *open[64]; /* claimed by node i % 2 */
};

static void claim_as(struct world *w, int node, usec_t now)
{
	AUTO(op) *op = op_claim(4, now);

	claim_op(op)->node = node ? "node-two" : NODE;
	assert_true(apply_one(w->stores[node], op));
	for (size_t i = 0; i < claim_op(op)->claimed.n; i++)
		for (size_t k = (size_t)node; k < ELEMENTS(w->open); k += 2)
			if (!w->open[k]) {
				w->open[k] = STEAL(claim_op(op)->claimed.v[i].run);
				break;
			}
}

static void end_as(struct world *w, size_t k, enum run_state becomes, usec_t now)
{
	AUTO(op) *op = op_ended(w->open[k], ATTEMPT_FAILED, now);

	run_ended_op(op)->node = k % 2 ? "node-two" : NODE;
	run_ended_op(op)->state = becomes;
	run_ended_op(op)->due_at = now + USEC_SEC;
	assert_true(apply_one(w->stores[k % 2], op));
	run_free(STEAL(w->open[k]));
}

static void assert_within_limits(void **state)
{
	AUTO_TEXT queue = ask(state, "SELECT count(*) FROM runs WHERE state IN (1, 2) AND queue = 'narrow'");
	AUTO_TEXT owner = ask(state, "SELECT count(*) FROM runs WHERE state IN (1, 2) AND uid = 1000");
	AUTO_TEXT jobs = ask(state, "SELECT job FROM runs WHERE state IN (1, 2) AND places > 0 "
		"GROUP BY job, places HAVING count(*) > places");

	assert_in_range(atoll(queue), 0, 5);
	assert_in_range(atoll(owner), 0, 7);
	assert_string_equal(jobs, "");
}

static void two_nodes_together_stay_within_every_limit(void **state)
{
	struct fixture *f = *state;
	struct world w = {{f->store, open_or_fail(f->where, false)}, {}};
	AUTO(op) *node = op_node_open("node-two", "two", "spawner-two");
	uint64_t seed = 7;
	size_t ended = 0;

	assert_true(apply_one(w.stores[1], node));
	limit(state, "queue", "narrow", 5, 100, NULL);
	limit(state, "owner", "1000", 7, 100, NULL);
	for (int i = 0; i < 12; i++) {
		struct slots slots = {.n = 12, .uid = i % 3 ? 1000 : 2000, .queue = i % 2 ? "narrow" : NULL,
			.policy = {.overlap = (enum overlap_word)(i % 4), .overlap_waiting = 2, .permits = i % 4 == 3 ? 2 : 1}};

		add_slots(w.stores[i % 2], &slots);
	}
	for (int step = 0; step < 160; step++) {
		usec_t now = T0 + step * USEC_SEC / 4;
		size_t k;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		claim_as(&w, step % 2, now);
		assert_within_limits(state);
		k = (seed >> 33) % ELEMENTS(w.open);
		for (size_t tries = 0; tries < ELEMENTS(w.open) && !w.open[k]; tries++)
			k = (k + 1) % ELEMENTS(w.open);
		if (w.open[k] && step % 3) {
			end_as(&w, k, seed >> 60 < 4 ? RUN_QUEUED : RUN_FAILED, now);
			ended++;
		}
		if (step % 40 == 0)
			kept_is_true(state);
	}
	assert_true(ended > 50);
	for (size_t k = 0; k < ELEMENTS(w.open); k++)
		if (w.open[k])
			end_as(&w, k, RUN_SUCCEEDED, T0 + USEC_MIN);
	kept_is_true(state);
	store_free(w.stores[1]);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_full_queue_waits_for_an_end_and_not_for_time),
	STORE_TEST(an_owner_has_no_more_runs_than_allowed_in_all_queues_together),
	STORE_TEST(one_owner_leaves_room_for_another),
	STORE_TEST(rates_of_queues_and_owners_say_when_to_look_again),
	STORE_TEST(a_run_that_expires_in_a_full_queue_names_the_queue),
	STORE_TEST(two_owners_share_the_room),
	STORE_TEST(two_queues_share_by_their_weight),
	STORE_TEST(an_old_run_of_low_priority_goes_before_a_young_one_of_high),
	STORE_TEST(a_claim_reports_the_next_due_time),
	STORE_TEST(a_run_without_capacity_stays_due),
	STORE_TEST(runs_that_come_back_are_told),
	STORE_TEST(a_failed_batch_forgets_what_it_knew),
	STORE_TEST(a_backlog_of_one_job_costs_others_nothing),
	STORE_TEST(a_backlog_in_a_full_queue_costs_nothing),
	STORE_TEST(batches_do_not_pay_for_lanes),
	STORE_TEST(two_nodes_together_stay_within_every_limit),
};
const struct suite_part store_lanes_part = {tests, ELEMENTS(tests)};
