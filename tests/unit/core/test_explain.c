/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules in plain English, findings of the linter, and sets of schedules. */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/schedule_set.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#include <string.h>

static const usec_t new_year = INT64_C(1704067200) * USEC_SEC; /* 2024-01-01T00:00:00Z */

static struct schedule *parsed(const char *text, const struct schedule_context *c)
{
	struct schedule *s = NULL;
	struct err e = {};

	if (!schedule_parse(text, c, &s, &e))
		fail_msg("'%s': %s", text, e.msg);
	return s;
}

static void every_form_has_its_sentence(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "30 2 * * 5L", "at 02:30 on the last Friday of every month, Europe/Berlin" },
		{ "* * * * *", "every minute, Europe/Berlin" },
		{ "* * * * * *", "every second, Europe/Berlin" },
		{ "*/10 * * * * *", "every 10 seconds, Europe/Berlin" },
		{ "*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:59 on Monday to Friday, Europe/Berlin" },
		{ "@hourly", "every hour on the hour, Europe/Berlin" },
		{ "@weekly", "at 00:00 on Sunday, Europe/Berlin" },
		{ "@yearly", "at 00:00 on the 1st of January, Europe/Berlin" },
		{ "0 */2 * * *", "every 2 hours on the hour, Europe/Berlin" },
		{ "15 */2 * * *", "at minute 15 of every 2nd hour, Europe/Berlin" },
		{ "5,35 * * * *", "at minutes 5 and 35 of every hour, Europe/Berlin" },
		{ "1-30 4,6-9 * * SUN", "at minutes 1 to 30 of hours 4 and 6 to 9 on Sunday, Europe/Berlin" },
		{ "30 */5 * * * *", "at second 30 of every 5th minute, Europe/Berlin" },
		{ "5 10 0-3 * * *", "at 00:10:05, 01:10:05, 02:10:05 and 03:10:05 every day, Europe/Berlin" },
		{ "0 0 13 * FRI", "at 00:00 on the 13th of every month, and also on Friday, Europe/Berlin" },
		{ "0 0 */2 * MON",
			"at 00:00 on every 2nd day from the 1st to the 31st of every month, but only on Monday, Europe/Berlin" },
		{ "0 9 */100,1-7 * MON", "at 09:00 on the 1st to 7th of every month, but only on Monday, Europe/Berlin" },
		{ "0 0 1,15W,L-3,LW * *", "at 00:00 on the 1st, the working day nearest the 15th, the day 3 days before the "
			"last and the last working day of every month, Europe/Berlin" },
		{ "0 0 * 2,11 MON#5", "at 00:00 on the fifth Monday of February and November, Europe/Berlin" },
		{ "0 0 1-31 * 1", "at 00:00 every day, Europe/Berlin" },
		{ "0 0 * 6-8 *", "at 00:00 every day in June to August, Europe/Berlin" },
		{ "0 0 0 1 1 * 2030-2040/3", "at 00:00 on the 1st of January, in 2030, 2033, 2036 and 2039, Europe/Berlin" },
		{ "0 0 0 1 1 * 2030-2040", "at 00:00 on the 1st of January, in 2030 to 2040, Europe/Berlin" },
		{ "H H * * *", "at 14:27 every day, Europe/Berlin" },
		{ "every 90m", "every 1 hour 30 minutes, counted from 2024-01-01T00:00:00Z" },
		{ "every 1h", "every hour, counted from 2024-01-01T00:00:00Z" },
		{ "P1M", "every month on the wall clock, counted from 2024-01-01T00:00:00Z, Europe/Berlin" },
		{ "P1Y2M3W4DT5H6M7S", "every 1 year 2 months 25 days 5 hours 6 minutes 7 seconds on the wall clock, counted "
			"from 2024-01-01T00:00:00Z, Europe/Berlin" },
		{ "R5/PT1H", "5 times, every hour, counted from 2024-01-01T00:00:00Z" },
		{ "R/2024-06-01T00:00:00Z/P2W",
			"every 2 weeks on the wall clock, the first at 2024-06-01T00:00:00Z, Europe/Berlin" },
		{ "now", "once, at 2024-01-01T00:00:00Z" },
		{ "tomorrow 9am", "once, at 2024-01-02T08:00:00Z" },
		{ "@1704067200", "once, at 2024-01-01T00:00:00Z" },
		{ "after-finish 10m", "10 minutes after the end of the last run" },
		{ "@reboot", "once after every boot of the machine" },
		{ "manual", "only when it is triggered" },
	};
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct schedule_context c = { .anchor = new_year, .id = "backup" };

	(void)state;
	assert_true(zone_cache_get(zones, "Europe/Berlin", &c.zone, NULL));
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO(schedule) *s = parsed(rows[i].text, &c);
		AUTO_DONE(buf) b = {};

		schedule_explain(s, &b);
		assert_string_equal(b.data, rows[i].says);
	}
}

