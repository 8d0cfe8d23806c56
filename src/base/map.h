/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit numbers to pointers. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot *slots;
	size_t used, filled, cap;
};

void map_done(struct map *m); /* does not free the values */
void *map_get(const struct map *m, int64_t key);
void map_put(struct map *m, int64_t key, void *value /* not NULL */);
void *map_take(struct map *m, int64_t key); /* removes; NULL if absent */

/* for (size_t i = 0; (v = map_next(&m, &i)); )  visits the values in no order; the loop may call map_take() but not map_put() */
void *map_next(const struct map *m, size_t *cursor);
