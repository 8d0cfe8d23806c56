/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the results of dry runs; prints warnings about schedules. */
#include "jobctl/render/dry_run.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/preview.h"
#include <inttypes.h>
#include <string.h>

#define LABEL 14 /* width of the labels, as in 'jobctl show' */

void dry_run_say_findings(const json_t *findings)
{
	const json_t *f;
	size_t i;

	json_array_foreach(findings, i, f)
		ctl_say("note: %s (%s)", member_text(f, "message"), member_text(f, "code"));
}

/* Local time; on a day on which the clock changes, also by how much. */
static void put_local_time(usec_t t, const struct zone *z, struct buf *out)
{
	int64_t jump = preview_clock_change(t, z);
	char text[RFC3339_MAX];

	preview_local(t, z, out);
	if (jump)
		buf_printf(out, "  clock %s %s", jump > 0 ? "forward" : "back",
			duration_format((jump < 0 ? -jump : jump) * USEC_SEC, text));
}

static void put_next_slots(const struct ctl *c, const json_t *job, struct buf *out)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	const char *tz = member_text(job, "tz");
	const struct zone *z = NULL;
	const json_t *at;
	char words[WORDS_MAX];
	size_t i;

	/* If the zone is not installed here, times are shown in the user's zone. */
	if (tz && strcmp(tz, "UTC") != 0 && !zone_cache_get(zones, tz, &z, NULL))
		z = NULL;
	json_array_foreach(json_object_get(job, "next"), i, at) {
		usec_t t;

		if (!rfc3339_parse(json_string_value(at), &t, NULL))
			continue;
		buf_printf(out, "%-*s", LABEL, i ? "" : "next");
		if (z)
			put_local_time(t, z, out);
		else
			buf_str(out, words_instant(t, words));
		if (c->terminal)
			buf_printf(out, "  %s", words_relative(t, c->now, words));
		buf_char(out, '\n');
	}
}

static void put_dry_run_line(const char *label, const char *text, struct buf *out)
{
	buf_printf(out, "%-*s", LABEL, label);
	text_escape(out, text, strlen(text));
}

static void put_schedule_outlook(const struct ctl *c, const json_t *job, struct buf *out)
{
	const json_t *f;
	size_t i;

	if (member_text(job, "explain")) {
		put_dry_run_line("schedule", member_text(job, "explain"), out);
		buf_char(out, '\n');
	}
	put_next_slots(c, job, out);
	json_array_foreach(json_object_get(job, "findings"), i, f) {
		put_dry_run_line("note", member_text(f, "message"), out);
		buf_printf(out, " (%s)\n", member_text(f, "code"));
	}
}

int dry_run_show_change(const struct ctl *c, const json_t *job)
{
	AUTO_DONE(buf) out = {};
	bool changed = json_is_true(json_object_get(job, "changed"));

	if (changed) {
		put_dry_run_line("change", member_text(job, "what"), &out);
		buf_char(&out, '\n');
	}
	put_schedule_outlook(c, job, &out);
	render_flush(&out);
	ctl_say(changed ? "nothing was changed (--dry-run)"
			: "the job already has this definition; nothing would be changed");
	return EXIT_SUCCESS;
}

int dry_run_show(const struct ctl *c, const json_t *job)
{
	AUTO_DONE(buf) out = {};

	if (render_wants_json(c))
		return render_object(c, job);
	put_schedule_outlook(c, job, &out);
	render_flush(&out);
	if (json_is_true(json_object_get(job, "replaced")))
		ctl_say("nothing was changed (--dry-run); the job would replace job '%s'",
			member_text(job, "name"));
	else if (json_is_true(json_object_get(job, "existed")))
		ctl_say("nothing was added (--dry-run), and nothing would be: job %" PRId64
			" already exists",
			member_int(job, "id"));
	else
		ctl_say("nothing was added (--dry-run)");
	return EXIT_SUCCESS;
}
