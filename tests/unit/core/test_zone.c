/* SPDX-License-Identifier: Apache-2.0 */
/* The zone reader: against libc for every zone of the system, and against made-up and damaged files. */
#include "base/buf.h"
#include "base/err.h"
#include "base/tzfile.h"
#include "core/time/civil.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ZONES_DIR "/usr/share/zoneinfo"

static const struct zone *zone_of(struct zone_cache *c, const char *name)
{
	const struct zone *z = NULL;
	struct err e = {};

	if (!zone_cache_get(c, name, &z, &e))
		fail_msg("%s: %s", name, e.msg);
	return z;
}

/* ---- every zone of the system, beside libc ---- */

static int64_t libc_offset(int64_t t)
{
	time_t at = t;
	struct tm tm;

	assert_non_null(localtime_r(&at, &tm));
	return tm.tm_gmtoff;
}

/* Around every change, and at odd moments through 2199. */
static void compare_with_libc(const struct zone *z)
{
	setenv("TZ", z->name, 1);
	tzset();
	for (size_t i = 1; i < z->n; i++) {
		int64_t at = z->v[i].from;

		if (at <= 0 || at > TIME_LAST)
			continue;
		assert_int_equal(zone_offset(z, at - 1), libc_offset(at - 1));
		assert_int_equal(zone_offset(z, at), libc_offset(at));
	}
	for (int64_t t = 1; t < TIME_LAST; t += 19 * 86400 + 12345)
		if (zone_offset(z, t) != libc_offset(t))
			fail_msg("%s at %lld", z->name, (long long)t);
}

/* nftw has no argument for the callback. */
static struct {
	struct zone_cache *cache;
	int zones;
} walk;

static int on_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *name = path + strlen(ZONES_DIR) + 1;
	const struct zone *z;

	(void)st;
	/* 'right' counts leap seconds; the others are copies or no zones */
	if (type == FTW_D && at->level == 1 && (!strcmp(name, "right") || !strcmp(name, "posix")))
		return FTW_SKIP_SUBTREE;
	if (type != FTW_F || strchr(name, '.') || !strcmp(name, "leapseconds") ||
	    !zone_cache_get(walk.cache, name, &z, NULL))
		return FTW_CONTINUE;
	walk.zones++;
	compare_with_libc(z);
	return FTW_CONTINUE;
}

static void every_zone_of_the_system_agrees_with_libc(void **state)
{
	(void)state;
	unsetenv("TZDIR");
	walk.cache = zone_cache_new(tzfile_read);
	assert_int_equal(nftw(ZONES_DIR, on_file, 16, FTW_PHYS | FTW_ACTIONRETVAL), 0);
	zone_cache_free(walk.cache);
	assert_true(walk.zones > 300);
	unsetenv("TZ");
}

/* ---- wall times ---- */

static int64_t wall(int year, int month, int day, int hour, int minute)
{
	return civil_days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60;
}

static void wall_times_are_skipped_and_repeated_where_the_clock_jumps(void **state)
{
	static const struct {
		const char *zone;
		int at[5];
		enum zone_wall is;
	} rows[] = {
		{ "Europe/Berlin", { 2024, 3, 31, 1, 59 }, ZONE_WALL_ONCE },
		{ "Europe/Berlin", { 2024, 3, 31, 2, 0 }, ZONE_WALL_SKIPPED },
		{ "Europe/Berlin", { 2024, 3, 31, 3, 0 }, ZONE_WALL_ONCE },
		{ "Europe/Berlin", { 2024, 10, 27, 2, 59 }, ZONE_WALL_REPEATED },
		{ "Europe/Berlin", { 2024, 10, 27, 3, 0 }, ZONE_WALL_ONCE },
		{ "Europe/Berlin", { 2150, 3, 29, 2, 30 }, ZONE_WALL_SKIPPED },
		{ "Australia/Lord_Howe", { 2024, 10, 6, 2, 15 }, ZONE_WALL_SKIPPED },
		{ "Australia/Lord_Howe", { 2024, 4, 7, 1, 45 }, ZONE_WALL_REPEATED },
		{ "Pacific/Apia", { 2011, 12, 30, 12, 0 }, ZONE_WALL_SKIPPED },
		{ "Europe/Dublin", { 2024, 10, 27, 1, 30 }, ZONE_WALL_REPEATED },
		{ "Antarctica/Troll", { 2024, 3, 31, 2, 30 }, ZONE_WALL_SKIPPED },
	};
	AUTO(zone_cache) *c = zone_cache_new(tzfile_read);

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		const int *t = rows[i].at;

		assert_int_equal(zone_wall(zone_of(c, rows[i].zone), wall(t[0], t[1], t[2], t[3], t[4])),
			rows[i].is);
	}
}

