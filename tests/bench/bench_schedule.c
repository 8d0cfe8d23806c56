/* SPDX-License-Identifier: Apache-2.0 */
/* Measures next slots per second, compared with a bitmap loop without zones and parsing. */
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/civil.h"
#include "core/time/schedule.h"
#include "core/time/zone_cache.h"
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#define FROM INT64_C(1704067200) /* 2024-01-01T00:00:00Z */
#define UNTIL INT64_C(6500000000) /* in 2175 */
#define SECONDS 0.5
#define ROUND 2000 /* calls between two readings of the clock */

/* ---- the bitmap loop ---- */

struct plain {
	uint64_t minute;
	uint32_t hour, day, month;
	int fifth; /* only the fifth occurrence of this weekday in a month; -1: any day */
};

static uint32_t plain_days(const struct plain *p, int year, int month)
{
	int length = civil_month_days(year, month);
	uint32_t days = p->day & (uint32_t)((UINT64_C(2) << length) - 2);

	if (p->fifth >= 0) {
		int first = 1 + (p->fifth - civil_weekday(civil_days(year, month, 1)) + 7) % 7 + 28;

		days &= first <= length ? UINT32_C(1) << first : 0;
	}
	return days;
}

/* For schedules that include every day: only the time of day is computed. */
static int64_t plain_daily(const struct plain *p, int64_t t)
{
	int of_day;
	int64_t day = civil_split(t, &of_day);
	int h = of_day / 3600;
	uint64_t minutes = p->hour >> h & 1 ? p->minute & ~UINT64_C(0) << (of_day / 60 % 60) : 0;
	uint32_t hours = p->hour & (uint32_t)(~UINT64_C(1) << h);

	if (minutes)
		return day * DAY_SECONDS + h * 3600 + __builtin_ctzll(minutes) * 60;
	if (!hours) {
		day++;
		hours = p->hour;
	}
	return day * DAY_SECONDS + __builtin_ctz(hours) * 3600 + __builtin_ctzll(p->minute) * 60;
}

static int64_t plain_next(const struct plain *p, int64_t after)
{
	int64_t t = after / 60 * 60 + 60, day;
	int of_day, h, m;
	struct civil c;
	uint64_t bits;

	if (p->day == 0xfffffffe && p->month == 0x1ffe && p->fifth < 0)
		return plain_daily(p, t);
	day = civil_split(t, &of_day);
	c = civil_from_days(day);

	h = of_day / 3600;
	m = of_day / 60 % 60;
	for (;;) {
		uint32_t days = p->month >> c.month & 1 ? plain_days(p, c.year, c.month) & ~UINT32_C(0) << c.day : 0;

		if (!days) {
			c = c.month == 12 ? (struct civil){ c.year + 1, 1, 1 } : (struct civil){ c.year, c.month + 1, 1 };
			h = m = 0;
			continue;
		}
		if (__builtin_ctz(days) != c.day) {
			c.day = __builtin_ctz(days);
			h = m = 0;
		}
		bits = p->hour >> h & 1 ? p->minute & ~UINT64_C(0) << m : 0;
		if (!bits) {
			m = 0;
			bits = h < 31 ? p->hour & ~UINT32_C(0) << (h + 1) : 0;
			if (bits) {
				h = __builtin_ctzll(bits);
				continue;
			}
			c.day++;
			h = 0;
			continue;
		}
		return civil_days(c.year, c.month, c.day) * DAY_SECONDS + h * 3600 + __builtin_ctzll(bits) * 60;
	}
}

static double plain_rate(const struct plain *p)
{
	double start = bench_now(), spent;
	int64_t t = FROM, n = 0;

	do {
		for (int i = 0; i < ROUND; i++) {
			t = plain_next(p, t);
			if (t > UNTIL)
				t = FROM;
		}
		n += ROUND;
	} while ((spent = bench_now() - start) < SECONDS);
	return (double)n / spent;
}

/* ---- the schedule module ---- */

static double our_rate(const struct schedule *s)
{
	double start = bench_now(), spent;
	usec_t t = FROM * USEC_SEC;
	int64_t n = 0;

	do {
		for (int i = 0; i < ROUND; i++)
			if (!schedule_next(s, t, &t) || t > UNTIL * USEC_SEC)
				t = FROM * USEC_SEC;
		n += ROUND;
	} while ((spent = bench_now() - start) < SECONDS);
	return (double)n / spent;
}

