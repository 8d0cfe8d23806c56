/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes schedules: a text is refused with a message, or its slots increase and its printed form
 * means the same.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/schedule.h"
#include "core/time/zone.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Zones with an hour forward, an hour back, half an hour, and a skipped day. */
static const struct zone_period periods[] = {
	{ -(INT64_C(1) << 60), 3600, -(INT64_C(1) << 60) },
	{ 1711846800, 7200, 1711850400 },
	{ 1729990800, 3600, 1729998000 },
	{ 1743296400, 1800, 1743300000 },
	{ 1761440400, 88200, 1761442200 },
	{ INT64_C(1) << 60, 88200, 0 },
};
static const struct zone odd = { .name = "Odd/Zone", .n = 5, .v = periods };

static void on_finding(const char *code, const char *text, void *arg)
{
	(void)arg;
	if (!*code || !*text)
		abort();
}

static void walk(const struct schedule *s, usec_t from)
{
	usec_t t = from;

	for (int i = 0; i < 20; i++) {
		usec_t before = t;

		if (!schedule_next(s, before, &t))
			return;
		if (t <= before || t > USEC_LAST)
			abort();
	}
}

static void try(const char *text, const struct schedule_context *c)
{
	AUTO(schedule) *s = NULL;
	AUTO(schedule) *again = NULL;
	AUTO_DONE(buf) printed = {};
	AUTO_DONE(buf) twice = {};
	AUTO_DONE(buf) words = {};
	struct schedule_context later = *c;
	struct err e = {};

	if (!schedule_parse(text, c, &s, &e)) {
		if (!e.msg[0] || e.kind != ERR_INVALID || !text_utf8_valid(e.msg, strlen(e.msg)))
			abort();
		return;
	}
	walk(s, 0);
	walk(s, c->anchor);
	schedule_explain(s, &words);
	schedule_lint(s, on_finding, NULL);
	schedule_print(s, &printed);
	later.anchor = 0;
	later.id = NULL;
	later.accepted = true;
	if (!words.len || !schedule_parse(printed.data, &later, &again, NULL))
		abort();
	schedule_print(again, &twice);
	if (strcmp(printed.data, twice.data))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT text = xstrndup((const char *)data, size);
	const struct schedule_context utc = { .anchor = INT64_C(1704067200500000), .id = "backup" };
	const struct schedule_context zoned = { .zone = &odd, .anchor = INT64_C(1711846800000000), .fold = DST_FOLD_LAST,
		.accepted = true };

	try(text, &utc);
	try(text, &zoned);
	return 0;
}
