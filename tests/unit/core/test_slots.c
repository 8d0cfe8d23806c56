/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots become runs and which are missed, on a clock that the test moves. */
#include "base/auto.h"
#include "core/time/clock_trust.h"
#include "core/time/slots.h"
#include "unit/unit.h"

#define SEC USEC_SEC
#define ENOUGH INT64_C(1000000)

static const struct slot_policy none = {{CATCHUP_NONE, 0}, false}, latest = {{CATCHUP_LATEST, 1}, false},
				all = {{CATCHUP_ALL, CATCHUP_ALL_MAX}, false}, always = {{CATCHUP_NONE, 0}, true};

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

static void plan(struct steady *s, const struct slot_policy *policy, usec_t first, usec_t now, usec_t horizon,
	struct slot_plan *ret)
{
	struct slot_walk walk = {};
	int64_t steps = ENOUGH;

	assert_true(slots_plan(steady_next, s, policy, first, now, horizon, &walk, &steps, ret));
	assert_true(walk.from == 0);
}

static void slots_ahead_become_runs_each(void **state)
{
	struct steady s = {SEC, USEC_LAST};
	struct slot_plan p;

	(void)state;
	plan(&s, &latest, 101 * SEC, 100 * SEC + 1, 105 * SEC, &p);
	assert_int_equal(p.n, 5);
	for (size_t i = 0; i < p.n; i++) {
		assert_true(p.v[i].first == (usec_t)(101 + i) * SEC && !p.v[i].missed);
		assert_int_equal(p.v[i].count, 1);
	}
	assert_true(p.next == 106 * SEC);
}

/* A thousand minutes passed, of which the last is three seconds old. */
static void each_word_of_catch_up_has_its_runs_and_one_range(void **state)
{
	static const struct {
		struct slot_policy policy;
		int64_t runs;
	} rows[] = {
		{{{CATCHUP_NONE, 0}, false}, 0},
		{{{CATCHUP_LATEST, 1}, false}, 1},
		{{{CATCHUP_ALL, 1}, false}, 1},
		{{{CATCHUP_ALL, 7}, false}, 7},
		{{{CATCHUP_ALL, 999}, false}, 999},
		{{{CATCHUP_ALL, 1000}, false}, 1000},
	};
	struct steady s = {60 * SEC, USEC_LAST};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		int64_t missed = 1000 - rows[i].runs;
		struct slot_plan p;
		size_t at = 0;

		plan(&s, &rows[i].policy, 60 * SEC, 60003 * SEC, 60008 * SEC, &p);
		assert_int_equal(p.n, (missed > 0) + rows[i].runs);
		if (missed > 0) {
			assert_true(p.v[0].missed && p.v[0].first == 60 * SEC && p.v[0].last == missed * 60 * SEC);
			assert_int_equal(p.v[at++].count, missed);
		}
		for (int64_t n = missed + 1; n <= 1000; n++, at++)
			assert_true(!p.v[at].missed && p.v[at].first == n * 60 * SEC && p.v[at].count == 1);
		assert_true(p.next == 60060 * SEC);
	}
}

static void a_slot_that_is_seconds_late_is_not_missed_yet(void **state)
{
	struct steady s = {60 * SEC, USEC_LAST};
	struct slot_plan p;

	(void)state;
	plan(&s, &none, 60 * SEC, 122 * SEC, 127 * SEC, &p);
	assert_int_equal(p.n, 2);
	assert_true(p.v[0].missed && p.v[0].first == 60 * SEC);
	assert_true(!p.v[1].missed && p.v[1].first == 120 * SEC);
	plan(&s, &none, 60 * SEC, 122 * SEC + 1, 127 * SEC, &p);
	assert_int_equal(p.n, 1);
	assert_true(p.v[0].missed && p.v[0].count == 2);
}

