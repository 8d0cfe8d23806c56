/* SPDX-License-Identifier: Apache-2.0 */
/* The automatic limit of concurrent runs, over hours of simulated load figures. */
#include "base/auto.h"
#include "base/io.h"
#include "base/text.h"
#include "core/decide/capacity.h"
#include "daemon/schedule/machine_load.h"
#include "unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define T0 (1000 * USEC_SEC)
#define STEP (250 * USEC_MSEC)

/* A machine without pressure. */
static struct capacity_view calm(usec_t now, size_t in_flight, bool waiting)
{
	return (struct capacity_view){.now = now, .machine = {{500, 1000, 0, 0}}, .in_flight = in_flight, .waiting = waiting};
}

static struct capacity_view pressed(usec_t now, size_t in_flight, enum machine_figure f, int64_t percent)
{
	struct capacity_view v = calm(now, in_flight, true);

	v.machine.thousandths[f] = percent * 1000;
	return v;
}

/* Steps every 250 ms with all of the limit in use; returns the time afterwards. */
static usec_t run_full(struct capacity *c, usec_t from, usec_t lasts, enum machine_figure f, int64_t percent)
{
	for (usec_t t = from; t < from + lasts; t += STEP) {
		struct capacity_view v = pressed(t, c->limit, f, percent);

		capacity_step(c, &v);
	}
	return from + lasts;
}

static void an_idle_machine_reaches_the_ceiling_within_a_second(void **state)
{
	struct capacity c;

	(void)state;
	capacity_init(&c, 2, CAPACITY_CEILING);
	assert_int_equal(c.limit, 64);
	run_full(&c, T0, USEC_SEC, MACHINE_CPU, 10);
	assert_int_equal(c.limit, 512);
	assert_int_equal(c.why, CAPACITY_RAISED);
	assert_int_equal(capacity_again(&c, T0 + USEC_SEC), USEC_NEVER);
}

static void the_limit_does_not_change_while_no_run_waits(void **state)
{
	struct capacity c;

	(void)state;
	capacity_init(&c, 4, CAPACITY_CEILING);
	for (usec_t t = T0; t < T0 + 2 * USEC_HOUR; t += USEC_SEC) {
		struct capacity_view idle = calm(t, 0, false), some = calm(t, c.limit - 1, true);

		assert_false(capacity_step(&c, &idle));
		assert_false(capacity_step(&c, &some)); /* there is room */
	}
	assert_int_equal(c.limit, 64);
	assert_int_equal(c.why, CAPACITY_START);
}

static void memory_pressure_lowers_the_limit_to_the_number_of_cores(void **state)
{
	struct capacity c;
	usec_t t;

	(void)state;
	capacity_init(&c, 4, CAPACITY_CEILING);
	t = run_full(&c, T0, USEC_SEC, MACHINE_CPU, 10);
	t = run_full(&c, t, 2 * USEC_MIN, MACHINE_MEMORY, 30);
	assert_int_equal(c.limit, 4);
	assert_int_equal(c.why, CAPACITY_MEMORY);
	run_full(&c, t, USEC_HOUR, MACHINE_MEMORY, 30);
	assert_int_equal(c.limit, 4);
}

static void disk_pressure_lowers_the_limit_less_and_cpu_pressure_to_the_initial_limit(void **state)
{
	struct capacity c;
	usec_t t;

	(void)state;
	capacity_init(&c, 4, CAPACITY_CEILING);
	t = run_full(&c, T0, USEC_SEC, MACHINE_CPU, 10);
	t = run_full(&c, t, 10 * USEC_MIN, MACHINE_CPU, 99);
	assert_int_equal(c.limit, 64);
	assert_int_equal(c.why, CAPACITY_CPU);
	run_full(&c, t, 10 * USEC_MIN, MACHINE_IO, 90);
	assert_int_equal(c.limit, 8);
	assert_int_equal(c.why, CAPACITY_IO);
}

static void cpu_pressure_by_short_runs_does_not_lower_the_limit(void **state)
{
	struct capacity c;

	(void)state;
	capacity_init(&c, 2, CAPACITY_CEILING);
	for (usec_t t = T0; t < T0 + USEC_MIN; t += STEP) {
		struct capacity_view v = pressed(t, c.limit, MACHINE_CPU, 100);

		v.ended = 1000;
		capacity_step(&c, &v);
	}
	assert_int_equal(c.limit, 512);
}

