/* SPDX-License-Identifier: Apache-2.0 */
/* A million random schedules: what is printed means the same, time moves on, and a slow model agrees. */
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/civil.h"
#include "core/time/schedule.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "unit/core/random_cron.h"
#include "unit/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCHEDULES 1000000
#define MODELLED 6000
#define MODEL_DAYS 800
#define EXPLAIN_EVERY 16

static const char *const zone_names[] = { "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
	"Pacific/Apia", "America/Santiago", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu", "Europe/Dublin",
	"Africa/Cairo", "Antarctica/Casey" };

struct world {
	struct random r;
	struct zone_cache *cache;
	const struct zone *zones[ELEMENTS(zone_names)];
};

static int open_world(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const char *seed = getenv("SEED");

	w->r.state = seed ? strtoull(seed, NULL, 0) | 1 : UINT64_C(0x5eed5eed5eed5eed);
	w->cache = zone_cache_new(tzfile_read);
	for (size_t i = 0; i < ELEMENTS(zone_names); i++)
		assert_true(zone_cache_get(w->cache, zone_names[i], &w->zones[i], NULL));
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	zone_cache_free(w->cache);
	free(w);
	return 0;
}

/* 1970 to 2100, and often near a jump of the clock. */
static usec_t draw_time(struct random *r, const struct zone *z)
{
	if (z->n > 3 && random_below(r, 2)) {
		int64_t at = z->v[1 + (size_t)random_below(r, (int)z->n - 1)].from + random_below(r, 8 * 3600) - 4 * 3600;

		if (at > 0)
			return at * USEC_SEC;
	}
	return ((int64_t)(random_next(r) % UINT64_C(4102444800))) * USEC_SEC + random_below(r, 1000000);
}

static struct schedule_context draw_context(struct world *w)
{
	struct schedule_context c = {
		.zone = w->zones[random_below(&w->r, ELEMENTS(zone_names))],
		.id = "job-17",
		.gap = (enum dst_gap)random_below(&w->r, DST_GAP_MAX),
		.fold = (enum dst_fold)random_below(&w->r, DST_FOLD_MAX),
	};

	c.anchor = draw_time(&w->r, c.zone);
	return c;
}

/* ---- other forms than cron ---- */

static void draw_duration(struct random *r, struct buf *out)
{
	static const char date[] = "YMWD", time[] = "HMS";
	bool any = false;

	buf_char(out, 'P');
	for (int i = 0; i < 4; i++)
		if (random_below(r, 4) == 0) {
			buf_printf(out, "%d%c", 1 + random_below(r, i == 0 ? 4 : 40), date[i]);
			any = true;
		}
	if (any && random_below(r, 2))
		return;
	buf_str(out, "T");
	for (int i = 0; i < 3; i++)
		if (i == 2 || random_below(r, 2))
			buf_printf(out, "%d%c", 1 + random_below(r, 90), time[i]);
}

static void draw_other(struct random *r, struct buf *out)
{
	static const char *const units[] = { "s", "min", "hours", "d", "weeks" };
	static const char *const phrases[] = { "now", "noon", "midnight + 3 days", "tomorrow 9am", "friday 17:00",
		"dec 24 18:00", "now + 2 months", "now + 90 minutes", "next monday", "23:59:59", "feb 29" };
	char text[RFC3339_MAX];

	switch (random_below(r, 5)) {
	case 0:
		buf_printf(out, "every %d %s", 1 + random_below(r, 100), units[random_below(r, 5)]);
		break;
	case 1:
		draw_duration(r, out);
		break;
	case 2:
		buf_printf(out, random_below(r, 2) ? "R%d/" : "R/", 1 + random_below(r, 1000));
		rfc3339_format((int64_t)(random_next(r) % UINT64_C(4000000000)) * USEC_SEC, text);
		buf_printf(out, "%s/", text);
		draw_duration(r, out);
		break;
	case 3:
		buf_str(out, "after-finish ");
		draw_duration(r, out);
		break;
	default:
		buf_str(out, phrases[random_below(r, ELEMENTS(phrases))]);
	}
}

/* ---- round trip ---- */

static void same_slots(struct world *w, const struct schedule *a, const struct schedule *b, const char *text)
{
	for (int i = 0; i < 2; i++) {
		usec_t t = draw_time(&w->r, w->zones[0]), one = 0, two = 0;
		bool has = schedule_next(a, t, &one);

		if (has != schedule_next(b, t, &two) || one != two)
			fail_msg("'%s': printed and read again it has other slots after %" PRId64, text, t);
		if (has && (one <= t || one > USEC_LAST || one % USEC_SEC))
			fail_msg("'%s': %" PRId64 " after %" PRId64, text, one, t);
	}
}

static void same_words(const struct schedule *a, const struct schedule *b, const char *text)
{
	AUTO_DONE(buf) one = {};
	AUTO_DONE(buf) two = {};

	schedule_explain(a, &one);
	schedule_explain(b, &two);
	if (!one.len || strcmp(one.data, two.data))
		fail_msg("'%s' is explained as '%s' and, read again, as '%s'", text, one.data, two.data);
}

