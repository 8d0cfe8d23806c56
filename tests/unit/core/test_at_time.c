/* SPDX-License-Identifier: Apache-2.0 */
/* The times of at(1): results and messages as at 3.2.5 of Debian 12 gives them. */
#include "base/auto.h"
#include "base/err.h"
#include "base/tzfile.h"
#include "core/time/at_time.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct row {
	const char *spec, *result;
};

static const char *spelled(int64_t t, char out[64])
{
	time_t at = t;
	struct tm tm;

	strftime(out, 64, "%a %b %e %H:%M:%S %Y", localtime_r(&at, &tm));
	return out;
}

static void expect(const struct at_time_context *c, const struct row *r)
{
	AUTO_TEXT words = strdup(r->spec);
	struct err e = {};
	int64_t t = -1;
	char text[64];
	const char *got = e.msg;

	switch (at_time_parse(c, &words, 1, &t, &e)) {
	case AT_TIME_OK:
		got = spelled(t, text);
		break;
	case AT_TIME_PAST:
		got = "past";
		break;
	case AT_TIME_GARBLED:
		break;
	}
	if (strcmp(got, r->result) != 0)
		fail_msg("'%s': '%s', not '%s'", r->spec, got, r->result);
}

static void expect_all(const char *name, int64_t now, const struct row *rows, size_t n)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct at_time_context c = {.now = now};
	struct err e = {};

	if (!zone_cache_get(zones, name, &c.zone, &e))
		fail_msg("%s: %s", name, e.msg);
	setenv("TZ", name, 1);
	tzset();
	for (size_t i = 0; i < n; i++)
		expect(&c, &rows[i]);
	unsetenv("TZ");
}