static struct schedule *parsed(const char *text, const struct zone *z)
{
	const struct schedule_context c = { .zone = z, .anchor = FROM * USEC_SEC };
	struct schedule *s = NULL;
	struct err e = {};

	if (schedule_parse(text, &c, &s, &e))
		return s;
	fprintf(stderr, "%s: %s\n", text, e.msg);
	exit(1);
}

static const char *const zone_names[] = { "UTC", "Europe/Berlin", "Australia/Lord_Howe" };

static const struct {
	const char *text;
	double floor; /* required slots per second; 0: none */
	struct plain plain;
} rows[] = {
	{ "* * * * *", 2e6, { ~UINT64_C(0) >> 4, 0xffffff, 0xfffffffe, 0x1ffe, -1 } },
	{ "0 0 1 * *", 1e6, { 1, 1, 2, 0x1ffe, -1 } },
	{ "0 0 29 2 *", 5e5, { 1, 1, 1 << 29, 4, -1 } },
	{ "0 0 * 2 MON#5", 1e5, { 1, 1, 0xfffffffe, 4, 1 } },
	{ "30 2 * * *", 0, { 1 << 30, 4, 0xfffffffe, 0x1ffe, -1 } },
};

static void bench_next(const struct zone *const zones[])
{
	printf("next slots per second, in millions\n%-16s %8s", "", "limit");
	for (size_t k = 0; k < ELEMENTS(zone_names); k++)
		printf(" %20s", zone_names[k]);
	printf(" %8s\n", "floor");
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		double limit = plain_rate(&rows[i].plain), worst = 1e18;

		printf("%-16s %8.2f", rows[i].text, limit / 1e6);
		for (size_t k = 0; k < ELEMENTS(zone_names); k++) {
			AUTO(schedule) *s = parsed(rows[i].text, zones[k]);
			double rate = our_rate(s);

			printf(" %11.2f (%5.2f)", rate / 1e6, rate / limit);
			worst = rate < worst ? rate : worst;
		}
		if (rows[i].floor > 0)
			printf(" %8.2f%s", rows[i].floor / 1e6, worst < rows[i].floor ? " missed" : "");
		printf("\n");
	}
}

static void bench_more(const struct zone *z)
{
	static const char *const texts[] = { "* * * * * *", "*/5 9-17 * * MON-FRI", "0 0 L-3,LW,15W * *", "0 0 13 * FRI",
		"0 0 0 29 2 MON#5 2024-2199/4", "every 90s", "P1D", "P1M" };

	printf("\nothers, in %s\n", z ? "Europe/Berlin" : "UTC");
	for (size_t i = 0; i < ELEMENTS(texts); i++) {
		AUTO(schedule) *s = parsed(texts[i], z);

		printf("%-32s %8.2f\n", texts[i], our_rate(s) / 1e6);
	}
}

static void bench_refusals(const struct zone *z)
{
	static const char *const texts[] = { "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 4 *", "0 0 */20 * TUE#2",
		"0 0 0 29 2 * 2100", "* * * 30 2 */2", "*/0 * * * *", "0 0 1 1 ?x" };
	const struct schedule_context c = { .zone = z, .anchor = FROM * USEC_SEC };

	printf("\nrefused, in microseconds each\n");
	for (size_t i = 0; i < ELEMENTS(texts); i++) {
		double start = bench_now();

		for (int k = 0; k < ROUND; k++) {
			AUTO(schedule) *s = NULL;
			struct err e = {};

			if (schedule_parse(texts[i], &c, &s, &e))
				exit(1);
		}
		printf("%-32s %8.2f\n", texts[i], (bench_now() - start) / ROUND * 1e6);
	}
}

int main(void)
{
	AUTO(zone_cache) *cache = zone_cache_new(tzfile_read);
	const struct zone *zones[ELEMENTS(zone_names)];

	for (size_t i = 0; i < ELEMENTS(zone_names); i++)
		if (!zone_cache_get(cache, zone_names[i], &zones[i], NULL))
			return 1;
	bench_next(zones);
	bench_more(zones[1]);
	bench_refusals(zones[1]);
	return 0;
}
