/* SPDX-License-Identifier: Apache-2.0 */
/* Formats pauses in English; parses --until. */
#include "jobctl/render/pauses.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/schedule.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/render/words.h"
#include <inttypes.h>
#include <string.h>

bool pause_until_read(const struct ctl *c, const char *text, usec_t *ret, struct err *e)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct schedule_context context = {.anchor = c->now};
	AUTO(schedule) *when = NULL;
	AUTO_TEXT tz = NULL;
	usec_t d;

	if (duration_parse(text, &d, NULL)) {
		*ret = c->now + d;
		return true;
	}
	tz = local_zone();
	/* text that no other form recognises counts as cron, whose message would not help here */
	if (!zone_cache_get(zones, tz, &context.zone, e) ||
		(schedule_syntax(text) != SYNTAX_CRON && !schedule_parse(text, &context, &when, e)))
		return err_wrap(e, "--until");
	if (!when || schedule_kind(when) != SCHEDULE_ONCE || !schedule_first(when, ret))
		return err_set(e, ERR_INVALID,
			"--until: '%s' is not a single time; write 2h, 'tomorrow 9am' or "
			"2026-11-16T09:00:00Z",
			text);
	return true;
}

static void put_pause_time(const struct ctl *c, const json_t *o, const char *before,
	const char *key, struct buf *out)
{
	char words[WORDS_MAX], instant[WORDS_MAX];
	usec_t t = member_time(o, key);

	if (t && c->terminal)
		buf_printf(out, " %s %s (%s)", before, words_instant(t, instant),
			words_relative(t, c->now, words));
	else if (t)
		buf_printf(out, " %s %s", before, words_instant(t, instant));
}

static bool is_future_pause(const struct ctl *c, const json_t *pause)
{
	return json_is_true(json_object_get(pause, "later")) && member_time(pause, "at") > c->now;
}

void pause_describe(const struct ctl *c, const json_t *pause, struct buf *out)
{
	const char *by = member_text(pause, "by"), *reason = member_text(pause, "reason");
	const char *scope = member_text(pause, "scope"), *spared = member_text(pause, "spared");

	buf_str(out, scope && strcmp(scope, "freeze") == 0 ? "frozen" : "paused");
	if (by)
		buf_printf(out, " by %s", by);
	put_pause_time(c, pause, is_future_pause(c, pause) ? "from" : "since", "at", out);
	put_pause_time(c, pause, "until", "until", out);
	if (spared)
		buf_printf(out, ", except jobs with the tag %s", spared);
	if (reason)
		buf_printf(out, ": %s", reason);
}

void pause_describe_scope(const json_t *pause, struct buf *out)
{
	const char *scope = member_text(pause, "scope"), *key = member_text(pause, "key");
	const json_t *uid = json_object_get(pause, "uid");
	bool whose = json_is_integer(uid);

	if (strcmp(scope, "queue") == 0)
		buf_printf(out, "queue '%s'", key);
	else if (strcmp(scope, "tag") == 0)
		buf_printf(out, "everything with the tag %s", key);
	else
		buf_str(out, "everything");
	if (whose)
		buf_printf(out, " of uid %" JSON_INTEGER_FORMAT, json_integer_value(uid));
}

bool pauses_say(struct ctl *c, struct err *e)
{
	json_auto_t *answer = NULL;
	const json_t *pause;
	size_t i;

	if (!api_call(c, "GET", "/v1/pauses", NULL, &answer, e))
		/* If there is no daemon, the next request reports that. */
		return e->kind == ERR_NOT_FOUND || (e->kind == ERR_UNREACHABLE && !c->client);
	json_array_foreach(json_object_get(answer, "pauses"), i, pause) {
		AUTO_DONE(buf) line = {};

		pause_describe_scope(pause, &line);
		buf_str(&line, is_future_pause(c, pause) ? " will be " : " is ");
		pause_describe(c, pause, &line);
		ctl_say("%s", line.data);
	}
	return true;
}
