/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of duration statistics: percentiles, and what counts as unusual. */
#include "core/job/durations.h"
#include "unit/unit.h"

static void no_run_gives_no_figure(void **state)
{
	struct durations d;

	(void)state;
	durations_compute(NULL, 0, &d);
	assert_true(d.known);
	assert_int_equal(d.count, 0);
	assert_int_equal(d.ended, 0);
	assert_int_equal(d.unusual, DURATION_USUAL);
}

static void percentiles_use_the_nearest_rank_of_successful_runs(void **state)
{
	struct duration_sample v[101];
	struct durations d;

	(void)state;
	for (size_t i = 0; i < 100; i++) /* 37 and 100 have no common factor: 1..100 in another order */
		v[i] = (struct duration_sample){((usec_t)(i * 37 % 100) + 1) * USEC_SEC, true};
	v[100] = (struct duration_sample){USEC_HOUR, false};
	durations_compute(v, 101, &d);
	assert_int_equal(d.count, 100);
	assert_int_equal(d.ended, 101);
	assert_int_equal(d.p50, 50 * USEC_SEC);
	assert_int_equal(d.p95, 95 * USEC_SEC);
	assert_int_equal(d.last, 1 * USEC_SEC);
	durations_compute(v, 1, &d);
	assert_int_equal(d.p50, USEC_SEC);
	assert_int_equal(d.p95, USEC_SEC);
}

static void only_the_newest_runs_are_used(void **state)
{
	struct duration_sample v[DURATIONS_RUNS + 50];
	struct durations d;

	(void)state;
	for (size_t i = 0; i < DURATIONS_RUNS + 50; i++)
		v[i] = (struct duration_sample){i < DURATIONS_RUNS ? USEC_SEC : USEC_HOUR, true};
	durations_compute(v, DURATIONS_RUNS + 50, &d);
	assert_int_equal(d.count, DURATIONS_RUNS);
	assert_int_equal(d.p95, USEC_SEC);
}

static enum duration_unusual judge(usec_t last, bool succeeded, usec_t usual, size_t earlier)
{
	struct duration_sample v[20] = {{last, succeeded}};
	struct durations d;

	for (size_t i = 1; i <= earlier; i++)
		v[i] = (struct duration_sample){usual, true};
	durations_compute(v, earlier + 1, &d);
	return d.unusual;
}

static void a_last_run_far_outside_is_unusual(void **state)
{
	(void)state;
	assert_int_equal(judge(21 * USEC_SEC, true, 10 * USEC_SEC, 5), DURATION_LONG);
	assert_int_equal(judge(21 * USEC_SEC, false, 10 * USEC_SEC, 5), DURATION_LONG);
	assert_int_equal(judge(20 * USEC_SEC, true, 10 * USEC_SEC, 5), DURATION_USUAL);
	assert_int_equal(judge(4 * USEC_SEC, true, 10 * USEC_SEC, 5), DURATION_SHORT);
	/* a failed run often ends early; that is not a figure about the duration */
	assert_int_equal(judge(4 * USEC_SEC, false, 10 * USEC_SEC, 5), DURATION_USUAL);
	assert_int_equal(judge(5 * USEC_SEC, true, 10 * USEC_SEC, 5), DURATION_USUAL);
}

static void few_runs_or_small_differences_are_not_unusual(void **state)
{
	(void)state;
	assert_int_equal(judge(USEC_HOUR, true, USEC_SEC, DURATIONS_UNUSUAL_MIN - 1),
		DURATION_USUAL);
	assert_int_equal(judge(900 * USEC_MSEC, true, 10 * USEC_MSEC, 10), DURATION_USUAL);
	assert_int_equal(judge(10 * USEC_MSEC, true, 900 * USEC_MSEC, 10), DURATION_USUAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_run_gives_no_figure),
		cmocka_unit_test(percentiles_use_the_nearest_rank_of_successful_runs),
		cmocka_unit_test(only_the_newest_runs_are_used),
		cmocka_unit_test(a_last_run_far_outside_is_unusual),
		cmocka_unit_test(few_runs_or_small_differences_are_not_unusual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
