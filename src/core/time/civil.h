/* SPDX-License-Identifier: Apache-2.0 */
/* The proleptic Gregorian calendar: days since 1970-01-01 and back. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define DAY_SECONDS INT64_C(86400)
#define TIME_LAST INT64_C(7258118399) /* 2199-12-31T23:59:59Z in seconds, as USEC_LAST */

struct civil {
	int year;
	int month; /* 1 … 12 */
	int day;   /* 1 … 31 */
};

int64_t civil_days(int year, int month, int day);
struct civil civil_from_days(int64_t days);

static inline bool civil_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline int civil_month_days(int year, int month)
{
	return month == 2 ? 28 + civil_leap(year) : 30 + ((month + (month >> 3)) & 1);
}

/* 0 is Sunday. 1970-01-01 was a Thursday. */
static inline int civil_weekday(int64_t days)
{
	int64_t w = (days + 4) % 7;

	return (int)(w < 0 ? w + 7 : w);
}

/* Whole days and the seconds left over, also before 1970. */
static inline int64_t civil_split(int64_t seconds, int *ret_of_day)
{
	int64_t days = seconds / DAY_SECONDS, rest = seconds % DAY_SECONDS;

	if (rest < 0) {
		rest += DAY_SECONDS;
		days--;
	}
	*ret_of_day = (int)rest;
	return days;
}
