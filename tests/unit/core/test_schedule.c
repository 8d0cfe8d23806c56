/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as a whole: forms told apart, first and next slots, canonical texts, refusals. */
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/cron.h"
#include "core/time/schedule.h"
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static usec_t at(const char *text)
{
	usec_t t = 0;

	assert_true(rfc3339_parse(text, &t, NULL));
	return t;
}

static struct schedule *parsed(const char *text, const char *anchor)
{
	const struct schedule_context c = { .anchor = at(anchor) };
	struct schedule *s = NULL;
	struct err e = {};

	if (!schedule_parse(text, &c, &s, &e))
		fail_msg("'%s': %s", text, e.msg);
	return s;
}

struct row {
	const char *text, *anchor, *first, *second, *print;
	enum schedule_kind kind;
};
static const struct row rows[] = {
	{ "now", "2024-01-31T09:00:00Z", "2024-01-31T09:00:00Z", NULL, "2024-01-31T09:00:00Z", SCHEDULE_NOW },
	{ "now", "2024-01-31T09:00:00.25Z", "2024-01-31T09:00:01Z", NULL, "2024-01-31T09:00:01Z", SCHEDULE_NOW },
	{ "now + 5 minutes", "2024-01-31T09:00:00Z", "2024-01-31T09:05:00Z", NULL, "2024-01-31T09:05:00Z",
		SCHEDULE_ONCE },
	{ "now + 1 month", "2024-01-31T09:00:00Z", "2024-02-29T09:00:00Z", NULL, "2024-02-29T09:00:00Z",
		SCHEDULE_ONCE },
	{ "@1706691600", "2024-01-31T09:00:00Z", "2024-01-31T09:00:00Z", NULL, "2024-01-31T09:00:00Z",
		SCHEDULE_ONCE },
	{ " 2024-02-01t10:00:00.001+01:00 ", "2024-01-31T09:00:00Z", "2024-02-01T09:00:01Z", NULL,
		"2024-02-01T09:00:01Z", SCHEDULE_ONCE },
	{ "every 1h 30m", "2024-01-31T09:00:00Z", "2024-01-31T10:30:00Z", "2024-01-31T12:00:00Z",
		"PT1H30M since 2024-01-31T09:00:00Z", SCHEDULE_RECURRING },
	{ "P1M", "2024-01-31T09:00:00Z", "2024-02-29T09:00:00Z", "2024-03-31T09:00:00Z",
		"P1M since 2024-01-31T09:00:00Z", SCHEDULE_RECURRING },
	{ "R2/2024-01-31T09:00:00Z/P1M", "2024-01-01T00:00:00Z", "2024-01-31T09:00:00Z", "2024-02-29T09:00:00Z",
		"R2/2024-01-31T09:00:00Z/P1M", SCHEDULE_RECURRING },
	{ "R1/PT1H", "2024-01-31T09:00:00Z", "2024-01-31T10:00:00Z", NULL, "R1/PT1H since 2024-01-31T09:00:00Z",
		SCHEDULE_RECURRING },
	{ "after-finish 10m", "2024-01-31T09:00:00Z", "2024-01-31T09:10:00Z", NULL,
		"after-finish PT10M since 2024-01-31T09:00:00Z", SCHEDULE_RECURRING },
	{ "@reboot", "2024-01-31T09:00:00Z", NULL, NULL, "@reboot", SCHEDULE_BOOT },
	{ "manual", "2024-01-31T09:00:00Z", NULL, NULL, "manual", SCHEDULE_MANUAL },
};

static void check_row(const struct row *r, const char *text, enum schedule_kind kind, const char *anchor)
{
	AUTO(schedule) *s = parsed(text, anchor);
	AUTO_DONE(buf) b = {};
	usec_t first = 0, second = 0;

	assert_int_equal(schedule_kind(s), kind);
	assert_int_equal(schedule_first(s, &first), r->first != NULL);
	if (r->first)
		assert_int_equal(first, at(r->first));
	assert_int_equal(schedule_next(s, first, &second), r->second != NULL);
	if (r->second)
		assert_int_equal(second, at(r->second));
	schedule_print(s, &b);
	assert_string_equal(b.data, r->print);
}