/* On a Wednesday at 10:07:31. */
static const struct row workday[] = {
	{"now", "Wed Nov 18 10:07:00 2026"},
	{"now + 5 minutes", "Wed Nov 18 10:12:00 2026"},
	{"now+1hour", "Wed Nov 18 11:07:00 2026"},
	{"now + 3 weeks", "Wed Dec  9 10:07:00 2026"},
	{"now + 14 months", "Tue Jan 18 10:07:00 2028"},
	{"now + 1 year", "Thu Nov 18 10:07:00 2027"},
	{"now - 1 minute", "past"},
	{"10:07", "Thu Nov 19 10:07:00 2026"},
	{"10:08", "Wed Nov 18 10:08:00 2026"},
	{"1007", "Thu Nov 19 10:07:00 2026"},
	{"1008", "Wed Nov 18 10:08:00 2026"},
	{"9am", "Thu Nov 19 09:00:00 2026"},
	{"10:07 today", "Wed Nov 18 10:07:00 2026"},
	{"9am today", "past"},
	{"9 PM", "Wed Nov 18 21:00:00 2026"},
	{"noon", "Wed Nov 18 12:00:00 2026"},
	{"NOON", "Wed Nov 18 12:00:00 2026"},
	{"midnight", "Thu Nov 19 00:00:00 2026"},
	{"teatime", "Wed Nov 18 16:00:00 2026"},
	{"teatime tomorrow", "Thu Nov 19 16:00:00 2026"},
	{"noon monday", "Mon Nov 23 12:00:00 2026"},
	{"noon wed", "Wed Nov 25 12:00:00 2026"},
	{"next wednesday", "Wed Nov 25 10:07:00 2026"},
	{"next month", "Fri Dec 18 10:07:00 2026"},
	{"next year", "Thu Nov 18 10:07:00 2027"},
	{"10am Jul 31", "Sat Jul 31 10:00:00 2027"},
	{"10am Jul 31 28", "Mon Jul 31 10:00:00 2028"},
	{"10am Jul 31, 2028", "Mon Jul 31 10:00:00 2028"},
	{"31 July", "Sat Jul 31 10:07:00 2027"},
	{"31 jul 2028", "Mon Jul 31 10:07:00 2028"},
	{"feb 31", "Wed Mar  3 10:07:00 2027"},
	{"11/20/27", "Sat Nov 20 10:07:00 2027"},
	{"1/2/2027 ", "Sat Jan  2 10:07:00 2027"},
	{"noon 31.12.26", "Thu Dec 31 12:00:00 2026"},
	{"9:05 2027-02-28", "Sun Feb 28 09:05:00 2027"},
	{"9:05 2027-02-29", "Error in day of month. Last token seen: 2027-02-29"},
	{"112027", "Sat Nov 20 10:07:00 2027"},
	{"1122027", "Tue Jan 12 10:07:00 2027"},
	{"12312026", "Thu Dec 31 10:07:00 2026"},
	{"13012026", "Error in month number. Last token seen: 13012026"},
	{"12002026", "Mon Nov 30 10:07:00 2026"},
	{"23.59", "Wed Nov 18 23:59:00 2026"},
	{"1h30", "Thu Nov 19 01:30:00 2026"},
	{"9'15", "Thu Nov 19 09:15:00 2026"},
	{"10:15 utc", "Wed Nov 18 11:15:00 2026"},
	{"2400", "Thu Nov 19 00:00:00 2026"},
	{"24:00 tomorrow", "Fri Nov 20 00:00:00 2026"},
	{"10:60", "Wed Nov 18 11:00:00 2026"},
	{"10:61", "Problem in minutes specification. Last token seen: 10:61"},
	{"25:00", "Problem in hours specification. Last token seen: 25:00"},
	{"2500", "Problem in hours specification. Last token seen: 2500"},
	{"13pm", "Hour too large for PM. Last token seen: pm"},
	{"12am", "Thu Nov 19 00:00:00 2026"},
	{"12pm", "Wed Nov 18 12:00:00 2026"},
	{"0am", "Thu Nov 19 00:00:00 2026"},
	{"32 jan", "Error in day of month. Last token seen: jan"},
	{"5", "syntax error. Last token seen: 5"},
	{"99", "Error in day of month. Last token seen: 99"},
	{"now + 5", "syntax error. Last token seen: 5"},
	{"now + 5 mins", "syntax error. Last token seen: s"},
	{"tomorrow + 2 hours", "Thu Nov 19 12:07:00 2026"},
	{"8:00 + 1 day", "Thu Nov 19 08:00:00 2026"},
	{"8:00 + 3 hours", "Wed Nov 18 11:00:00 2026"},
	{"8:00 + 26 hours", "Thu Nov 19 10:00:00 2026"},
	{"noon + 2 foo", "syntax error. Last token seen: f"},
	{"", "syntax error. Last token seen: (empty)"},
	{"foo", "syntax error. Last token seen: f"},
	{"10:5", "syntax error. Last token seen: :"},
	{"noon noon", "syntax error. Last token seen: noon"},
	{"now tomorrow", "syntax error. Last token seen: tomorrow"},
	{"nov 18", "Wed Nov 18 10:07:00 2026"},
	{"nov 17", "Wed Nov 17 10:07:00 2027"},
	{"17 nov", "Wed Nov 17 10:07:00 2027"},
	{"jan 31 + 1 month", "Wed Mar  3 10:07:00 2027"},
	{"jan 31 + 13 months", "Wed Mar  3 10:07:00 2027"},
	{"noon, 2027", "syntax error. Last token seen: ,"},
	{"30:00", "syntax error. Last token seen: :"},
	{"11/20", "syntax error. Last token seen: 20"},
	{"2026-11-18", "Wed Nov 18 10:07:00 2026"},
	{"2026-11-17 + 1 day", "Wed Nov 18 10:07:00 2026"},
	{"4pm + 3 days", "Sat Nov 21 16:00:00 2026"},
	{"10am next week", "Wed Nov 25 10:00:00 2026"},
	{"0000", "Thu Nov 19 00:00:00 2026"},
	{"noon 1.1.1999", "past"},
	{"monday 10am", "syntax error. Last token seen: 10"},
};

static void a_specification_has_the_time_that_debian_gives_it(void **state)
{
	(void)state;
	expect_all("Europe/Berlin", 1794992851, workday, ELEMENTS(workday));
}

/* On the day before the clock goes forward. */
static const struct row before_spring[] = {
	{"2:30 tomorrow", "Sun Mar 29 01:30:00 2026"},
	{"02:30 29.03.26", "Sun Mar 29 03:30:00 2026"},
	{"now + 24 hours", "Sun Mar 29 12:00:00 2026"},
	{"now + 14 hours", "Sun Mar 29 01:00:00 2026"},
	{"3:00 tomorrow", "Sun Mar 29 03:00:00 2026"},
	{"noon tomorrow", "Sun Mar 29 12:00:00 2026"},
};

static void a_skipped_hour_has_the_time_that_debian_gives_it(void **state)
{
	(void)state;
	expect_all("Europe/Berlin", 1774695600, before_spring, ELEMENTS(before_spring));
}

/* On the day before the clock goes back. */
static const struct row before_autumn[] = {
	{"02:30 25.10.26", "Sun Oct 25 02:30:00 2026"},
	{"now + 24 hours", "Sun Oct 25 12:00:00 2026"},
	{"noon tomorrow", "Sun Oct 25 12:00:00 2026"},
	{"1:30 tomorrow + 1 hour", "Sun Oct 25 02:30:00 2026"},
};

