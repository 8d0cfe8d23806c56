/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules of crontab entries have the slots of cron. */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/time/civil.h"
#include "core/time/cron.h"
#include "core/time/schedule.h"
#include "unit/core/parse_table.h"
#include "unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cron's rule for one minute, written down once more. */
static bool matches(const struct crontab_time *t, int64_t at)
{
	int of_day;
	int64_t day = civil_split(at, &of_day);
	struct civil c = civil_from_days(day);
	bool dom = t->dom >> c.day & 1, dow = t->dow >> civil_weekday(day) & 1;

	return (t->minute >> (of_day / 60 % 60) & 1) && (t->hour >> (of_day / 3600) & 1) && (t->month >> c.month & 1) &&
	       (t->dom_star || t->dow_star ? dom && dow : dom || dow);
}

static void put_field(struct buf *out, int low, int high)
{
	int items = 1 + rand() % 3;

	for (int i = 0; i < items; i++) {
		int a = low + rand() % (high - low + 1), b = low + rand() % (high - low + 1), step = 1 + rand() % 20;

		buf_str(out, i ? "," : "");
		switch (rand() % 6) {
		case 0: buf_str(out, "*"); break;
		case 1: buf_printf(out, "*/%d", step); break;
		case 2: buf_printf(out, "%d-%d", a, b); break;
		case 3: buf_printf(out, "%d-%d/%d", a, b, step); break;
		default: buf_printf(out, "%d", a);
		}
	}
	buf_char(out, ' ');
}

/* The slots of the schedule are the minutes that match, for 40 days from a random time. */
static void expect_same_slots(const struct crontab_entry *e)
{
	int64_t from = INT64_C(1767225600) + (rand() % 2000) * DAY_SECONDS + rand() % 86400, at = from;
	AUTO(schedule) *s = NULL;
	AUTO_DONE(buf) text = {};
	struct err err = {};
	usec_t next;

	crontab_schedule(e, &text);
	if (!schedule_parse(text.data, &(struct schedule_context){.accepted = true}, &s, &err))
		fail_msg("'%s' is '%s': %s", e->schedule, text.data, err.msg);
	for (int64_t minute = (from / 60 + 1) * 60; minute < from + 40 * DAY_SECONDS; minute += 60) {
		if (!matches(&e->time, minute))
			continue;
		if (!schedule_next(s, at * USEC_SEC, &next) || next != minute * USEC_SEC)
			fail_msg("'%s' is '%s': the slot at %lld is missing", e->schedule, text.data, (long long)minute);
		at = minute;
	}
	if (schedule_next(s, at * USEC_SEC, &next) && next < (from + 40 * DAY_SECONDS) / 60 * 60 * USEC_SEC)
		fail_msg("'%s' is '%s': an extra slot at %lld", e->schedule, text.data, (long long)(next / USEC_SEC));
}

static void schedules_have_the_slots_of_cron(void **state)
{
	(void)state;
	srand(20261118);
	for (int i = 0; i < 300; i++) {
		static const int ranges[5][2] = {{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}};
		AUTO_DONE(buf) text = {};
		AUTO(crontab) *t = NULL;

		for (int f = 0; f < 5; f++)
			put_field(&text, ranges[f][0], ranges[f][1]);
		buf_str(&text, "x\n");
		t = parse(text.data);
		if (!t->accepted || t->n_entries != 1)
			fail_msg("'%s' is refused", text.data);
		expect_same_slots(&t->entries[0]);
	}
}

static void fields_that_begin_with_a_star_follow_the_clock(void **state)
{
	static const struct {
		const char *fields;
		bool wild;
	} cases[] = {{"*/20 2 * * *", true}, {"30 * * * *", true}, {"30 2 * * *", false}, {"0-59 2 * * *", false},
		{"*x 2 * * *", true}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_TEXT text = xprintf("%s x\n", cases[i].fields);
		AUTO(crontab) *t = parse(text);
		struct cron c;

		assert_true(crontab_time_cron(&t->entries[0].time, &c));
		assert_int_equal(c.wild, cases[i].wild);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(schedules_have_the_slots_of_cron),
		TEST(fields_that_begin_with_a_star_follow_the_clock),
	};

	return RUN_TESTS(tests);
}