static void a_slot_missed_by_more_than_a_day_is_skipped_unless_it_is_the_only_one(void **state)
{
	struct steady weekly = {7 * USEC_DAY, USEC_LAST}, ended = {7 * USEC_DAY, 7 * USEC_DAY};
	struct slot_plan p;

	(void)state;
	plan(&weekly, &latest, 7 * USEC_DAY, 8 * USEC_DAY, 8 * USEC_DAY, &p);
	assert_true(p.n == 1 && !p.v[0].missed);
	plan(&weekly, &latest, 7 * USEC_DAY, 8 * USEC_DAY + 1, 10 * USEC_DAY, &p);
	assert_true(p.n == 1 && p.v[0].missed && p.next == 14 * USEC_DAY);
	plan(&ended, &latest, 7 * USEC_DAY, 8 * USEC_DAY + 1, 10 * USEC_DAY, &p);
	assert_true(p.n == 1 && p.v[0].missed && p.next == 0);
	/* asked for all of them, their age does not count */
	plan(&weekly, &all, 7 * USEC_DAY, 22 * USEC_DAY, 22 * USEC_DAY, &p);
	assert_true(p.n == 3 && !p.v[0].missed && !p.v[2].missed);
	/* a job for one instant is not given up, however late and whatever was asked for */
	plan(&ended, &always, 7 * USEC_DAY, 400 * USEC_DAY, 400 * USEC_DAY, &p);
	assert_true(p.n == 1 && !p.v[0].missed && p.next == 0);
}

static void a_month_of_missed_seconds_takes_several_steps_and_one_row(void **state)
{
	struct steady s = {SEC, USEC_LAST};
	usec_t now = 30 * USEC_DAY;
	struct slot_walk walk = {};
	struct slot_plan p;
	int rounds = 0;

	(void)state;
	for (;;) {
		int64_t steps = 100000;

		rounds++;
		now += SEC; /* time does not stand still meanwhile */
		if (slots_plan(steady_next, &s, &latest, SEC, now, now, &walk, &steps, &p))
			break;
		assert_true(p.n == 0 && p.next == SEC && steps <= 0);
	}
	assert_int_equal(rounds, 26);
	assert_int_equal(p.n, 2);
	assert_true(p.v[0].missed && p.v[0].first == SEC && p.v[0].last == now - SEC);
	assert_int_equal(p.v[0].count, now / SEC - 1);
	assert_true(!p.v[1].missed && p.v[1].first == now);
}

/* A planner that wakes at odd moments, over a day, with outages: each slot exactly once. */
static void no_slot_is_lost_or_doubled_whenever_the_planner_wakes(void **state)
{
	static const struct slot_policy *const policies[] = {&none, &latest, &all};

	(void)state;
	for (size_t k = 0; k < ELEMENTS(policies); k++) {
		struct steady s = {7 * SEC, 2 * USEC_DAY};
		usec_t slot = 7 * SEC, now = 0, expected = 7 * SEC;
		uint64_t seed = 42;

		while (slot) {
			struct slot_plan p;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			now += (usec_t)(seed >> 33) % ((seed >> 60) == 0 ? 4000 * SEC : 9 * SEC);
			if (slot > now + 5 * SEC)
				continue;
			plan(&s, policies[k], slot, now, now + 5 * SEC, &p);
			for (size_t i = 0; i < p.n; i++) {
				assert_true(p.v[i].first == expected);
				assert_true(p.v[i].last == expected + (p.v[i].count - 1) * 7 * SEC);
				expected = p.v[i].last + 7 * SEC;
			}
			slot = p.next;
		}
		assert_true(expected > s.last);
	}
}

/* Six seconds had become runs when the daemon died; it is back so many seconds after the first of them. */
static void planned_slots_that_passed_unseen_obey_catch_up_too(void **state)
{
	static const struct {
		struct slot_policy policy;
		usec_t period, back_after;
		size_t missed;
	} rows[] = {
		{{{CATCHUP_LATEST, 1}, false}, 1, 1, 0}, {{{CATCHUP_LATEST, 1}, false}, 1, 2, 0},
		{{{CATCHUP_NONE, 0}, false}, 1, 4, 2}, {{{CATCHUP_NONE, 0}, false}, 1, 100, 6},
		{{{CATCHUP_LATEST, 1}, false}, 1, 100, 6}, {{{CATCHUP_LATEST, 1}, false}, 10, 59, 5},
		{{{CATCHUP_ALL, 1000}, false}, 1, 100, 0}, {{{CATCHUP_ALL, 90}, false}, 1, 92, 3},
		{{{CATCHUP_ALL, 3}, false}, 1, 100, 6}, {{{CATCHUP_NONE, 0}, true}, 1, 100000, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct steady s = {rows[i].period * SEC, USEC_LAST};
		usec_t slots[6], first = 1000 * SEC, now = first + rows[i].back_after * SEC;

		for (size_t k = 0; k < 6; k++)
			slots[k] = first + (usec_t)k * s.period;
		/* those that are still to come are not asked about */
		assert_int_equal(slots_missed(steady_next, &s, &rows[i].policy, slots,
					 now < slots[5] ? (size_t)((now - first) / s.period) + 1 : 6, slots[5] + s.period, now),
			rows[i].missed);
	}
}

static void a_planned_slot_is_given_up_after_a_day_when_another_comes(void **state)
{
	struct steady weekly = {7 * USEC_DAY, USEC_LAST};
	usec_t slot = 7 * USEC_DAY;

	(void)state;
	assert_int_equal(slots_missed(steady_next, &weekly, &latest, &slot, 1, 2 * slot, slot + USEC_DAY), 0);
	assert_int_equal(slots_missed(steady_next, &weekly, &latest, &slot, 1, 2 * slot, slot + USEC_DAY + 1), 1);
	assert_int_equal(slots_missed(steady_next, &weekly, &latest, &slot, 1, 0, slot + USEC_HOUR), 0);
}

static void the_slot_before_is_found_by_looking_back(void **state)
{
	static const usec_t periods[] = {SEC, 7 * SEC, USEC_HOUR, 40 * USEC_DAY};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(periods); i++) {
		struct steady s = {periods[i], USEC_LAST};
		usec_t at = 1000 * periods[i], found = 0;

		assert_true(slot_before(steady_next, &s, at, 1, &found));
		assert_true(found == at - periods[i]);
		assert_true(slot_before(steady_next, &s, at + 1, 1, &found));
		assert_true(found == at);
		assert_false(slot_before(steady_next, &s, at, at - periods[i] + 1, &found));
	}
}

