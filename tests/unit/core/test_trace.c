/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the trace context: checks and ids. */
#include "base/text.h"
#include "core/start/start_plan.h"
#include "core/job/trace.h"
#include "unit/unit.h"
#include <string.h>

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define PARENT "00-" ID "-" SPAN "-01"

static void only_exact_trace_parents_are_valid(void **state)
{
	static const char *const bad[] = {"", "00", "00-" ID "-" SPAN "-1", "00-" ID "-" SPAN "-01 ", "ff-" ID "-" SPAN "-01",
		"00-00000000000000000000000000000000-" SPAN "-01", "00-" ID "-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", "00_" ID "-" SPAN "-01", "00-" ID SPAN "--01",
		"0x-" ID "-" SPAN "-01", "00-" ID "-" SPAN "-0\n"};

	(void)state;
	assert_true(trace_parent_valid(PARENT));
	assert_true(trace_parent_valid("01-" ID "-" SPAN "-ff"));
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (trace_parent_valid(bad[i]))
			fail_msg("'%s'", bad[i]);
}

static void the_spawner_accepts_only_the_three_variables(void **state)
{
	char big[TRACE_STATE_MAX + 32] = "TRACESTATE=";

	(void)state;
	memset(big + 11, 'a', TRACE_STATE_MAX);
	assert_true(start_plan_var_valid("TRACEPARENT=" PARENT));
	assert_true(start_plan_var_valid("TRACESTATE=a=b,c=d"));
	assert_true(start_plan_var_valid("BAGGAGE=k=v;p=1"));
	assert_true(start_plan_var_valid(big));
	big[11 + TRACE_STATE_MAX] = 'a';
	assert_false(start_plan_var_valid(big));
	assert_false(start_plan_var_valid("TRACEPARENT=x"));
	assert_false(start_plan_var_valid("TRACESTATE="));
	assert_false(start_plan_var_valid("BAGGAGE=a\nLD_PRELOAD=b"));
	assert_false(start_plan_var_valid("BAGGAGE=\xc3\xa4"));
	assert_false(start_plan_var_valid("TRACEPARENTS=" PARENT));
	assert_false(start_plan_var_valid("LD_PRELOAD=x"));
}

static void ids_depend_on_store_run_and_fence_only(void **state)
{
	struct trace a, b, c;
	char one[SPAN_ID_LEN + 1], two[SPAN_ID_LEN + 1];

	(void)state;
	trace_of_run(&a, "store", 7, NULL, true, true);
	trace_of_run(&b, "store", 7, NULL, false, true);
	trace_of_run(&c, "store", 8, NULL, false, true);
	assert_string_equal(a.id, b.id);
	assert_string_equal(a.run, b.run);
	assert_string_not_equal(a.id, c.id);
	assert_string_not_equal(a.run, c.run);
	assert_int_equal(strlen(a.id), TRACE_ID_LEN);
	assert_string_equal(a.parent, "");
	trace_attempt_span("store", 7, 1, one);
	trace_attempt_span("store", 7, 2, two);
	assert_string_not_equal(one, two);
	assert_string_not_equal(one, a.run);
	trace_of_run(&c, "other", 7, NULL, false, true);
	assert_string_not_equal(a.id, c.id);
}

static void a_run_continues_the_trace_or_refers_to_it(void **state)
{
	struct trace t;

	(void)state;
	trace_of_run(&t, "store", 7, PARENT, true, false);
	assert_string_equal(t.id, ID);
	assert_string_equal(t.parent, SPAN);
	assert_string_equal(t.link_id, "");
	assert_true(t.sampled);
	trace_of_run(&t, "store", 7, "00-" ID "-" SPAN "-02", true, true);
	assert_false(t.sampled);
	trace_of_run(&t, "store", 7, PARENT, false, true);
	assert_string_not_equal(t.id, ID);
	assert_string_equal(t.parent, "");
	assert_string_equal(t.link_id, ID);
	assert_string_equal(t.link_span, SPAN);
	trace_of_run(&t, "store", 7, "00-x", true, true);
	assert_string_equal(t.link_id, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_exact_trace_parents_are_valid),
		cmocka_unit_test(the_spawner_accepts_only_the_three_variables),
		cmocka_unit_test(ids_depend_on_store_run_and_fence_only),
		cmocka_unit_test(a_run_continues_the_trace_or_refers_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