/* Printed, it is read at another time and under another name. */
static void round_trip(struct world *w, const struct schedule *s, struct schedule_context c, const char *text,
	bool words)
{
	AUTO(schedule) *again = NULL;
	AUTO_DONE(buf) printed = {};
	AUTO_DONE(buf) twice = {};
	struct err e = {};

	schedule_print(s, &printed);
	c.anchor = 0;
	c.id = NULL;
	c.accepted = true;
	if (!schedule_parse(printed.data, &c, &again, &e))
		fail_msg("'%s' is printed as '%s': %s", text, printed.data, e.msg);
	schedule_print(again, &twice);
	if (strcmp(printed.data, twice.data))
		fail_msg("'%s' is printed as '%s' and then as '%s'", text, printed.data, twice.data);
	same_slots(w, s, again, text);
	if (words)
		same_words(s, again, text);
}

static void a_million_schedules_mean_what_they_print(void **state)
{
	struct world *w = *state;
	AUTO_DONE(buf) text = {};
	int taken = 0, refused = 0;
	struct model m;

	while (taken < SCHEDULES) {
		struct schedule_context c = draw_context(w);
		AUTO(schedule) *s = NULL;
		struct err e = {};

		buf_clear(&text);
		if (random_below(&w->r, 8))
			random_cron(&w->r, c.id, &text, &m);
		else
			draw_other(&w->r, &text);
		if (!schedule_parse(text.data, &c, &s, &e)) {
			/* years that are over, 30 February, ends before the start */
			if (!strstr(e.msg, "never fires") && !strstr(e.msg, "in the past") && !strstr(e.msg, "2199"))
				fail_msg("'%s': %s", text.data, e.msg);
			refused++;
			continue;
		}
		round_trip(w, s, c, text.data, taken % EXPLAIN_EVERY == 0);
		taken++;
	}
	printf("# %d schedules, %d refused as never firing\n", taken, refused);
	assert_true(refused < SCHEDULES / 4);
}

static void the_slow_model_finds_the_same_slots(void **state)
{
	struct world *w = *state;
	AUTO_DONE(buf) text = {};
	int compared = 0;
	struct model m;

	for (int i = 0; i < MODELLED; i++) {
		struct schedule_context c = draw_context(w);
		AUTO(schedule) *s = NULL;
		int64_t after = c.anchor / USEC_SEC, slow;
		usec_t fast = 0;
		char a[RFC3339_MAX], b[RFC3339_MAX];

		c.accepted = true;
		buf_clear(&text);
		random_cron(&w->r, c.id, &text, &m);
		assert_true(schedule_parse(text.data, &c, &s, NULL));
		for (int k = 0; k < 3; k++, after = slow) {
			bool found = model_next(&m, &c, after, MODEL_DAYS, &slow) && slow <= TIME_LAST;

			if (!found) {
				if (schedule_next(s, after * USEC_SEC, &fast) &&
				    fast < (after + (MODEL_DAYS - 5) * DAY_SECONDS) * USEC_SEC)
					fail_msg("'%s' in %s has a slot the model does not know: %s", text.data,
						c.zone->name, rfc3339_format(fast, a));
				break;
			}
			if (!schedule_next(s, after * USEC_SEC, &fast) || fast != slow * USEC_SEC)
				fail_msg("'%s' in %s, gap %d, fold %d, after %s: %s, and by the model %" PRId64, text.data,
					c.zone->name, c.gap, c.fold, rfc3339_format(after * USEC_SEC, a),
					rfc3339_format(fast, b), slow);
			compared++;
		}
	}
	printf("# %d slots compared\n", compared);
	assert_true(compared > MODELLED);
}

/* ---- intervals, counted from the anchor one by one ---- */

static int64_t slow_add(const struct zone *z, int64_t anchor, int months, int days, int64_t seconds, int k)
{
	int of_day;
	struct civil c = civil_from_days(civil_split(anchor + zone_offset(z, anchor), &of_day));

	/* nothing of the calendar: the wall clock is not asked */
	if (!months && !days)
		return anchor + seconds * k;
	for (int i = 0; i < months * k; i++)
		if (++c.month > 12) {
			c.month = 1;
			c.year++;
		}
	if (c.day > civil_month_days(c.year, c.month))
		c.day = civil_month_days(c.year, c.month);
	return zone_instant(z, (civil_days(c.year, c.month, c.day) + days * k) * DAY_SECONDS + of_day) + seconds * k;
}

static void intervals_are_counted_from_their_anchor(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 20000; i++) {
		struct schedule_context c = draw_context(w);
		int months = random_below(&w->r, 2) * random_below(&w->r, 30), days = random_below(&w->r, 2) * random_below(&w->r, 60);
		int seconds = months + days ? random_below(&w->r, 2) * random_below(&w->r, 200000) : 1 + random_below(&w->r, 200000);
		AUTO_TEXT text = xprintf("P%dM%dDT%dS", months, days, seconds);
		AUTO(schedule) *s = NULL;
		usec_t t;
		int64_t before = INT64_MIN;

		c.anchor -= c.anchor % USEC_SEC;
		c.accepted = true;
		assert_true(schedule_parse(text, &c, &s, NULL));
		t = c.anchor;
		for (int k = 1; k <= 6; k++) {
			int64_t want = slow_add(c.zone, c.anchor / USEC_SEC, months, days, seconds, k);

			/* two of them may fall on the end of one long jump */
			if (want == before)
				continue;
			before = want;
			if (want > TIME_LAST)
				break;
			if (!schedule_next(s, t, &t) || t != want * USEC_SEC)
				fail_msg("%s in %s from %" PRId64 ", number %d", text, c.zone->name, c.anchor, k);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_million_schedules_mean_what_they_print),
		TEST(the_slow_model_finds_the_same_slots),
		TEST(intervals_are_counted_from_their_anchor),
	};

	return cmocka_run_group_tests(tests, open_world, close_world);
}