static void a_repeated_hour_has_the_time_that_debian_gives_it(void **state)
{
	(void)state;
	expect_all("Europe/Berlin", 1792836000, before_autumn, ELEMENTS(before_autumn));
}

/* On New Year's Eve. */
static const struct row new_year[] = {
	{"now", "Thu Dec 31 23:59:00 2026"},
	{"now + 1 minute", "Fri Jan  1 00:00:00 2027"},
	{"midnight", "Fri Jan  1 00:00:00 2027"},
	{"jan 1", "Fri Jan  1 23:59:00 2027"},
	{"dec 30", "Thu Dec 30 23:59:00 2027"},
	{"5:00 utc", "Fri Jan  1 00:00:00 2027"},
	{"next month", "Sun Jan 31 23:59:00 2027"},
};

static void the_last_second_of_a_year_has_the_time_that_debian_gives_it(void **state)
{
	(void)state;
	expect_all("America/New_York", 1798779599, new_year, ELEMENTS(new_year));
}

static void words_are_joined_by_blanks(void **state)
{
	char *words[] = {(char *)"now", (char *)"+", (char *)"2", (char *)"days"};
	struct at_time_context c = {.zone = &zone_utc, .now = 1000000000};
	int64_t t = 0;

	(void)state;
	assert_int_equal(at_time_parse(&c, words, ELEMENTS(words), &t, NULL), AT_TIME_OK);
	assert_int_equal(t, 1000000000 - 1000000000 % 60 + 2 * 86400);
}

static void times_that_cannot_be_scheduled_are_refused(void **state)
{
	static const struct row rows[] = {
		{"now + 200 years", "the time is not between 1970 and 2199"},
		{"now + 99999999999 weeks", "the time is not between 1970 and 2199"},
		{"now + 99999999999 months", "Unknown increment. Last token seen: months"},
		{"now - 90000 days", "the time is not between 1970 and 2199"},
		{"noon 1.1.1900", "the time is not between 1970 and 2199"},
	};

	(void)state;
	expect_all("UTC", 1794996451, rows, ELEMENTS(rows));
}

static void a_long_text_is_refused(void **state)
{
	struct at_time_context c = {.zone = &zone_utc, .now = 1000000000};
	char text[AT_TIME_TEXT_MAX + 1] = {}, *words[] = {text};
	struct err e = {};
	int64_t t = 0;

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	assert_int_equal(at_time_parse(&c, words, 1, &t, &e), AT_TIME_GARBLED);
	assert_string_equal(e.msg, "the time has more than 1024 bytes");
}

static void the_argument_of_t_is_a_date_in_pairs_of_digits(void **state)
{
	static const struct {
		const char *text, *result; /* NULL: refused */
	} rows[] = {
		{"202612312359", "Thu Dec 31 23:59:00 2026"},
		{"2612312359.30", "Thu Dec 31 23:59:30 2026"},
		{"12312359", "Thu Dec 31 23:59:00 2026"},
		{"6901010000", NULL},           /* 1969 */
		{"7001020000", "Fri Jan  2 00:00:00 1970"},
		{"202602300000", NULL},
		{"202603290230", NULL},         /* skipped by the clock */
		{"202613010000", NULL},
		{"202612312460", NULL},
		{"2026123123", NULL},
		{"20261231235", NULL},
		{"202612312359.3", NULL},
		{"202612312359.60", NULL},
		{"2026x2312359", NULL},
		{"", NULL},
	};
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct at_time_context c = {.now = 1794996451};
	char text[64];

	(void)state;
	assert_true(zone_cache_get(zones, "Europe/Berlin", &c.zone, NULL));
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		int64_t t = 0;
		bool ok = at_time_posix(&c, rows[i].text, &t) == AT_TIME_OK;

		if (ok != (rows[i].result != NULL) || (ok && strcmp(spelled(t, text), rows[i].result) != 0))
			fail_msg("'%s': %s", rows[i].text, ok ? spelled(t, text) : "refused");
	}
	unsetenv("TZ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_specification_has_the_time_that_debian_gives_it),
		TEST(a_skipped_hour_has_the_time_that_debian_gives_it),
		TEST(a_repeated_hour_has_the_time_that_debian_gives_it),
		TEST(the_last_second_of_a_year_has_the_time_that_debian_gives_it),
		TEST(words_are_joined_by_blanks),
		TEST(times_that_cannot_be_scheduled_are_refused),
		TEST(a_long_text_is_refused),
		TEST(the_argument_of_t_is_a_date_in_pairs_of_digits),
	};

	return RUN_TESTS(tests);
}