static void every_form_has_its_slots_and_its_canonical_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		check_row(&rows[i], rows[i].text, rows[i].kind, rows[i].anchor);
}

static void a_canonical_text_means_the_same_whenever_it_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		enum schedule_kind kind = rows[i].kind == SCHEDULE_NOW ? SCHEDULE_ONCE : rows[i].kind;

		check_row(&rows[i], rows[i].print, kind, "2024-01-01T00:00:00Z");
	}
}

static void a_run_that_ended_is_followed_after_the_delay(void **state)
{
	AUTO(schedule) *s = parsed("after-finish 10m", "2024-01-31T09:00:00Z");
	usec_t next = 0;

	(void)state;
	assert_true(schedule_follows(s));
	assert_true(schedule_next_after_finish(s, at("2024-01-31T11:00:00.5Z"), &next));
	assert_int_equal(next, at("2024-01-31T11:10:01Z"));
}

static void assert_refused(const char *text, const char *says)
{
	const struct schedule_context c = { .anchor = at("2024-01-31T09:00:00Z") };
	struct schedule *s = NULL;
	struct err e = {};

	assert_false(schedule_parse(text, &c, &s, &e));
	assert_null(s);
	assert_string_equal(e.field, "schedule");
	if (!strstr(e.msg, says))
		fail_msg("'%s' is refused with \"%s\"", text, e.msg);
}

static void an_invalid_schedule_is_refused_with_the_position_of_the_error(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "empty schedule" },
		{ "every", "character 6" },
		{ "every 5 fortnights", "character 9: a unit" },
		{ "@0", "time is in the past" },
		{ "PT0S", "zero" },
		{ "P1DT", "character 5" },
		{ "now + 5", "character 8: a unit" },
		{ "2024-13-01T00:00:00Z", "character 6: the month" },
		{ "2024-06-01T12:00:00+0200", "character 21" },
		{ "R0/PT1H", "character 2" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_refused(bad[i].text, bad[i].says);
}

static void bounds_cut_the_slots_at_both_ends(void **state)
{
	const struct schedule_context c = {
		.anchor = at("2024-01-31T09:00:00Z"),
		.from = at("2024-02-01T00:00:00Z"),
		.until = at("2024-02-01T01:00:00Z"),
	};
	AUTO(schedule) *s = NULL;
	usec_t t = 0;

	(void)state;
	assert_true(schedule_parse("every 1h", &c, &s, NULL));
	assert_true(schedule_first(s, &t));
	assert_int_equal(t, c.from);
	assert_true(schedule_next(s, t, &t));
	assert_int_equal(t, c.until);
	assert_false(schedule_next(s, t, &t));
}

/* CPU time of one refusal, the best of some, so that a busy machine does not matter. */
static double refusal_seconds(const char *text)
{
	const struct schedule_context c = { .anchor = at("2024-01-01T00:00:00Z") };
	double best = 1e9;

	for (int i = 0; i < 5; i++) {
		clock_t start = clock();
		double spent;

		for (int k = 0; k < 20; k++) {
			struct schedule *s = NULL;
			struct err e = {};

			assert_false(schedule_parse(text, &c, &s, &e));
			assert_non_null(strstr(e.msg, "never fires before the end of 2199"));
		}
		spent = (double)(clock() - start) / CLOCKS_PER_SEC / 20;
		best = spent < best ? spent : best;
	}
	return best;
}

static void a_schedule_without_slots_is_refused_within_a_millisecond(void **state)
{
	static const char *const never[] = { "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 4 *", "0 0 L-29 2 *",
		"0 0 */20 * TUE#2", "0 0 0 29 2 * 2100", "* * * 30 2 */2", "0 0 30 2 */2", "0 0 0 1 1 * 2023" };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(never); i++)
		if (refusal_seconds(never[i]) > 0.001)
			fail_msg("%s takes %g s", never[i], refusal_seconds(never[i]));
}

