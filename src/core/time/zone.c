/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the UTC offset and the local time in a zone. */
#include "core/time/zone.h"

#include "base/err.h"

#include <string.h>

static const struct zone_period utc_periods[] = {
	{ .from = ZONE_BEGIN, .offset = 0, .seen = ZONE_BEGIN },
	{ .from = ZONE_END },
};
const struct zone zone_utc = { .name = "UTC", .n = 1, .v = utc_periods };

size_t zone_find(const struct zone *z, int64_t t)
{
	const struct zone_period *base = z->v;
	size_t n = z->n;

	while (n > 1) {
		size_t half = n / 2;

		base = base[half].from <= t ? base + half : base;
		n -= half;
	}
	return (size_t)(base - z->v);
}

int64_t zone_offset(const struct zone *z, int64_t t)
{
	return z->v[zone_find(z, t)].offset;
}

int64_t zone_instant(const struct zone *z, int64_t wall)
{
	const struct zone_period *after_gap = NULL;

	for (const struct zone_period *p = z->v + zone_find(z, wall - ZONE_OFFSET_MAX);
		p < z->v + z->n && p->from <= wall + ZONE_OFFSET_MAX; p++) {
		if (wall < p->from + p->offset) {
			if (!after_gap)
				after_gap = p;
		} else if (wall < p[1].from + p->offset) {
			return wall - p->offset;
		}
	}
	return after_gap ? after_gap->from : wall;
}

enum zone_wall zone_wall(const struct zone *z, int64_t wall)
{
	size_t passes = 0;

	for (size_t i = zone_find(z, wall - ZONE_OFFSET_MAX);
		i < z->n && z->v[i].from <= wall + ZONE_OFFSET_MAX; i++) {
		const struct zone_period *p = &z->v[i];

		if (wall >= p->from + p->offset && wall < p[1].from + p->offset)
			passes++;
	}
	return passes == 0 ? ZONE_WALL_SKIPPED : passes == 1 ? ZONE_WALL_ONCE : ZONE_WALL_REPEATED;
}

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("+-_/.", c));
}

bool zone_name_check(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len == 0 || len >= ZONE_NAME_MAX)
		return err_field(e, "tz", "a time zone has 1 to %d characters, as 'Europe/Berlin'",
			ZONE_NAME_MAX - 1);
	for (const char *p = name; *p; p++)
		if (!name_char(*p))
			return err_field(e, "tz", "time zone, character %zu: not a character of a zone name",
				(size_t)(p - name) + 1);
	if (name[0] == '/')
		return err_field(e, "tz", "time zone '%s': a path is not a zone name", name);
	if (name[len - 1] == '/' || strstr(name, "//") || name[0] == '.' || strstr(name, "/.") ||
	    strstr(name, ".."))
		return err_field(e, "tz", "time zone '%s': a path is not a zone name", name);
	return true;
}
