/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance between words, for "did you mean" suggestions. */
#pragma once
#include <stddef.h>

struct strv;

/*
 * The number of bytes to insert, delete, replace or swap with their neighbour to turn a into b. The
 * result is exact up to 'max'; a larger result only means "more than max".
 */
size_t edit_distance(const char *a, const char *b, size_t max);
/*
 * The known word closest to 'typed'. NULL: the closest one differs in too many bytes to have been
 * meant.
 */
const char *edit_distance_nearest(const char *typed, const struct strv *known);