static void a_skipped_wall_time_is_the_first_instant_after_the_jump(void **state)
{
	AUTO(zone_cache) *c = zone_cache_new(tzfile_read);
	const struct zone *berlin = zone_of(c, "Europe/Berlin"), *apia = zone_of(c, "Pacific/Apia");

	(void)state;
	assert_int_equal(zone_instant(berlin, wall(2024, 3, 31, 2, 30)), wall(2024, 3, 31, 1, 0));
	assert_int_equal(zone_instant(berlin, wall(2024, 10, 27, 2, 30)), wall(2024, 10, 27, 0, 30));
	assert_int_equal(zone_instant(apia, wall(2011, 12, 30, 9, 0)), wall(2011, 12, 30, 10, 0));
}

/* ---- files ---- */

static void put(struct buf *b, uint64_t v, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		buf_char(b, i < 8 ? (char)(v >> (8 * i)) : 0);
}

struct made {
	int leaps;
	int types;
	const int64_t *times;
	const uint8_t *which;
	int n;
	const int32_t *offsets;
	const char *footer;
};

static void put_block(struct buf *b, const struct made *m, int size)
{
	buf_add(b, "TZif2", 5);
	for (int i = 0; i < 15; i++)
		buf_char(b, 0);
	put(b, 0, 4);
	put(b, 0, 4);
	put(b, (uint64_t)m->leaps, 4);
	put(b, size == 8 ? (uint64_t)m->n : 0, 4);
	put(b, (uint64_t)m->types, 4);
	put(b, 4, 4);
	for (int i = 0; size == 8 && i < m->n; i++)
		put(b, (uint64_t)m->times[i], 8);
	for (int i = 0; size == 8 && i < m->n; i++)
		buf_char(b, (char)m->which[i]);
	for (int i = 0; i < m->types; i++) {
		put(b, (uint32_t)m->offsets[i], 4);
		put(b, 0, 2);
	}
	buf_add(b, "ABC", 4);
	for (int i = 0; i < m->leaps; i++)
		put(b, 0, size + 4);
}

static void made_bytes(struct buf *b, const struct made *m)
{
	put_block(b, m, 4);
	put_block(b, m, 8);
	buf_printf(b, "\n%s\n", m->footer);
}

static bool parse_made(const struct made *m, struct zone **ret, struct err *e)
{
	AUTO_DONE(buf) b = {};

	made_bytes(&b, m);
	return zone_parse("Made/Up", b.data, b.len, ret, e);
}

static const int32_t one_offset[] = { 3600 };

