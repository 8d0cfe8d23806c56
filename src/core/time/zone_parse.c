/* SPDX-License-Identifier: Apache-2.0 */
/* Parses TZif data into offset periods up to 2200. */
#include "base/err.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/posix_tz.h"
#include "core/time/zone.h"

#include <string.h>

#define HEADER_LEN 44
#define TIMES_MAX 4000 /* tzdata's longest has 236 */
#define EARLIEST (-(INT64_C(1) << 40)) /* some files begin with the big bang */

/* One of the two blocks of a file. */
struct block {
	const uint8_t *times, *types, *infos;
	size_t time_count, type_count, time_size;
	size_t leap_count;
	size_t len; /* with its header */
};

struct table {
	struct zone_period *v; /* owned */
	size_t n;
	int64_t known; /* the last transition of the file, also when it changed no offset */
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static int64_t be32(const uint8_t *p)
{
	return (int32_t)(uint32_t)big_endian(p, 4);
}

static int64_t be_time(const struct block *b, size_t i)
{
	return b->time_size == 8 ? (int64_t)big_endian(b->times + i * 8, 8) : be32(b->times + i * 4);
}

/* Counts in the header: isutc, isstd, leap, time, type, char. */
static bool block_open(const uint8_t *p, size_t len, size_t time_size, struct block *b)
{
	size_t count[6], need = HEADER_LEN;

	if (len < HEADER_LEN || memcmp(p, "TZif", 4))
		return false;
	for (size_t i = 0; i < 6; i++) {
		count[i] = (size_t)big_endian(p + 20 + i * 4, 4);
		if (count[i] > ZONE_BYTES_MAX)
			return false;
	}
	need += count[3] * (time_size + 1) + count[4] * 6 + count[5] + count[2] * (time_size + 4) +
		count[1] + count[0];
	if (need > len)
		return false;
	*b = (struct block){
		.times = p + HEADER_LEN,
		.types = p + HEADER_LEN + count[3] * time_size,
		.infos = p + HEADER_LEN + count[3] * (time_size + 1),
		.time_count = count[3],
		.type_count = count[4],
		.time_size = time_size,
		.leap_count = count[2],
		.len = need,
	};
	return b->type_count > 0 && b->type_count <= 256 && b->time_count <= TIMES_MAX;
}

static void table_add(struct table *t, int64_t from, int64_t offset)
{
	struct zone_period *last = t->n ? &t->v[t->n - 1] : NULL;

	if (last && last->from == from) {
		last->offset = offset;
		if (t->n > 1 && last[-1].offset == offset)
			t->n--;
		return;
	}
	if (!last || last->offset != offset)
		t->v[t->n++] = (struct zone_period){ .from = from, .offset = offset };
}

static bool read_block(const struct block *b, struct table *t)
{
	int64_t before = INT64_MIN, offset;

	for (size_t i = 0; i < b->type_count; i++) {
		offset = be32(b->infos + i * 6);
		if (offset <= -ZONE_OFFSET_MAX || offset >= ZONE_OFFSET_MAX)
			return false;
	}
	table_add(t, ZONE_BEGIN, be32(b->infos));
	for (size_t i = 0; i < b->time_count; i++) {
		int64_t at = be_time(b, i);

		if (b->types[i] >= b->type_count || (i && at <= before))
			return false;
		before = at;
		t->known = at;
		if (at <= ZONE_END / 2)
			table_add(t, at < EARLIEST ? ZONE_BEGIN : at,
				be32(b->infos + (size_t)b->types[i] * 6));
	}
	return true;
}

static int year_of(int64_t t)
{
	int of_day;

	return civil_from_days(civil_split(t, &of_day)).year;
}

/* The rule speaks about everything after the last transition of the file. */
static void apply_rule(const struct posix_tz *p, struct table *t)
{
	int first = t->known < 0 ? 1970 : t->known > TIME_LAST ? ZONE_RULE_YEAR : year_of(t->known);

	if (!p->has_dst)
		return;
	for (int year = first; year <= ZONE_RULE_YEAR; year++) {
		int64_t start, end;
		bool south;

		posix_tz_year(p, year, &start, &end);
		south = end < start;
		for (int i = 0; i < 2; i++) {
			bool is_end = (i == 1) != south;
			int64_t at = is_end ? end : start;

			if (at > t->known && at >= t->v[t->n - 1].from)
				table_add(t, at, is_end ? p->std : p->dst);
		}
	}
}

/* Which wall times are shown a second time, as far as the policy for short jumps goes. */
static void mark_seen(struct table *t)
{
	int64_t seen = ZONE_BEGIN;

	for (size_t i = 0; i < t->n; i++) {
		struct zone_period *p = &t->v[i];

		if (i) {
			int64_t shown = p->from + p[-1].offset;

			if (p[-1].offset - p->offset > ZONE_POLICY_MAX)
				seen = ZONE_BEGIN;
			else if (shown > seen)
				seen = shown;
		}
		p->seen = seen;
	}
	t->v[t->n] = (struct zone_period){ .from = ZONE_END, .offset = t->v[t->n - 1].offset, .seen = seen };
}

static const char *read_footer(const uint8_t *p, size_t len, struct table *t)
{
	const uint8_t *end;
	struct posix_tz rule;

	if (len < 2 || p[0] != '\n' || !(end = memchr(p + 1, '\n', len - 1)))
		return "its last line is missing";
	if (end == p + 1)
		return NULL;
	if (!posix_tz_parse((const char *)p + 1, (size_t)(end - p - 1), &rule))
		return "its rule for later years cannot be read";
	apply_rule(&rule, t);
	return NULL;
}

/* NULL, or a message about the error in the file. */
static const char *read_file(const uint8_t *p, size_t len, struct table *t)
{
	struct block b;
	uint8_t version;

	if (!block_open(p, len, 4, &b))
		return "not a TZif file";
	version = p[4];
	if (version >= '2') {
		p += b.len;
		len -= b.len;
		if (!block_open(p, len, 8, &b))
			return "its 64-bit part cannot be read";
	}
	if (b.leap_count)
		return "it counts leap seconds, which POSIX time does not have; use the plain zone";
	if (!read_block(&b, t))
		return "its transitions are out of order or out of range";
	return version >= '2' ? read_footer(p + b.len, len - b.len, t) : NULL;
}

bool zone_parse(const char *name, const void *data, size_t len, struct zone **ret, struct err *e)
{
	struct table t = {};
	const char *wrong;
	AUTO(zone) *z = NULL;

	if (!zone_name_check(name, e))
		return false;
	if (len > ZONE_BYTES_MAX)
		return err_field(e, "tz", "time zone '%s': the file is too large", name);
	z = xcalloc(1, sizeof *z);
	z->v = t.v = xcalloc(TIMES_MAX + 2 * (ZONE_RULE_YEAR - 1969) + 2, sizeof *t.v);
	if ((wrong = read_file(data, len, &t)))
		return err_field(e, "tz", "time zone '%s': %s", name, wrong);
	mark_seen(&t);
	memcpy(z->name, name, strlen(name) + 1);
	z->n = t.n;
	z->v = xrealloc(t.v, (t.n + 1) * sizeof *t.v);
	*ret = STEAL(z);
	return true;
}

void zone_free(struct zone *z)
{
	if (!z)
		return;
	free((void *)z->v);
	free(z);
}
