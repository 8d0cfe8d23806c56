/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes TZif files: the bytes are refused, or give a table in which time increases. */
#include "base/err.h"
#include "core/time/civil.h"
#include "core/time/schedule.h"
#include "core/time/zone.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_table(const struct zone *z)
{
	for (size_t i = 1; i <= z->n; i++)
		if (z->v[i].from <= z->v[i - 1].from || (i < z->n && z->v[i].offset == z->v[i - 1].offset))
			abort();
	for (size_t i = 1; i < z->n; i++) {
		const struct zone_period *p = &z->v[i];

		if (zone_find(z, p->from) != i || zone_find(z, p->from - 1) != i - 1)
			abort();
		/* at the edges of the transition, inside it and around it */
		for (int64_t w = p->from + p->offset - 1; w <= p->from + p->offset + 1; w++) {
			int64_t t = zone_instant(z, w);

			if (zone_wall(z, w) != ZONE_WALL_SKIPPED && t + zone_offset(z, t) != w)
				abort();
		}
	}
}

static void walk(const struct zone *z, const char *text, usec_t from)
{
	const struct schedule_context c = { .zone = z, .anchor = from, .accepted = true };
	AUTO(schedule) *s = NULL;
	usec_t t = from;

	if (!schedule_parse(text, &c, &s, NULL))
		abort();
	for (int i = 0; i < 10; i++) {
		usec_t before = t;

		if (!schedule_next(s, before, &t))
			return;
		if (t <= before)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const texts[] = { "* * * * *", "30 2 * * *", "0 0 29 2 *", "P1D" };
	AUTO(zone) *z = NULL;
	struct err e = {};

	if (!zone_parse("Some/Zone", data, size, &z, &e)) {
		if (!e.msg[0])
			abort();
		return 0;
	}
	check_table(z);
	for (size_t i = 0; i < ELEMENTS(texts); i++) {
		walk(z, texts[i], 0);
		for (size_t k = 1; k < z->n && k < 8; k++)
			if (z->v[k].from > 3600 && z->v[k].from < TIME_LAST)
				walk(z, texts[i], (z->v[k].from - 3600) * USEC_SEC);
	}
	return 0;
}