static void refusals_point_at_the_field_and_the_character(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "61 * * * *", "minute '61', character 1: minute goes from 0 to 59" },
		{ "0 24 * * *", "hour '24', character 3: hour goes from 0 to 23" },
		{ "0 0 1,32 * *", "day-of-month '1,32', character 7" },
		{ "0 0 1 13 *", "month '13', character 7" },
		{ "0 0 * * MON-FRIDAY", "day-of-week 'MON-FRIDAY', character 13: not a three-letter name" },
		{ "0 0 1 MON *", "month 'MON', character 7" },
		{ "*/0 * * * *", "minute '*/0', character 3: a step of 0" },
		{ "0~59 * * * *", "character 2: random ranges are not known here; H(a-b)" },
		{ "0 0 0 1 1 * 2030-2024", "year '2030-2024', character 13: years do not run backwards" },
		{ "1,,2 * * * *", "character 3: a value is missing" },
		{ "0 0 L-31 * *", "character 7: a number from 0 to 30" },
		{ "0 0 * * MON#6", "character 13: a number from 1 to 5" },
		{ "0 0 1 ? *", "month '?', character 7: '?' stands alone" },
		{ "* * *", "5, 6 or 7 fields, not 3" },
		{ "01/02/03", "write YYYY-MM-DD" },
		{ "H(5-2) * * * *", "does not run backwards" },
		{ "H/61 * * * *", "character 3: the step of H" },
		{ "@dayly", "unknown nickname" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_refused(bad[i].text, bad[i].says);
}

static void h_spreads_jobs_and_stays_where_it_is(void **state)
{
	bool minutes[1440] = {};
	int reached = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char id[16];
		const struct schedule_context c = { .anchor = at("2024-01-01T00:00:00Z"), .id = id };
		AUTO(schedule) *s = NULL;
		usec_t t;

		snprintf(id, sizeof id, "job-%d", i);
		assert_true(schedule_parse("H H * * *", &c, &s, NULL));
		assert_true(schedule_next(s, c.anchor, &t));
		minutes[t / USEC_MIN % 1440] = true;
	}
	for (int i = 0; i < 1440; i++)
		reached += minutes[i];
	assert_int_equal(reached, 1440);
	assert_true(cron_hash("backup", CRON_SECOND) == UINT64_C(18269996893647234888));
	assert_true(cron_hash("backup", CRON_MINUTE) == UINT64_C(16566838417645889307));
}

static void a_text_that_was_accepted_may_be_over_by_now(void **state)
{
	const struct schedule_context later = { .anchor = at("2030-01-01T00:00:00Z"), .accepted = true };
	static const char *const over[] = { "2024-02-01T00:00:00Z", "@17", "0 0 0 1 1 * 2024",
		"R2/2024-01-01T00:00:00Z/P1D" };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(over); i++) {
		AUTO(schedule) *s = NULL;
		usec_t t;

		assert_true(schedule_parse(over[i], &later, &s, NULL));
		assert_false(schedule_next(s, later.anchor, &t));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_has_its_slots_and_its_canonical_text),
		TEST(a_canonical_text_means_the_same_whenever_it_is_read),
		TEST(a_run_that_ended_is_followed_after_the_delay),
		TEST(an_invalid_schedule_is_refused_with_the_position_of_the_error),
		TEST(bounds_cut_the_slots_at_both_ends),
		TEST(a_schedule_without_slots_is_refused_within_a_millisecond),
		TEST(refusals_point_at_the_field_and_the_character),
		TEST(h_spreads_jobs_and_stays_where_it_is),
		TEST(a_text_that_was_accepted_may_be_over_by_now),
	};

	return RUN_TESTS(tests);
}
