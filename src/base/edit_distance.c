/* SPDX-License-Identifier: Apache-2.0 */
/* The distance between words, and the nearest of many. */
#include "base/edit_distance.h"
#include "base/text.h"
#include <string.h>

#define WORD_MAX 128

static size_t smallest_of(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

size_t edit_distance(const char *a, const char *b, size_t max)
{
	size_t row[WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX || la > lb + max || lb > la + max)
		return max + 1;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];

			row[j] = smallest_of(corner + (a[i - 1] != b[j - 1]), above + 1, row[j - 1] + 1);
			corner = above;
		}
	}
	return row[lb];
}

const char *edit_distance_nearest(const char *typed, const struct strv *known)
{
	size_t allowed = strlen(typed) < 4 ? 1 : 2, least_yet = allowed + 1;
	const char *best = NULL;

	for (size_t i = 0; i < known->n; i++) {
		size_t d = edit_distance(typed, known->v[i], allowed);

		if (d < least_yet) {
			least_yet = d;
			best = known->v[i];
		}
	}
	return best;
}
