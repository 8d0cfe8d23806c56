/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of typed input: times and forms of schedules. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/schedule.h"
#include "jobctl/moment.h"
#include "jobctl/spec/when_args.h"
#include <string.h>

/* ---- times ---- */

/* Wednesday, 2026-11-18 12:30:00 in Berlin */
#define NOW "2026-11-18T11:30:00Z"

static char *moment(const char *text, bool back, char out[RFC3339_MAX])
{
	struct moment_how how = {.tz = "Europe/Berlin", .back = back};
	struct err e = {};
	usec_t t;

	assert_true(rfc3339_parse(NOW, &how.now, NULL));
	if (!moment_parse(text, &how, &t, &e)) {
		assert_int_equal(e.kind, ERR_INVALID);
		return strcpy(out, "refused");
	}
	return rfc3339_format(t, out);
}

static void past_times_are_the_previous_occurrence(void **state)
{
	static const struct {
		const char *text, *at;
	} cases[] = {
		{"2h", "2026-11-18T09:30:00Z"},
		{"2h ago", "2026-11-18T09:30:00Z"},
		{"1h30m ago", "2026-11-18T10:00:00Z"},
		{"1 day ago", "2026-11-17T11:30:00Z"},
		{"30 days ago",
			"2026-10-19T10:30:00Z"}, /* before the clock change, at the same local time */
		{"1 month ago", "2026-10-18T10:30:00Z"},
		{"today", "2026-11-17T23:00:00Z"},
		{" Yesterday ", "2026-11-16T23:00:00Z"},
		{"yesterday 18:00", "2026-11-17T17:00:00Z"},
		{"yesterday at noon", "2026-11-17T11:00:00Z"},
		{"tomorrow", "2026-11-18T23:00:00Z"},
		{"2026-11-16", "2026-11-15T23:00:00Z"},
		{"2026-11-16 9:15", "2026-11-16T08:15:00Z"},
		{"2026-11-16 at 9:15", "2026-11-16T08:15:00Z"},
		{"2026-11-16T09:00:00Z", "2026-11-16T09:00:00Z"},
		{"@1700000000", "2023-11-14T22:13:20Z"},
		{"monday", "2026-11-15T23:00:00Z"},
		{"wednesday", "2026-11-17T23:00:00Z"},
		{"wednesday 13:00", "2026-11-11T12:00:00Z"},
		{"9am", "2026-11-18T08:00:00Z"},
		{"9pm", "2026-11-17T20:00:00Z"},
		{"dec 24", "2025-12-23T23:00:00Z"},
		{"feb 29", "2024-02-28T23:00:00Z"},
		{"now", NOW},
		{"", "refused"},
		{"yesteday", "refused"},
		{"2 days", "2026-11-16T11:30:00Z"},
		{"2 months", "refused"},
		{"today ago", "refused"},
		{"9am 2 days ago", "refused"},
		{"2 days ago 9am", "refused"},
		{"999999999 years ago", "refused"},
		{"100 years", "refused"},
		{"36500 days ago", "refused"},
		{"@", "refused"},
	};
	char text[RFC3339_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++)
		assert_string_equal(moment(cases[i].text, true, text), cases[i].at);
}

static void future_times_are_the_next_occurrence(void **state)
{
	static const struct {
		const char *text, *at;
	} cases[] = {
		{"2h", "2026-11-18T13:30:00Z"},
		{"tomorrow 9am", "2026-11-19T08:00:00Z"},
		{"tomorrow at 9am", "2026-11-19T08:00:00Z"},
		{"9am tomorrow", "2026-11-19T08:00:00Z"},
		{"2026-12-01", "2026-11-30T23:00:00Z"},
		{"monday at 9:30", "2026-11-23T08:30:00Z"},
		{"9am", "2026-11-19T08:00:00Z"},
		{"dec 24", "2026-12-23T23:00:00Z"},
		{"yesterday", "2026-11-16T23:00:00Z"},
		{"tomorrow at", "refused"},
		{"tomorrow at friday", "refused"},
		{"tomorrow at 9am at noon", "refused"},
	};
	char text[RFC3339_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++)
		assert_string_equal(moment(cases[i].text, false, text), cases[i].at);
}

/* ---- forms of schedules ---- */

static void a_schedule_option_accepts_only_its_own_form(void **state)
{
	static const struct {
		const char *flag, *value, *use; /* NULL: accepted; "": refused for another reason */
	} cases[] = {
		{"at", "tomorrow at 9am", NULL},
		{"at", "@1700000000", NULL},
		{"at", "now + 2 days", NULL},
		{"at", "0 2 * * *", "use cron"},
		{"at", "0 0 2 * * *", "use cron"},
		{"at", "@daily", "use cron"},
		{"at", "every 5m", "use every"},
		{"at", "PT3H", "use iso"},
		{"at", "2h", "use in"},
		{"at", "after-finish 5m", "use after-finish"},
		{"at", "manual", "use manual"},
		{"at", "tomorow 9am", ""},
		{"cron", "0 2 * * *", NULL},
		{"cron", "@daily", NULL},
		{"cron", "@every 15m", NULL},
		{"cron", "tomorrow 9am", "use at"},
		{"cron", "2026-11-16T09:00:00Z", "use at"},
		{"cron", "noon", "use at"},
		{"cron", "every 5m", "use every"},
		{"cron", "R5/PT1H", "use iso"},
		{"iso", "PT3H", NULL},
		{"iso", "0 2 * * *", "use cron"},
		{"iso", "tomorrow", "use at"},
		{"every", "15m", NULL},
		{"every", "*/5 * * * *", "use cron"},
		{"in", "0 2 * * *", "use cron"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_TEXT text = NULL;
		struct err e = {};
		bool ok = when_args_parse(cases[i].flag, cases[i].value, &text, &e);

		assert_int_equal(ok, cases[i].use == NULL);
		if (!ok)
			assert_non_null(strstr(e.msg, cases[i].use));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(past_times_are_the_previous_occurrence),
		TEST(future_times_are_the_next_occurrence),
		TEST(a_schedule_option_accepts_only_its_own_form),
	};

	return RUN_TESTS(tests);
}
