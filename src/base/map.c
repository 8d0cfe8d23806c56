/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map with open addressing and linear probing. */
#include "base/map.h"
#include "base/text.h"
#include <stdlib.h>

struct map_slot {
	int64_t key;
	void *value; /* NULL: never used; TAKEN: removed */
};

static const char taken_mark;
#define TAKEN ((void *)&taken_mark)

static size_t home_of(int64_t key, size_t cap)
{
	uint64_t x = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);

	return (size_t)(x ^ x >> 32) & (cap - 1);
}

static struct map_slot *slot_find(const struct map *m, int64_t key)
{
	if (!m->cap)
		return NULL;
	for (size_t i = home_of(key, m->cap);; i = (i + 1) & (m->cap - 1)) {
		struct map_slot *s = &m->slots[i];

		if (!s->value)
			return NULL;
		if (s->value != TAKEN && s->key == key)
			return s;
	}
}

static void insert_new(struct map *m, int64_t key, void *value)
{
	size_t i = home_of(key, m->cap);

	while (m->slots[i].value && m->slots[i].value != TAKEN)
		i = (i + 1) & (m->cap - 1);
	m->filled += !m->slots[i].value;
	m->used++;
	m->slots[i] = (struct map_slot){key, value};
}

static void rebuild(struct map *m)
{
	struct map old = *m;
	size_t cap = 16;

	while (cap < old.used * 3)
		cap *= 2;
	*m = (struct map){.slots = xcalloc(cap, sizeof(*m->slots)), .cap = cap};
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].value && old.slots[i].value != TAKEN)
			insert_new(m, old.slots[i].key, old.slots[i].value);
	free(old.slots);
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){};
}

void *map_get(const struct map *m, int64_t key)
{
	struct map_slot *s = slot_find(m, key);

	return s ? s->value : NULL;
}

void map_put(struct map *m, int64_t key, void *value)
{
	struct map_slot *s = slot_find(m, key);

	if (s) {
		s->value = value;
		return;
	}
	if ((m->filled + 1) * 4 > m->cap * 3)
		rebuild(m);
	insert_new(m, key, value);
}

void *map_take(struct map *m, int64_t key)
{
	struct map_slot *s = slot_find(m, key);
	void *value;

	if (!s)
		return NULL;
	value = s->value;
	s->value = TAKEN;
	m->used--;
	return value;
}

void *map_next(const struct map *m, size_t *cursor)
{
	while (*cursor < m->cap) {
		void *value = m->slots[(*cursor)++].value;

		if (value && value != TAKEN)
			return value;
	}
	return NULL;
}