static void a_clock_is_waited_for_after_a_boot_and_never_believed_before_2025(void **state)
{
	static const struct {
		usec_t now, up, began;
		bool synchronised;
		enum clock_trust trust;
	} rows[] = {
		{CLOCK_FLOOR, 0, 0, true, CLOCK_GOOD},
		{CLOCK_FLOOR, 0, 0, false, CLOCK_UNSURE},
		{CLOCK_FLOOR, 30 * SEC - 1, 0, false, CLOCK_UNSURE},
		{CLOCK_FLOOR, 30 * SEC, 0, false, CLOCK_GOOD},
		{CLOCK_FLOOR, 119 * SEC, 90 * SEC, false, CLOCK_UNSURE}, /* the boot took long: the wait begins with us */
		{CLOCK_FLOOR, 120 * SEC, 90 * SEC, false, CLOCK_GOOD},
		{CLOCK_FLOOR, 180 * SEC, 180 * SEC, false, CLOCK_GOOD},  /* no time service will come any more */
		{CLOCK_FLOOR - 1, USEC_DAY, USEC_DAY, true, CLOCK_WRONG},
		{0, 0, 0, false, CLOCK_WRONG},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		assert_int_equal(clock_trust_judge(rows[i].now, rows[i].up, rows[i].began, rows[i].synchronised, 30 * SEC),
			rows[i].trust);
}

static void a_jump_is_an_alarm_slept_through_or_a_clock_set_back(void **state)
{
	static const struct {
		usec_t seen, alarm, now;
		enum clock_trust_jump jump;
	} rows[] = {
		{100, 105, 105, JUMP_NONE}, {100, 105, 110, JUMP_NONE}, {100, 105, 111, JUMP_AHEAD},
		{100, USEC_NEVER / SEC, 100000, JUMP_NONE}, {100, 105, 99, JUMP_NONE}, {100, 105, 40, JUMP_NONE},
		{100, 105, 39, JUMP_BACK},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		assert_int_equal(clock_trust_jump(rows[i].seen * SEC,
					 rows[i].alarm == USEC_NEVER / SEC ? USEC_NEVER : rows[i].alarm * SEC,
					 rows[i].now * SEC),
			rows[i].jump);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(slots_ahead_become_runs_each),
		TEST(each_word_of_catch_up_has_its_runs_and_one_range),
		TEST(a_slot_that_is_seconds_late_is_not_missed_yet),
		TEST(a_slot_missed_by_more_than_a_day_is_skipped_unless_it_is_the_only_one),
		TEST(a_month_of_missed_seconds_takes_several_steps_and_one_row),
		TEST(no_slot_is_lost_or_doubled_whenever_the_planner_wakes),
		TEST(planned_slots_that_passed_unseen_obey_catch_up_too),
		TEST(a_planned_slot_is_given_up_after_a_day_when_another_comes),
		TEST(the_slot_before_is_found_by_looking_back),
		TEST(a_clock_is_waited_for_after_a_boot_and_never_believed_before_2025),
		TEST(a_jump_is_an_alarm_slept_through_or_a_clock_set_back),
	};

	return RUN_TESTS(tests);
}
