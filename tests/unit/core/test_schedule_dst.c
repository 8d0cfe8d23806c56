/* SPDX-License-Identifier: Apache-2.0 */
/* The two odd days of the year: the table of the manual, and what each policy makes of it. */
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/schedule.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#include <string.h>

struct row {
	const char *schedule, *zone, *from, *until;
	const char *slots; /* all between from and until, without the dates they share with 'from' */
	enum dst_gap gap;
	enum dst_fold fold;
};

static const struct row rows[] = {
	/* fixed times in the gap and in the fold */
	{ "30 2 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "31T01:00:00" },
	{ "30 2 * * *", "Europe/Berlin", "2024-10-27T00:00:00Z", "2024-10-27T12:00:00Z", "27T00:30:00" },
	{ "0,30 2 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "31T01:00:00" },
	{ "0,30 2 * * *", "Europe/Berlin", "2024-10-26T23:00:00Z", "2024-10-27T12:00:00Z",
		"27T00:00:00 27T00:30:00" },
	{ "15 1-3 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z",
		"31T00:15:00 31T01:00:00 31T01:15:00" },
	{ "*/20 2 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "" },
	{ "*/20 2 * * *", "Europe/Berlin", "2024-10-26T23:00:00Z", "2024-10-27T12:00:00Z",
		"27T00:00:00 27T00:20:00 27T00:40:00 27T01:00:00 27T01:20:00 27T01:40:00" },
	{ "30 * * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T02:00:00Z", "31T00:30:00 31T01:30:00" },
	{ "0 */2 * * *", "Europe/Berlin", "2024-10-26T23:00:00Z", "2024-10-27T04:00:00Z",
		"27T00:00:00 27T01:00:00 27T03:00:00" },
	{ "0 */2 * * *", "Europe/Berlin", "2024-03-30T22:30:00Z", "2024-03-31T03:00:00Z", "30T23:00:00 31T02:00:00" },
	{ "0 0 * * *", "Africa/Cairo", "2024-04-25T00:00:00Z", "2024-04-26T12:00:00Z", "25T22:00:00" },
	{ "0 0 * * *", "America/Havana", "2024-11-03T00:00:00Z", "2024-11-03T12:00:00Z", "03T04:00:00" },
	{ "0 0 * * *", "America/St_Johns", "2006-10-29T00:00:00Z", "2006-10-29T12:00:00Z", "29T02:30:00" },
	{ "30 0 * * *", "America/St_Johns", "2006-04-02T00:00:00Z", "2006-04-02T12:00:00Z", "02T03:31:00" },
	{ "15 2 * * *", "Australia/Lord_Howe", "2024-10-05T00:00:00Z", "2024-10-05T20:00:00Z", "05T15:30:00" },
	{ "15 * * * *", "Australia/Lord_Howe", "2024-10-05T14:30:00Z", "2024-10-05T16:30:00Z", "05T14:45:00 05T16:15:00" },
	{ "45 1 * * *", "Australia/Lord_Howe", "2024-04-06T12:00:00Z", "2024-04-06T18:00:00Z", "06T14:45:00" },
	{ "45 * * * *", "Australia/Lord_Howe", "2024-04-06T14:00:00Z", "2024-04-06T16:00:00Z", "06T14:45:00 06T15:15:00" },
	{ "30 3 * * *", "Pacific/Chatham", "2024-09-28T00:00:00Z", "2024-09-28T20:00:00Z", "28T14:00:00" },
	{ "30 1 * * *", "Europe/Dublin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "31T01:00:00" },
	{ "30 1 * * *", "Europe/Dublin", "2024-10-27T00:00:00Z", "2024-10-27T12:00:00Z", "27T00:30:00" },
	{ "30 1 * * *", "Antarctica/Troll", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "31T01:00:00" },
	{ "0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T12:00:00Z", "29T19:00:00 30T19:00:00" },
	{ "0 0 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", "2012-06-01T00:00:00Z", "" },
	{ "15 0 * * *", "Africa/Monrovia", "1972-01-07T00:20:00Z", "1972-01-07T12:00:00Z", "07T00:44:30" },
	/* from inside the repeated hour, fixed jobs of it are already done */
	{ "45 2 * * *", "Europe/Berlin", "2024-10-27T01:10:00Z", "2024-10-28T12:00:00Z", "28T01:45:00" },
	/* exactly three hours are still a matter of policy */
	{ "30 3 * * *", "Antarctica/Casey", "2009-10-17T00:00:00Z", "2009-10-18T12:00:00Z", "17T18:00:00" },
	{ "30 23 * * *", "Antarctica/Casey", "2010-03-04T00:00:00Z", "2010-03-05T12:00:00Z", "04T12:30:00" },

	/* policies of the job */
	{ "30 2 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-04-01T12:00:00Z", "01T00:30:00", DST_GAP_SKIP },
	{ "15 1-3 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z",
		"31T00:15:00 31T01:15:00", DST_GAP_SKIP },
	{ "30 2 * * *", "Europe/Berlin", "2024-10-27T00:00:00Z", "2024-10-27T12:00:00Z", "27T01:30:00", DST_GAP_AFTER,
		DST_FOLD_LAST },
	{ "30 2 * * *", "Europe/Berlin", "2024-10-27T00:00:00Z", "2024-10-27T12:00:00Z", "27T00:30:00 27T01:30:00",
		DST_GAP_AFTER, DST_FOLD_BOTH },
	{ "0,30 1-3 * * *", "Europe/Berlin", "2024-10-26T22:00:00Z", "2024-10-27T12:00:00Z",
		"26T23:00:00 26T23:30:00 27T01:00:00 27T01:30:00 27T02:00:00 27T02:30:00", DST_GAP_AFTER, DST_FOLD_LAST },
	{ "45 1 * * *", "Australia/Lord_Howe", "2024-04-06T12:00:00Z", "2024-04-06T18:00:00Z", "06T15:15:00",
		DST_GAP_AFTER, DST_FOLD_LAST },
	/* a rare one: the second pass of the only day of the year */
	{ "30 2 27 10 *", "Europe/Berlin", "2024-10-27T00:40:00Z", "2024-12-27T12:00:00Z", "27T01:30:00",
		DST_GAP_AFTER, DST_FOLD_BOTH },
	/* wild schedules keep the table */
	{ "*/20 2 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", "2024-03-31T12:00:00Z", "", DST_GAP_AFTER,
		DST_FOLD_FIRST },
	{ "*/30 2 27 10 *", "Europe/Berlin", "2024-10-27T00:40:00Z", "2024-12-27T12:00:00Z", "27T01:00:00 27T01:30:00",
		DST_GAP_SKIP, DST_FOLD_LAST },
};

static usec_t at(const char *text)
{
	usec_t t = 0;

	assert_true(rfc3339_parse(text, &t, NULL));
	return t;
}

static void check(struct zone_cache *zones, const struct row *r)
{
	struct schedule_context c = { .anchor = at(r->from), .gap = r->gap, .fold = r->fold };
	AUTO(schedule) *s = NULL;
	AUTO_DONE(buf) got = {};
	char text[RFC3339_MAX];
	usec_t t = c.anchor;

	assert_true(zone_cache_get(zones, r->zone, &c.zone, NULL));
	assert_true(schedule_parse(r->schedule, &c, &s, NULL));
	while (schedule_next(s, t, &t) && t <= at(r->until))
		buf_printf(&got, "%s%.11s", got.len ? " " : "", rfc3339_format(t, text) + 8);
	if (strcmp(got.data ? got.data : "", r->slots))
		fail_msg("%s in %s from %s: got %s, wanted %s", r->schedule, r->zone, r->from, got.data, r->slots);
}

static void the_table_of_odd_days_holds(void **state)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		check(zones, &rows[i]);
}

/* ---- the edges of time ---- */

static void slots_go_on_past_2038_and_2106_and_end_with_2199(void **state)
{
	static const struct {
		const char *schedule, *zone, *after, *next; /* NULL: none */
	} edges[] = {
		{ "* * * * * *", "UTC", "2038-01-19T03:14:07Z", "2038-01-19T03:14:08Z" },
		{ "* * * * * *", "UTC", "2106-02-07T06:28:15Z", "2106-02-07T06:28:16Z" },
		{ "* * * * * *", "UTC", "2199-12-31T23:59:58Z", "2199-12-31T23:59:59Z" },
		{ "* * * * * *", "UTC", "2199-12-31T23:59:59Z", NULL },
		{ "0 0 1 1 *", "UTC", "2199-01-01T00:00:00Z", NULL },
		{ "0 0 1 1 *", "Pacific/Kiritimati", "2199-01-01T00:00:00Z", "2199-12-31T10:00:00Z" },
		{ "* * * * *", "America/New_York", "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z" },
		{ "0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" },
		{ "0 0 * 2 MON#5", "UTC", "2072-02-29T00:00:00Z", "2112-02-29T00:00:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2150-03-28T12:00:00Z", "2150-03-29T01:00:00Z" },
		{ "every 1s", "UTC", "2199-12-31T23:59:58Z", "2199-12-31T23:59:59Z" },
		{ "every 1s", "UTC", "2199-12-31T23:59:59Z", NULL },
		{ "P1D", "UTC", "2199-12-31T23:00:00Z", NULL },
		{ "P100Y", "UTC", "1971-01-01T00:00:00Z", "2070-01-01T00:00:00Z" },
		{ "0 0 0 1 1 * 2199", "UTC", "2024-01-01T00:00:00Z", "2199-01-01T00:00:00Z" },
		/* a minute of 61 seconds does not exist: 23:59:60 is the next second */
		{ "* * * * * *", "UTC", "2016-12-31T23:59:59Z", "2017-01-01T00:00:00Z" },
	};
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);

	(void)state;
	for (size_t i = 0; i < ELEMENTS(edges); i++) {
		struct schedule_context c = { .anchor = 0 };
		AUTO(schedule) *s = NULL;
		usec_t t = 0;

		assert_true(zone_cache_get(zones, edges[i].zone, &c.zone, NULL));
		assert_true(schedule_parse(edges[i].schedule, &c, &s, NULL));
		if (schedule_next(s, at(edges[i].after), &t) != (edges[i].next != NULL) ||
		    (edges[i].next && t != at(edges[i].next)))
			fail_msg("%s after %s", edges[i].schedule, edges[i].after);
	}
}

static void any_number_may_be_asked_for(void **state)
{
	static const usec_t odd[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, USEC_LAST - 1, USEC_LAST, USEC_LAST + 1,
		INT64_MAX - 1, INT64_MAX };
	static const char *const texts[] = { "* * * * * *", "0 0 29 2 *", "every 90s", "P1M", "now", "@5", "@reboot",
		"after-finish 1s", "R3/2024-01-01T00:00:00Z/P1D" };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(texts); i++)
		for (size_t k = 0; k < ELEMENTS(odd); k++) {
			const struct schedule_context c = { .anchor = odd[k], .accepted = true };
			AUTO(schedule) *s = NULL;

			assert_true(schedule_parse(texts[i], &c, &s, NULL));
			for (size_t m = 0; m < ELEMENTS(odd); m++) {
				usec_t t = 0;

				if (schedule_next(s, odd[m], &t) && (t <= odd[m] || t < 0 || t > USEC_LAST))
					fail_msg("%s after %lld: %lld", texts[i], (long long)odd[m], (long long)t);
				schedule_next_after_finish(s, odd[m], &t);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_table_of_odd_days_holds),
		TEST(slots_go_on_past_2038_and_2106_and_end_with_2199),
		TEST(any_number_may_be_asked_for),
	};

	return RUN_TESTS(tests);
}
