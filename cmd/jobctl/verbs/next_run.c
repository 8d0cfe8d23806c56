/* SPDX-License-Identifier: Apache-2.0 */
/* Says when a job that was added or changed runs, or what keeps it from running. */
#include "jobctl/verbs/next_run.h"

#include "base/auto.h"
#include "base/duration.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/member.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/preview.h"
#include <inttypes.h>
#include <string.h>

static bool waits_for_boot(const json_t *job)
{
	const json_t *schedule = json_object_get(job, "schedule");
	const char *only = json_string_value(json_array_get(schedule, 0));

	return json_array_size(schedule) == 1 && only && strcmp(only, "@reboot") == 0;
}

/* The time in the zone of the job. */
static void put_instant(const json_t *job, usec_t t, struct buf *out)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	const char *tz = member_text(job, "tz");
	char text[WORDS_MAX];
	const struct zone *z;

	if (tz && strcmp(tz, "UTC") != 0 && zone_cache_get(zones, tz, &z, NULL))
		preview_local(t, z, out);
	else
		buf_str(out, words_instant(t, text));
}

/* "; it does not start now: frozen by root since … (jobctl why 12)" */
static bool put_obstacle(const struct ctl *c, const json_t *shown, usec_t next, struct buf *line)
{
	static const char *const no_obstacle[] = {"starting", "retry", "rate"};
	const json_t *waits = json_object_get(shown, "waiting_for");
	const char *code = member_text(waits, "code"), *message = member_text(waits, "message");
	AUTO_DONE(buf) local = {};

	for (size_t i = 0; code && i < ELEMENTS(no_obstacle); i++)
		if (strcmp(code, no_obstacle[i]) == 0)
			return false;
	if (!code || !message)
		return false;
	if (next > c->now + USEC_SEC) {
		buf_str(line, "; its first slot is at ");
		put_instant(shown, next, line);
		buf_str(line, "; currently: ");
	} else {
		buf_str(line, "; it does not start now: ");
	}
	words_localize(message, &local);
	text_escape(line, local.data ? local.data : "", local.len);
	buf_printf(line, " (jobctl why %" PRId64 ")", member_int(shown, "id"));
	return true;
}

void next_run_words(struct ctl *c, const json_t *job, struct buf *line)
{
	const struct ref ref = {.text = "", .job = member_int(job, "id")};
	usec_t next = member_time(job, "next_at"), jitter;
	json_auto_t *shown = NULL;
	char relative[WORDS_MAX];

	if (json_is_object(json_object_get(job, "pause"))) {
		buf_printf(line, "; it is paused (jobctl resume %" PRId64 ")",
			member_int(job, "id"));
		return;
	}
	if (next && api_job(c, &ref, &shown, NULL) && put_obstacle(c, shown, next, line))
		return;
	jitter = (usec_t)(json_number_value(json_object_get(job, "jitter")) * USEC_SEC);
	if (next > c->now + USEC_SEC) {
		buf_printf(line, "; it runs %s, at ", words_relative(next, c->now, relative));
		put_instant(job, next, line);
		if (jitter)
			buf_printf(line, ", or up to %s later", duration_format(jitter, relative));
	} else if (next && jitter) {
		buf_printf(line, "; it runs within %s", duration_format(jitter, relative));
	} else if (next) {
		buf_printf(line, "; it runs now (jobctl log -f %" PRId64 ")",
			member_int(job, "id"));
	} else if (waits_for_boot(job)) {
		buf_str(line, "; it runs after each boot of the machine");
	}
}