static void the_rule_at_the_end_is_worked_out_through_2200(void **state)
{
	static const struct {
		const char *rule;
		int64_t t, offset;
	} rows[] = {
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 7246800000, 7200 },    /* 2199-08-23 */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 7258118399, 3600 },    /* 2199-12-31 */
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846799, -7200 }, /* hours before midnight */
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846800, -3600 },
		{ "AAA3BBB,J60/2,J300", 1709269199, -10800 },          /* 1 March 2024, not the leap day */
		{ "AAA3BBB,J60/2,J300", 1709269200, -7200 },
		{ "AAA0BBB,59,300/2", 1709170000, 0 },                 /* day 59 from 0 is 29 February 2024 */
		{ "AAA0BBB,59,300/2", 1709172000, 3600 },
		{ "EST3EDT4,0/0,J365/23", 1709172000, -14400 },        /* summer all year */
		{ "EST3EDT4,0/0,J365/23", 1704085200, -14400 },
		{ "AAA-3:30:15", 1709172000, 3600 },                   /* no change: the file's own type stays */
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		const struct made m = { .types = 1, .offsets = one_offset, .footer = rows[i].rule };
		AUTO(zone) *z = NULL;
		struct err e = {};

		if (!parse_made(&m, &z, &e))
			fail_msg("%s: %s", rows[i].rule, e.msg);
		if (zone_offset(z, rows[i].t) != rows[i].offset)
			fail_msg("%s at %lld: %lld", rows[i].rule, (long long)rows[i].t,
				(long long)zone_offset(z, rows[i].t));
	}
}

static void wall_times_count_as_shown_after_jumps_of_up_to_three_hours_back(void **state)
{
	static const int64_t times[] = { 1000000, 2000000, 3000000 };
	static const uint8_t which[] = { 1, 2, 0 };
	static const int32_t offsets[] = { 8 * 3600, 5 * 3600, 3600 };
	const struct made m = { .types = 3, .offsets = offsets, .times = times, .which = which, .n = 3, .footer = "" };
	AUTO(zone) *z = NULL;

	(void)state;
	assert_true(parse_made(&m, &z, NULL));
	assert_int_equal(z->n, 4);
	assert_int_equal(z->v[1].seen, 1000000 + 8 * 3600); /* three hours back */
	assert_true(z->v[2].seen < 0);                      /* four hours: the clock was corrected */
	assert_int_equal(z->v[3].seen, 3000000 + 3600);     /* forward: nothing is shown twice */
}

static void damaged_files_are_refused_with_their_fault(void **state)
{
	static const int64_t up[] = { 100, 200 }, down[] = { 200, 100 };
	static const uint8_t types[] = { 0, 0 }, beyond[] = { 0, 7 };
	static const int32_t wild[] = { 100 * 3600 };
	static const struct {
		struct made m;
		const char *says;
	} rows[] = {
		{ { .types = 1, .offsets = one_offset, .footer = "CET-1CEST" }, "rule for later years" },
		{ { .types = 1, .offsets = one_offset, .footer = "CET" }, "rule for later years" },
		{ { .types = 1, .offsets = one_offset, .footer = "CET-1CEST,M13.5.0,M10.5.0" }, "rule" },
		{ { .types = 1, .offsets = one_offset, .footer = "CET-1CEST,M3.5.0,M10.5.0/3x" }, "rule" },
		{ { .types = 1, .offsets = one_offset, .footer = "", .leaps = 1 }, "leap seconds" },
		{ { .types = 1, .offsets = wild, .footer = "" }, "out of range" },
		{ { .types = 1, .offsets = one_offset, .times = down, .which = types, .n = 2, .footer = "" }, "order" },
		{ { .types = 1, .offsets = one_offset, .times = up, .which = beyond, .n = 2, .footer = "" }, "range" },
	};
	struct err e = {};
	struct zone *z = NULL;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		assert_false(parse_made(&rows[i].m, &z, &e));
		assert_null(z);
		assert_string_equal(e.field, "tz");
		if (!strstr(e.msg, rows[i].says))
			fail_msg("\"%s\" does not say '%s'", e.msg, rows[i].says);
	}
	assert_false(zone_parse("Made/Up", "TZif", 4, &z, &e));
}

static void a_file_cut_anywhere_is_refused(void **state)
{
	static const int64_t times[] = { 100, 200 };
	static const uint8_t which[] = { 1, 0 };
	static const int32_t offsets[] = { 0, 3600 };
	const struct made m = { .types = 2, .offsets = offsets, .times = times, .which = which, .n = 2,
		.footer = "UTC0" };
	AUTO_DONE(buf) b = {};

	(void)state;
	made_bytes(&b, &m);
	for (size_t len = 0; len <= b.len; len++) {
		AUTO(zone) *z = NULL;
		/* exactly so many bytes, for the address sanitizer */
		AUTO_TEXT copy = malloc(len ? len : 1);

		memcpy(copy, b.data, len);
		assert_int_equal(zone_parse("Made/Up", copy, len, &z, NULL), len == b.len);
	}
}