static void the_limit_drops_by_a_quarter_every_five_seconds(void **state)
{
	struct capacity_view v = pressed(T0 + 9 * USEC_SEC, 100, MACHINE_MEMORY, 50);
	struct capacity c;

	(void)state;
	capacity_init(&c, 2, CAPACITY_CEILING);
	run_full(&c, T0, USEC_SEC, MACHINE_CPU, 10);
	assert_true(capacity_step(&c, &v));
	assert_int_equal(c.limit, 75);
	v.now += 4 * USEC_SEC;
	v.in_flight = 75;
	assert_false(capacity_step(&c, &v));
	v.now += USEC_SEC;
	assert_true(capacity_step(&c, &v));
	assert_int_equal(c.limit, 57);
}

static void the_limit_rises_slowly_after_a_rest(void **state)
{
	struct capacity c;
	usec_t t;

	(void)state;
	capacity_init(&c, 8, CAPACITY_CEILING);
	t = run_full(&c, T0, 5 * USEC_MIN, MACHINE_MEMORY, 50);
	assert_int_equal(c.limit, 8);
	t = run_full(&c, t, USEC_SEC, MACHINE_MEMORY, 0);
	assert_int_equal(c.limit, 8); /* the limit dropped long ago, but the pressure lasted until now */
	capacity_init(&c, 8, CAPACITY_CEILING);
	t = run_full(&c, t, 5 * USEC_SEC + STEP, MACHINE_MEMORY, 50);
	assert_int_equal(c.limit, 72);
	t = run_full(&c, t, 14 * USEC_SEC, MACHINE_MEMORY, 0);
	assert_int_equal(c.limit, 72);
	t = run_full(&c, t, 2 * USEC_SEC, MACHINE_MEMORY, 0);
	assert_int_equal(c.limit, 91);
	run_full(&c, t, 3 * USEC_MIN, MACHINE_MEMORY, 0);
	assert_int_equal(c.limit, 512);
}

/* Memory is short whenever more than 200 runs are active: the limit must settle instead of oscillating. */
static void the_limit_does_not_oscillate(void **state)
{
	struct capacity c;
	size_t moves = 0, low = 512;

	(void)state;
	capacity_init(&c, 8, CAPACITY_CEILING);
	for (usec_t t = T0; t < T0 + 3 * USEC_HOUR; t += STEP) {
		struct capacity_view v = pressed(t, c.limit, MACHINE_MEMORY, c.limit > 200 ? 25 : c.limit > 150 ? 10 : 0);

		moves += capacity_step(&c, &v);
		if (t > T0 + USEC_MIN && c.limit < low)
			low = c.limit;
	}
	assert_true(low >= 64);
	assert_true(moves < 60);
}

static void medium_pressure_does_not_change_the_limit(void **state)
{
	struct capacity c;

	(void)state;
	capacity_init(&c, 2, CAPACITY_CEILING);
	run_full(&c, T0, USEC_HOUR, MACHINE_MEMORY, 10);
	assert_int_equal(c.limit, 64);
	assert_true(capacity_again(&c, T0 + USEC_HOUR) > T0 + USEC_HOUR);
	assert_true(capacity_again(&c, T0 + USEC_HOUR) <= T0 + USEC_HOUR + USEC_SEC);
}

static void without_pressure_figures_the_load_average_is_used(void **state)
{
	struct capacity c;
	struct capacity_view v = {.now = T0, .machine = {{2000, -1, -1, -1}}, .in_flight = 64, .waiting = true};

	(void)state;
	capacity_init(&c, 2, CAPACITY_CEILING);
	assert_true(capacity_step(&c, &v));
	assert_int_equal(c.limit, 128);
	v.in_flight = 128;
	v.now += USEC_MIN;
	v.machine.thousandths[MACHINE_LOAD] = 40000;
	assert_true(capacity_step(&c, &v));
	assert_int_equal(c.limit, 96);
	assert_int_equal(c.why, CAPACITY_LOAD);
	v.now += USEC_HOUR;
	v.in_flight = c.limit;
	v.machine = MACHINE_UNKNOWN; /* no figure is known, so the limit may rise */
	assert_true(capacity_step(&c, &v));
}

