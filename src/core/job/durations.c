/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles of run durations, by the nearest-rank method. */
#include "core/job/durations.h"
#include <stdlib.h>

const char *const duration_unusual_names[DURATION_UNUSUAL_MAX] = {
	[DURATION_LONG] = "long",
	[DURATION_SHORT] = "short",
};

static int compare_usec(const void *a, const void *b)
{
	usec_t x = *(const usec_t *)a, y = *(const usec_t *)b;

	return (x > y) - (x < y);
}

/* The smallest value that at least 'percent' of the values do not exceed. */
static usec_t percentile(const usec_t *sorted, size_t n, size_t percent)
{
	size_t rank = (n * percent + 99) / 100;

	return sorted[rank > 0 ? rank - 1 : 0];
}

static size_t sort_successful(const struct duration_sample *v, size_t n, usec_t *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].succeeded)
			ret[found++] = v[i].took;
	qsort(ret, found, sizeof(*ret), compare_usec);
	return found;
}

static enum duration_unusual judge_last(const struct duration_sample *v, size_t n)
{
	usec_t earlier[DURATIONS_RUNS];
	size_t found = sort_successful(v + 1, n - 1, earlier);
	usec_t last = v[0].took, high, low;

	if (found < DURATIONS_UNUSUAL_MIN)
		return DURATION_USUAL;
	high = percentile(earlier, found, 95);
	low = percentile(earlier, found, 5);
	if (last > 2 * high && last - high >= USEC_SEC)
		return DURATION_LONG;
	if (v[0].succeeded && 2 * last < low && low - last >= USEC_SEC)
		return DURATION_SHORT;
	return DURATION_USUAL;
}

void durations_compute(const struct duration_sample *v, size_t n, struct durations *ret)
{
	usec_t sorted[DURATIONS_RUNS];
	size_t found;

	*ret = (struct durations){.known = true};
	if (n > DURATIONS_RUNS)
		n = DURATIONS_RUNS;
	if (n == 0)
		return;
	found = sort_successful(v, n, sorted);
	ret->ended = (int64_t)n;
	ret->last = v[0].took;
	ret->count = (int64_t)found;
	if (found > 0) {
		ret->p50 = percentile(sorted, found, 50);
		ret->p95 = percentile(sorted, found, 95);
	}
	ret->unusual = judge_last(v, n);
}