static void policies_and_bounds_are_said(void **state)
{
	const struct schedule_context c = { .anchor = new_year, .gap = DST_GAP_SKIP, .fold = DST_FOLD_BOTH,
		.from = new_year + USEC_DAY, .until = new_year + 2 * USEC_DAY };
	AUTO(schedule) *fixed = parsed("30 2 * * *", &c);
	AUTO(schedule) *wild = parsed("30 * * * *", &c);
	AUTO_DONE(buf) b = {};

	(void)state;
	schedule_explain(fixed, &b);
	assert_string_equal(b.data, "at 02:30 every day, UTC; a time that the clock leaves out is skipped; a time that "
		"comes twice counts both times, not before 2024-01-02T00:00:00Z, not after 2024-01-03T00:00:00Z");
	buf_clear(&b);
	schedule_explain(wild, &b);
	assert_string_equal(b.data, "at minute 30 of every hour, UTC, not before 2024-01-02T00:00:00Z, not after "
		"2024-01-03T00:00:00Z");
}

/* ---- findings ---- */

static void gather(const char *code, const char *text, void *arg)
{
	buf_printf(arg, "%s%s", ((struct buf *)arg)->len ? " " : "", code);
	assert_true(strlen(text) > 20);
	assert_null(strchr(text, '\n'));
}

static void doubtful_schedules_are_found(void **state)
{
	static const struct {
		const char *text, *codes;
	} rows[] = {
		{ "*/35 * * * *", "uneven-step" },
		{ "*/15 * * * *", "" },
		{ "*/90 * * * *", "wide-step" },
		{ "0 */5 * * *", "uneven-step" },
		{ "* 5 * * *", "every-minute" },
		{ "* * * * * *", "every-second" },
		{ "0 0 13 * FRI", "day-or-weekday" },
		{ "0 0 */2 * MON", "day-and-weekday" },
		{ "0 12 31 * *", "short-month" },
		{ "0 12 31 12 *", "" },
		{ "0 12 28-31 * *", "" },
		{ "30 2 * * *", "dst-gap dst-fold" },
		{ "30 2 * 7 *", "" },
		{ "30 2 1 * *", "" },
		{ "15 * * * *", "" },
		{ "0 */2 * * *", "dst-gap dst-fold" },
		{ "0 12 * * *", "" },
		{ "every 35m", "" },
		{ "now", "" },
	};
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct schedule_context c = { .anchor = new_year };

	(void)state;
	assert_true(zone_cache_get(zones, "Europe/Berlin", &c.zone, NULL));
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO(schedule) *s = parsed(rows[i].text, &c);
		AUTO_DONE(buf) b = {};

		schedule_lint(s, gather, &b);
		if (strcmp(b.data ? b.data : "", rows[i].codes))
			fail_msg("'%s': found '%s', wanted '%s'", rows[i].text, b.data, rows[i].codes);
	}
}

static void a_crowded_second_is_found_from_a_thousand_jobs_on(void **state)
{
	AUTO_DONE(buf) b = {};

	(void)state;
	schedule_lint_density(new_year, SCHEDULE_DENSITY_MAX - 1, gather, &b);
	assert_null(b.data);
	schedule_lint_density(new_year, SCHEDULE_DENSITY_MAX, gather, &b);
	assert_string_equal(b.data, "crowded-second");
}

/* ---- sets ---- */

static struct schedule_set *set_of(const struct schedule_context *c, const char *const *texts, size_t n)
{
	AUTO_DONE(strv) v = {};
	struct schedule_set *s = NULL;

	for (size_t i = 0; i < n; i++)
		strv_add(&v, texts[i]);
	assert_true(schedule_set_parse(&v, c, &s, NULL));
	return s;
}
#define SET_OF(c, ...)                                                                             \
	set_of(c, (const char *const[]){ __VA_ARGS__ }, ELEMENTS(((const char *const[]){ __VA_ARGS__ })))

static void a_set_has_the_slots_of_all_and_each_once(void **state)
{
	const struct schedule_context c = { .anchor = new_year };
	AUTO(schedule_set) *s = SET_OF(&c, "0 6 * * *", "0 */6 * * *", "2024-01-01T07:00:00Z");
	static const int hours[] = { 6, 7, 12, 18, 24, 30 };
	usec_t t = 0;

	(void)state;
	assert_int_equal(schedule_set_count(s), 3);
	assert_int_equal(schedule_set_kind(s), SCHEDULE_RECURRING);
	assert_true(schedule_set_first(s, &t));
	for (size_t i = 0; i < ELEMENTS(hours); i++) {
		assert_int_equal(t, new_year + hours[i] * USEC_HOUR);
		assert_true(schedule_set_next(s, t, &t));
	}
}