static void a_pinned_limit_never_changes(void **state)
{
	struct capacity c;

	(void)state;
	capacity_pin(&c, 3);
	run_full(&c, T0, USEC_MIN, MACHINE_CPU, 1);
	run_full(&c, T0 + USEC_MIN, USEC_MIN, MACHINE_MEMORY, 100);
	assert_int_equal(c.limit, 3);
	assert_int_equal(c.why, CAPACITY_PINNED);
	assert_int_equal(capacity_again(&c, T0), USEC_NEVER);
}

static void every_reason_has_a_text(void **state)
{
	(void)state;
	for (int i = 0; i < CAPACITY_WHY_MAX; i++)
		assert_true(capacity_why_words((enum capacity_why)i)[0]);
}

/* ---- the files ---- */

static void figures_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(machine_conditions_parse_pressure("some avg10=12.34 avg60=1.00 avg300=0.00 total=5\nfull …"), 12340);
	assert_int_equal(machine_conditions_parse_pressure("some avg10=0.00 avg60=1.00"), 0);
	assert_int_equal(machine_conditions_parse_pressure("full avg10=12.34"), -1);
	assert_int_equal(machine_conditions_parse_pressure("some avg10="), -1);
	assert_int_equal(machine_conditions_parse_pressure("some avg10=-1.0"), -1);
	assert_int_equal(machine_conditions_parse_pressure(""), -1);
	assert_int_equal(machine_conditions_parse_load("7.38 10.13 8.86 7/167 14784\n"), 7380);
	assert_int_equal(machine_conditions_parse_load("nan"), -1);
	assert_int_equal(machine_conditions_parse_load("1e99"), -1);
}

static void a_condition_on_an_unknown_figure_does_not_hold(void **state)
{
	const struct machine_figures now = {{500, 20000, -1, 0}};
	static const struct {
		const char *when;
		bool holds, known;
	} cases[] = {{"load<1", true, true}, {"load<0.5", false, true}, {"cpu<20", false, true}, {"cpu<20.001", true, true},
		{"memory<90", false, false}, {"io<1", true, true}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(strv) when = {};

		strv_add(&when, cases[i].when);
		assert_int_equal(machine_conditions_hold(&now, &when), cases[i].holds);
		assert_int_equal(machine_conditions_known(&now, &when), cases[i].known);
	}
}

static void write_text(const char *dir, const char *name, const char *text)
{
	AUTO_TEXT path = xprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void figures_are_read_once_a_second_and_missing_files_are_unknown(void **state)
{
	char dir[] = "/tmp/test-capacity-XXXXXX";
	struct machine_load m = {.root = dir};
	const struct machine_figures *now;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_text(dir, "loadavg", "0.50 0.10 0.05 1/100 9\n");
	now = machine_load_read(&m, T0);
	assert_int_equal(now->thousandths[MACHINE_LOAD], 500);
	assert_int_equal(now->thousandths[MACHINE_CPU], -1);
	write_text(dir, "loadavg", "3.00 0.10 0.05 1/100 9\n");
	assert_int_equal(machine_load_read(&m, T0 + USEC_SEC / 2)->thousandths[MACHINE_LOAD], 500);
	assert_int_equal(machine_load_read(&m, T0 + USEC_SEC)->thousandths[MACHINE_LOAD], 3000);
	{
		AUTO_TEXT file = xprintf("%s/loadavg", dir);

		unlink(file);
	}
	assert_int_equal(machine_load_read(&m, T0 + 2 * USEC_SEC)->thousandths[MACHINE_LOAD], -1);
	rmdir(dir);
	assert_true(machine_load_cores() >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_idle_machine_reaches_the_ceiling_within_a_second),
		TEST(the_limit_does_not_change_while_no_run_waits),
		TEST(memory_pressure_lowers_the_limit_to_the_number_of_cores),
		TEST(disk_pressure_lowers_the_limit_less_and_cpu_pressure_to_the_initial_limit),
		TEST(cpu_pressure_by_short_runs_does_not_lower_the_limit),
		TEST(the_limit_drops_by_a_quarter_every_five_seconds),
		TEST(the_limit_rises_slowly_after_a_rest),
		TEST(the_limit_does_not_oscillate),
		TEST(medium_pressure_does_not_change_the_limit),
		TEST(without_pressure_figures_the_load_average_is_used),
		TEST(a_pinned_limit_never_changes),
		TEST(every_reason_has_a_text),
		TEST(figures_are_parsed),
		TEST(a_condition_on_an_unknown_figure_does_not_hold),
		TEST(figures_are_read_once_a_second_and_missing_files_are_unknown),
	};

	return RUN_TESTS(tests);
}
