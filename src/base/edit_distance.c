/* SPDX-License-Identifier: Apache-2.0 */
/* Computes edit distances and finds the closest known word. */
#include "base/edit_distance.h"
#include "base/text.h"
#include <string.h>

#define WORD_MAX 128

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Optimal string alignment: three rows of the matrix are kept, because a swap refers to the row
 * before the last.
 */
size_t edit_distance(const char *a, const char *b, size_t max)
{
	size_t rows[3][WORD_MAX + 1] = {};
	size_t *before = rows[0], *last = rows[1], *row = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX || la > lb + max || lb > la + max)
		return max + 1;
	for (size_t j = 0; j <= lb; j++)
		last[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *unused = before;

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = smaller(smaller(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = unused;
	}
	return last[lb];
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