static void names_that_are_paths_are_refused(void **state)
{
	static const char *const bad[] = { "", "/etc/passwd", "../etc/passwd", "Europe/../../etc/passwd",
		"Europe//Berlin", "Europe/Berlin/", ".hidden", "Europe/.hidden", "Europe/Ber lin", "Europe\nBerlin",
		"Nowhere/Land", "zone.tab", "Europe" };
	AUTO(zone_cache) *c = zone_cache_new(tzfile_read);
	const struct zone *z;
	struct err e = {};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		if (zone_cache_get(c, bad[i], &z, &e))
			fail_msg("'%s' was taken for a zone", bad[i]);
		assert_int_equal(e.kind, ERR_INVALID);
		assert_string_equal(e.field, "tz");
	}
}

static void a_zone_that_vanishes_is_missed_after_the_cache_was_cleared(void **state)
{
	char dir[] = "/tmp/test_zone.XXXXXX", path[64];
	const struct made m = { .types = 1, .offsets = one_offset, .footer = "" };
	AUTO(zone_cache) *c = zone_cache_new(tzfile_read);
	AUTO_DONE(buf) b = {};
	const struct zone *z;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/Mine", dir);
	made_bytes(&b, &m);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	fclose(f);
	setenv("TZDIR", dir, 1);
	assert_true(zone_cache_get(c, "Mine", &z, NULL));
	assert_int_equal(zone_offset(z, 0), 3600);
	unlink(path);
	assert_true(zone_cache_get(c, "Mine", &z, NULL));
	zone_cache_clear(c);
	assert_false(zone_cache_get(c, "Mine", &z, NULL));
	assert_true(zone_cache_get(c, "UTC", &z, NULL)); /* needs no file */
	rmdir(dir);
	unsetenv("TZDIR");
}

/* ---- the calendar under it ---- */

static void days_and_dates_agree_over_five_centuries(void **state)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t day = civil_days(1800, 1, 1);
	int weekday = 3; /* 1800-01-01 was a Wednesday */

	(void)state;
	for (int y = 1800; y < 2300; y++)
		for (int m = 1; m <= 12; m++) {
			int len = lengths[m - 1] + (m == 2 && y % 4 == 0 && (y % 100 || y % 400 == 0));

			assert_int_equal(civil_month_days(y, m), len);
			for (int d = 1; d <= len; d++, day++, weekday = (weekday + 1) % 7) {
				struct civil c = civil_from_days(day);

				if (civil_days(y, m, d) != day || c.year != y || c.month != m || c.day != d ||
				    civil_weekday(day) != weekday)
					fail_msg("%d-%d-%d", y, m, d);
			}
		}
	assert_int_equal(civil_days(1970, 1, 1), 0);
	assert_int_equal(civil_days(2200, 1, 1) * DAY_SECONDS - 1, TIME_LAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_zone_of_the_system_agrees_with_libc),
		TEST(wall_times_are_skipped_and_repeated_where_the_clock_jumps),
		TEST(a_skipped_wall_time_is_the_first_instant_after_the_jump),
		TEST(the_rule_at_the_end_is_worked_out_through_2200),
		TEST(wall_times_count_as_shown_after_jumps_of_up_to_three_hours_back),
		TEST(damaged_files_are_refused_with_their_fault),
		TEST(a_file_cut_anywhere_is_refused),
		TEST(names_that_are_paths_are_refused),
		TEST(a_zone_that_vanishes_is_missed_after_the_cache_was_cleared),
		TEST(days_and_dates_agree_over_five_centuries),
	};

	return RUN_TESTS(tests);
}
