/* SPDX-License-Identifier: Apache-2.0 */
/* Computes slots of schedules given on the command line. */
#include "jobctl/spec/preview.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "core/job/chain.h"
#include "core/job/job.h"
#include "core/time/civil.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "jobctl/member.h"
#include "jobctl/spec/job_object.h"
#include <inttypes.h>
#include <string.h>

void preview_done(struct preview *p)
{
	strv_done(&p->schedules);
	free(p->tz);
	free(p->id);
	free(p->after);
}

bool preview_of_job(const json_t *job, struct preview *ret, struct err *e)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(buf) after = {};

	job_spec_init(&spec);
	if (!job_object_read_spec(job, &spec, e))
		return false;
	chain_explain(&spec.after, spec.after_mode, &after);
	ret->after = after.len ? buf_steal(&after) : NULL;
	ret->schedules = spec.schedule;
	spec.schedule = (struct strv){};
	ret->tz = STEAL(spec.tz);
	ret->id = spec.name ? STEAL(spec.name) : xprintf("%" PRId64, member_int(job, "id"));
	ret->submitted = member_time(job, "created_at");
	ret->due = member_time(job, "next_at");
	ret->gap = (enum dst_gap)spec.dst_gap;
	ret->fold = (enum dst_fold)spec.dst_fold;
	ret->bound_from = spec.from;
	ret->bound_until = spec.until;
	return true;
}

bool preview_open(struct zone_cache *zones, const struct preview *p, const struct zone **ret_zone,
	struct schedule_set **ret, struct err *e)
{
	struct schedule_context c = {
		.anchor = p->submitted ? p->submitted : p->from,
		.accepted = p->submitted != 0,
		.id = p->id,
		.gap = p->gap,
		.fold = p->fold,
		.from = p->bound_from,
		.until = p->bound_until,
	};

	if (!zone_cache_get(zones, p->tz, &c.zone, e) ||
		!schedule_set_parse(&p->schedules, &c, ret, e))
		return false;
	*ret_zone = c.zone;
	return true;
}

bool preview_each(struct zone_cache *zones, const struct preview *p, preview_fn *fn, void *arg,
	struct err *e)
{
	AUTO(schedule_set) *set = NULL;
	const struct zone *z;
	usec_t slot;
	bool more;

	if (!preview_open(zones, p, &z, &set, e))
		return false;
	if (p->submitted && schedule_set_follows(set)) {
		/*
		 * An after-finish schedule depends on the end of the last run, which only the
		 * daemon knows.
		 */
		if (p->due > p->from)
			fn(p->due, z, arg);
		return true;
	}
	more = p->submitted ? schedule_set_next(set, p->from, &slot)
			    : schedule_set_first(set, &slot);
	for (int64_t n = 0; more && n < p->count; n++) {
		fn(slot, z, arg);
		more = schedule_set_next(set, slot, &slot);
	}
	return true;
}

struct joined {
	struct buf *out;
	const char *comma;
};

static void put_slot(usec_t slot, const struct zone *z, void *arg)
{
	struct joined *j = arg;
	char text[RFC3339_MAX];

	(void)z;
	buf_str(j->out, j->comma);
	buf_str(j->out, rfc3339_format(slot, text));
	j->comma = ",";
}

static bool read_batch_row(const char *row, struct preview *p, struct err *e)
{
	AUTO_DONE(strv) columns = {};

	for (const char *at = row;; at++) {
		size_t len = strcspn(at, "\t");

		strv_take(&columns, xstrndup(at, len));
		at += len;
		if (!*at)
			break;
	}
	if (columns.n < 4 || columns.n > 5)
		return err_set(e, ERR_INVALID,
			"a row must have 4 or 5 columns: schedule, zone, from, count, id");
	strv_add(&p->schedules, columns.v[0]);
	p->tz = xstrdup(columns.v[1]);
	p->id = columns.n == 5 ? xstrdup(columns.v[4]) : NULL;
	if (!text_parse_int(columns.v[3], 1, PREVIEW_MAX, &p->count))
		return err_set(e, ERR_INVALID, "the count must be from 1 to %d", PREVIEW_MAX);
	return rfc3339_parse(columns.v[2], &p->from, e);
}

void preview_batch_row(struct zone_cache *zones, const char *row, struct buf *out)
{
	AUTO_DONE(preview) p = {};
	struct joined j = {.out = out, .comma = ""};
	struct err e = {};

	if (read_batch_row(row, &p, &e) && preview_each(zones, &p, put_slot, &j, &e))
		return;
	buf_str(out, "ERROR ");
	text_escape(out, e.msg, strlen(e.msg));
}

void preview_local(usec_t slot, const struct zone *z, struct buf *out)
{
	int64_t offset = zone_offset(z, slot / USEC_SEC);
	int64_t size = offset < 0 ? -offset : offset;
	char text[RFC3339_MAX];

	rfc3339_format(slot + offset * USEC_SEC, text);
	text[strlen(text) - 1] = '\0';
	buf_printf(out, "%s%c%02d:%02d", text, offset < 0 ? '-' : '+', (int)(size / 3600),
		(int)(size / 60 % 60));
	if (size % 60)
		buf_printf(out, ":%02d", (int)(size % 60));
}

int64_t preview_clock_change(usec_t slot, const struct zone *z)
{
	int64_t t = slot / USEC_SEC, midnight;
	size_t i;
	int of_day;

	midnight = civil_split(t + zone_offset(z, t), &of_day) * DAY_SECONDS;
	/* Find a zone transition that falls on that day by the clock before it. */
	for (i = zone_find(z, midnight - ZONE_OFFSET_MAX) + 1; i < z->n; i++) {
		int64_t wall = z->v[i].from + z->v[i - 1].offset;

		if (wall >= midnight + DAY_SECONDS)
			break;
		if (wall >= midnight || z->v[i].from + z->v[i].offset > midnight)
			return z->v[i].offset - z->v[i - 1].offset;
	}
	return 0;
}
