/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as a whole: forms told apart, first and next slots, canonical texts, refusals. */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/schedule.h"
#include "unit.h"

#include <string.h>

static usec_t at(const char *text)
{
	usec_t t = 0;

	assert_true(parse_rfc3339(text, &t, NULL));
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

static void what_is_not_a_schedule_is_refused_with_its_place(void **state)
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
	const struct schedule_context c = { .anchor = at("2024-01-31T09:00:00Z") };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct schedule *s = NULL;
		struct err e = {};

		assert_false(schedule_parse(bad[i].text, &c, &s, &e));
		assert_null(s);
		assert_string_equal(e.field, "schedule");
		if (!strstr(e.msg, bad[i].says))
			fail_msg("'%s' is refused with \"%s\"", bad[i].text, e.msg);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_has_its_slots_and_its_canonical_text),
		TEST(a_canonical_text_means_the_same_whenever_it_is_read),
		TEST(a_run_that_ended_is_followed_after_the_delay),
		TEST(what_is_not_a_schedule_is_refused_with_its_place),
		TEST(bounds_cut_the_slots_at_both_ends),
	};

	return RUN_TESTS(tests);
}
