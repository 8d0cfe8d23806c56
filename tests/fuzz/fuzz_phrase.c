/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes time phrases: a text is refused with a message, or gives a time in the requested range. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/phrase.h"
#include "core/time/scan.h"
#include "core/time/zone.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct zone_period periods[] = {
	{ -(INT64_C(1) << 60), -12600, -(INT64_C(1) << 60) },
	{ 1711846800, 37800, 1711834200 },
	{ 1729990800, 3600, 1730028600 },
	{ INT64_C(1) << 60, 3600, 0 },
};
static const struct zone odd = { .name = "Odd/Zone", .n = 3, .v = periods };

static void try_past(const char *text, const struct zone *z, int64_t now)
{
	struct err e = {};
	struct scan s = { .text = text, .end = strlen(text), .e = &e };
	const struct phrase_context c = { .zone = z, .now = now, .past_ok = true, .whole_days = true, .back = true };
	int64_t t = -1;

	if (phrase_scan(&s, &c, &t) ? t < 0 || t > TIME_LAST || !scan_done(&s) : t != -1 || !e.msg[0])
		abort();
}

static void try(const char *text, const struct zone *z, int64_t now)
{
	struct err e = {};
	struct scan s = { .text = text, .end = strlen(text), .e = &e };
	const struct phrase_context c = { .zone = z, .now = now };
	int64_t t = -1;

	phrase_looks_like(&s);
	if (phrase_scan(&s, &c, &t) ? t < now || t > TIME_LAST || !scan_done(&s) : t != -1 || !e.msg[0])
		abort();
	try_past(text, z, now);
	s.pos = 0;
	phrase_scan_rfc3339(&s, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t nows[] = { 0, 1704067200, 1711846799, 1729992000, TIME_LAST };
	AUTO_TEXT text = NULL;

	if (size > SCHEDULE_TEXT_MAX)
		return 0;
	text = xstrndup((const char *)data, size);
	for (size_t i = 0; i < ELEMENTS(nows); i++) {
		try(text, &zone_utc, nows[i]);
		try(text, &odd, nows[i]);
	}
	return 0;
}
