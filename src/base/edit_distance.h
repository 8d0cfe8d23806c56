/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": the known word nearest to one that nobody knows. */
#pragma once
#include <stddef.h>

struct strv;

/* Bytes that must change to make one word of the other; more than 'max' is all one. */
size_t edit_distance(const char *a, const char *b, size_t max);
/* NULL: none is near enough to have been meant. */
const char *edit_distance_nearest(const char *typed, const struct strv *known);