static void a_set_is_of_the_kind_of_its_slots(void **state)
{
	const struct schedule_context c = { .anchor = new_year };
	AUTO(schedule_set) *none = set_of(&c, NULL, 0);
	AUTO(schedule_set) *once = SET_OF(&c, "noon");
	AUTO(schedule_set) *twice = SET_OF(&c, "noon", "teatime");
	AUTO(schedule_set) *boot = SET_OF(&c, "@reboot", "@reboot");
	AUTO(schedule_set) *mixed = SET_OF(&c, "@reboot", "@daily");
	AUTO(schedule_set) *manual = SET_OF(&c, "manual");

	(void)state;
	assert_int_equal(schedule_set_kind(none), SCHEDULE_NOW);
	assert_int_equal(schedule_set_kind(once), SCHEDULE_ONCE);
	assert_int_equal(schedule_set_kind(twice), SCHEDULE_RECURRING);
	assert_int_equal(schedule_set_kind(boot), SCHEDULE_BOOT);
	assert_int_equal(schedule_set_kind(mixed), SCHEDULE_RECURRING);
	assert_true(schedule_set_boots(mixed));
	assert_int_equal(schedule_set_kind(manual), SCHEDULE_MANUAL);
	assert_false(schedule_set_boots(manual));
}

static void after_a_run_the_earlier_of_delay_and_clock_counts(void **state)
{
	const struct schedule_context c = { .anchor = new_year };
	AUTO(schedule_set) *s = SET_OF(&c, "after-finish 10m", "0 1 * * *");
	usec_t t = 0;

	(void)state;
	assert_true(schedule_set_follows(s));
	assert_true(schedule_set_next_after_finish(s, new_year, new_year + 20 * USEC_MIN, &t));
	assert_int_equal(t, new_year + 30 * USEC_MIN);
	assert_true(schedule_set_next_after_finish(s, new_year, new_year + 55 * USEC_MIN, &t));
	assert_int_equal(t, new_year + 60 * USEC_MIN);
}

static void the_schedule_at_fault_is_named_in_a_set(void **state)
{
	const struct schedule_context c = { .anchor = new_year };
	AUTO_DONE(strv) v = {};
	struct schedule_set *s = NULL;
	struct err e = {};

	(void)state;
	strv_add(&v, "@daily");
	strv_add(&v, "0 0 30 2 *");
	assert_false(schedule_set_parse(&v, &c, &s, &e));
	assert_string_equal(e.field, "schedule[1]");
}

static void saying_the_same_twice_is_found(void **state)
{
	const struct schedule_context c = { .anchor = new_year };
	AUTO(schedule_set) *s = SET_OF(&c, "@daily", "0 0 * * *");
	AUTO_DONE(buf) b = {};
	AUTO_DONE(buf) words = {};

	(void)state;
	schedule_set_lint(s, gather, &b);
	assert_string_equal(b.data, "same-schedule");
	schedule_set_explain(s, &words);
	assert_string_equal(words.data, "at 00:00 every day, UTC; and at 00:00 every day, UTC");
}

static void a_jitter_longer_than_the_shortest_gap_is_found(void **state)
{
	static const struct {
		const char *text;
		usec_t jitter;
		bool found;
	} rows[] = {
		{"@hourly", USEC_HOUR, false},
		{"@hourly", USEC_HOUR + 1, true},
		{"0 9,10,17 * * *", 2 * USEC_HOUR, true},
		{"every 10m", 9 * USEC_MIN, false},
		{"every 10m", USEC_DAY, true},
		{"now + 1 minute", USEC_DAY, false},
		{"after-finish 10m", USEC_DAY, false},
		{"@reboot", USEC_DAY, false},
	};
	const struct schedule_context c = { .anchor = new_year };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO(schedule_set) *s = SET_OF(&c, rows[i].text);
		AUTO_DONE(buf) b = {};

		schedule_set_lint_jitter(s, rows[i].jitter, gather, &b);
		if (text_equal(b.data, "wide-jitter") != rows[i].found)
			fail_msg("'%s' with row %zu: %s", rows[i].text, i, b.data ? b.data : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_has_its_sentence),
		TEST(policies_and_bounds_are_said),
		TEST(doubtful_schedules_are_found),
		TEST(a_crowded_second_is_found_from_a_thousand_jobs_on),
		TEST(a_set_has_the_slots_of_all_and_each_once),
		TEST(a_set_is_of_the_kind_of_its_slots),
		TEST(after_a_run_the_earlier_of_delay_and_clock_counts),
		TEST(the_schedule_at_fault_is_named_in_a_set),
		TEST(saying_the_same_twice_is_found),
		TEST(a_jitter_longer_than_the_shortest_gap_is_found),
	};

	return RUN_TESTS(tests);
}
