/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between day numbers and dates using eras of 400 years (146097 days). */
#include "core/time/civil.h"

#define ERA_DAYS INT64_C(146097)
#define EPOCH_SHIFT INT64_C(719468) /* days from 0000-03-01 to 1970-01-01 */

/* A year that begins in March has its odd day at the end, so that months are a linear formula. */
int64_t civil_days(int year, int month, int day)
{
	int64_t y = month <= 2 ? (int64_t)year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

	return era * ERA_DAYS + day_of_era - EPOCH_SHIFT;
}

struct civil civil_from_days(int64_t days)
{
	int64_t z = days + EPOCH_SHIFT;
	int64_t era = (z >= 0 ? z : z - (ERA_DAYS - 1)) / ERA_DAYS;
	uint32_t doe = (uint32_t)(z - era * ERA_DAYS);
	uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	uint32_t shifted = (5 * doy + 2) / 153; /* 0 is March */
	struct civil c;

	c.day = (int)(doy - (153 * shifted + 2) / 5 + 1);
	c.month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
	c.year = (int)((int64_t)yoe + era * 400) + (c.month <= 2);
	return c;
}
