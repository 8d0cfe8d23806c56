/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the times of at(1): a text is refused, or gives a time in the range that can be scheduled. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/at_time.h"
#include "core/time/civil.h"
#include "core/time/zone.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct zone_period periods[] = {
	{ ZONE_BEGIN, -12600, ZONE_BEGIN },
	{ 1711846800, 37800, 1711834200 },
	{ 1729990800, 3600, 1730028600 },
	{ ZONE_END, 3600, 0 },
};
static const struct zone odd = { .name = "Odd/Zone", .n = 3, .v = periods };

static void try(char *text, const struct zone *z, int64_t now)
{
	const struct at_time_context c = { .zone = z, .now = now };
	int64_t t = -1;
	struct err e = {};

	switch (at_time_parse(&c, &text, 1, &t, &e)) {
	case AT_TIME_OK:
		if (t < now - now % 60 || t > TIME_LAST)
			abort();
		break;
	case AT_TIME_GARBLED:
		if (!e.msg[0])
			abort();
		break;
	case AT_TIME_PAST:
		break;
	}
	t = -1;
	if (at_time_posix(&c, text, &t) == AT_TIME_OK ? t < 0 || t > TIME_LAST + 59 : t != -1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t nows[] = { 0, 1704067200, 1711846799, 1729992000, TIME_LAST };
	AUTO_TEXT text = NULL;

	if (size > 2 * AT_TIME_TEXT_MAX)
		return 0;
	text = xstrndup((const char *)data, size);
	for (size_t i = 0; i < ELEMENTS(nows); i++) {
		try(text, &zone_utc, nows[i]);
		try(text, &odd, nows[i]);
	}
	return 0;
}
