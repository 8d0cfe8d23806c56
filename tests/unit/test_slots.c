/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots become runs, on a clock that the test moves. */
#include "base/auto.h"
#include "core/slots.h"
#include "unit.h"

#define SEC USEC_SEC

/* Every 'period' up to and with 'last'. */
struct steady {
	usec_t period, last;
};

static bool steady_next(void *arg, usec_t after, usec_t *ret)
{
	const struct steady *s = arg;
	usec_t t = (after / s->period + 1) * s->period;

	if (t > s->last)
		return false;
	*ret = t;
	return true;
}

static void slots_ahead_become_runs_each(void **state)
{
	struct steady s = {SEC, USEC_LAST};
	struct slot_plan p;

	(void)state;
	slots_plan(steady_next, &s, 101 * SEC, 100 * SEC + 1, 105 * SEC, &p);
	assert_int_equal(p.n, 5);
	for (size_t i = 0; i < p.n; i++) {
		assert_true(p.v[i].first == (usec_t)(101 + i) * SEC && !p.v[i].missed);
		assert_int_equal(p.v[i].count, 1);
	}
	assert_true(p.next == 106 * SEC);
}

static void the_latest_missed_slot_runs_and_the_others_are_one_range(void **state)
{
	struct steady s = {60 * SEC, USEC_LAST};
	struct slot_plan p;

	(void)state;
	slots_plan(steady_next, &s, 60 * SEC, 60 * 1001 * SEC, 60 * 1001 * SEC + 5 * SEC, &p);
	assert_int_equal(p.n, 2);
	assert_true(p.v[0].missed && p.v[0].first == 60 * SEC && p.v[0].last == 60 * 1000 * SEC);
	assert_int_equal(p.v[0].count, 1000);
	assert_true(!p.v[1].missed && p.v[1].first == 60 * 1001 * SEC);
	assert_true(p.next == 60 * 1002 * SEC);
}

static void a_slot_missed_by_more_than_a_day_is_skipped_when_others_follow(void **state)
{
	struct steady weekly = {7 * USEC_DAY, USEC_LAST}, once = {7 * USEC_DAY, 7 * USEC_DAY};
	struct slot_plan p;

	(void)state;
	slots_plan(steady_next, &weekly, 7 * USEC_DAY, 10 * USEC_DAY, 10 * USEC_DAY + 5 * SEC, &p);
	assert_int_equal(p.n, 1);
	assert_true(p.v[0].missed);
	assert_true(p.next == 14 * USEC_DAY);
	/* a job for one instant is not given up, however late */
	slots_plan(steady_next, &once, 7 * USEC_DAY, 10 * USEC_DAY, 10 * USEC_DAY + 5 * SEC, &p);
	assert_int_equal(p.n, 1);
	assert_false(p.v[0].missed);
	assert_true(p.next == 0);
}

static void a_year_of_missed_seconds_takes_several_steps_and_few_rows(void **state)
{
	struct steady s = {SEC, USEC_LAST};
	usec_t slot = SEC, now = 30 * USEC_DAY;
	int64_t missed = 0, run = 0;
	int rows = 0;

	(void)state;
	while (slot <= now) {
		struct slot_plan p;

		slots_plan(steady_next, &s, slot, now, now, &p);
		for (size_t i = 0; i < p.n; i++, rows++) {
			assert_true(p.v[i].first == slot);
			slot = p.v[i].last + SEC;
			*(p.v[i].missed ? &missed : &run) += p.v[i].count;
		}
		assert_true(p.next == slot);
	}
	assert_int_equal(run, 1);
	assert_int_equal(missed, 30 * 86400 - 1);
	assert_in_range(rows, 2, 20);
}

/* A planner that wakes at odd moments, over a day, with outages: each slot exactly once. */
static void no_slot_is_lost_or_doubled_whenever_the_planner_wakes(void **state)
{
	struct steady s = {7 * SEC, 2 * USEC_DAY};
	usec_t slot = 7 * SEC, now = 0, expected = 7 * SEC;
	uint64_t seed = 42;

	(void)state;
	while (slot) {
		struct slot_plan p;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		now += (usec_t)(seed >> 33) % ((seed >> 60) == 0 ? 4000 * SEC : 9 * SEC);
		if (slot > now + 5 * SEC)
			continue;
		slots_plan(steady_next, &s, slot, now, now + 5 * SEC, &p);
		for (size_t i = 0; i < p.n; i++) {
			assert_true(p.v[i].first == expected);
			assert_true(p.v[i].last == expected + (p.v[i].count - 1) * 7 * SEC);
			expected = p.v[i].last + 7 * SEC;
		}
		slot = p.next;
	}
	assert_true(expected > s.last);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(slots_ahead_become_runs_each),
		TEST(the_latest_missed_slot_runs_and_the_others_are_one_range),
		TEST(a_slot_missed_by_more_than_a_day_is_skipped_when_others_follow),
		TEST(a_year_of_missed_seconds_takes_several_steps_and_few_rows),
		TEST(no_slot_is_lost_or_doubled_whenever_the_planner_wakes),
	};

	return RUN_TESTS(tests);
}
