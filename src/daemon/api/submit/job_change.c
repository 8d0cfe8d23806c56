/* SPDX-License-Identifier: Apache-2.0 */
/* Merges a patch or restores a revision, then validates the result. */
#include "daemon/api/submit/job_change.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include "core/job/limits.h"
#include "core/job/sandbox_offer.h"
#include "core/time/schedule_set.h"
#include "core/time/slots.h"
#include "core/time/zone_cache.h"
#include "daemon/api/submit/submission.h"
#include "daemon/loop/warrants.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <string.h>

void job_change_done(struct job_change *a)
{
	job_spec_done(&a->spec);
	free(a->text);
	free(a->what);
	forecast_done(&a->forecast);
	*a = (struct job_change){};
}

/* The definition before the change, and how the schedule is parsed. */
struct reading {
	const struct job_spec *before;
	bool restored;  /* it was accepted before */
	bool given;     /* the schedule texts are new */
	struct schedule_set *set; /* owned */
};

static void reading_done(struct reading *r)
{
	schedule_set_free(r->set);
}

/*
 * A new schedule takes effect from now; H is seeded by the current name or else by the number. An
 * unchanged schedule is parsed as the planner parses it, so that a new name does not move its
 * slots.
 */
static bool read_new_schedule(const struct job_change *a, struct reading *r,
	struct zone_cache *zones, struct err *e)
{
	AUTO_TEXT number = xprintf("%" PRId64, a->job->id);
	bool fresh = r->given && !r->restored;
	const char *name = fresh ? a->spec.name : r->before->name;
	struct schedule_context c = {
		.anchor = fresh ? a->now : a->job->created_at,
		.id = name ? name : number,
		.gap = (enum dst_gap)a->spec.dst_gap,
		.fold = (enum dst_fold)a->spec.dst_fold,
		.from = a->spec.from,
		.until = a->spec.until,
		.accepted = !fresh,
	};

	if (r->restored)
		c.id = a->spec.name ? a->spec.name : number;
	return zone_cache_get(zones, a->spec.tz, &c.zone, e) &&
	       schedule_set_parse(&a->spec.schedule, &c, &r->set, e) &&
	       submission_check_kind(r->set, e);
}

static bool has_now(const struct schedule_set *set)
{
	for (size_t i = 0; i < schedule_set_count(set); i++)
		if (schedule_kind(schedule_set_at(set, i)) == SCHEDULE_NOW)
			return true;
	return false;
}

/*
 * Stores the schedule as absolute texts. A job that gets its first name keeps the slots that its
 * number determined.
 */
static void keep_texts(struct job_change *a, const struct reading *r)
{
	bool named = !r->before->name && a->spec.name && !r->restored;
	AUTO_DONE(strv) texts = {};

	for (size_t i = 0; i < schedule_set_count(r->set); i++) {
		const struct schedule *part = schedule_set_at(r->set, i);
		AUTO_DONE(buf) text = {};
		bool print = (r->given && !r->restored) || (named && schedule_hashed(part));

		if (!print || schedule_kind(part) == SCHEDULE_NOW) {
			strv_add(&texts, a->spec.schedule.v[i]);
			continue;
		}
		schedule_print(part, &text);
		strv_take(&texts, buf_steal(&text));
	}
	strv_done(&a->spec.schedule);
	a->spec.schedule = texts;
	texts = (struct strv){};
}

/* The first slot after the change. A "now" part was due when the job was added. */
static usec_t first_slot_after_change(const struct job_change *a, const struct reading *r)
{
	usec_t next = 0, slot;

	if (schedule_set_follows(r->set))
		return schedule_set_next_after_finish(r->set, a->now, a->now, &slot) ? slot : 0;
	for (size_t i = 0; i < schedule_set_count(r->set); i++) {
		const struct schedule *part = schedule_set_at(r->set, i);

		if (schedule_kind(part) != SCHEDULE_NOW && schedule_next(part, a->now, &slot) &&
			(!next || slot < next))
			next = slot;
	}
	if (!next && schedule_set_boots(r->set))
		return slot_boot_wait(a->spec.until, a->now);
	return !next && schedule_set_kind(r->set) == SCHEDULE_MANUAL ? USEC_NEVER : next;
}

static bool plan_slots(struct job_change *a, const struct reading *r, struct err *e)
{
	struct op_job_change *c = &a->change;

	if (r->given && !r->restored && has_now(r->set))
		return err_field(e, "schedule", "a change does not start a job; 'jobctl run' does");
	c->to.next_slot = first_slot_after_change(a, r);
	c->follows = schedule_set_follows(r->set);
	if (c->to.next_slot || r->restored)
		return true;
	if (has_now(r->set))
		c->reschedule = false; /* its only slot was when it was added */
	else
		return err_field(e, "schedule", "the time is in the past; the job would never run");
	return true;
}

static bool reschedule_job(struct job_change *a, struct reading *r, struct zone_cache *zones,
	struct err *e)
{
	struct op_job_change *c = &a->change;

	r->given = !job_diff_field_equal(job_field_find("schedule"), r->before, &a->spec);
	c->reschedule = !job_diff_slots_equal(r->before, &a->spec);
	if (!read_new_schedule(a, r, zones, e) || (c->reschedule && !plan_slots(a, r, e)))
		return false;
	if (c->reschedule)
		forecast_lint(&a->forecast, r->set, &a->spec, false);
	if (a->preview)
		forecast_preview(&a->forecast, r->set, &a->spec, a->now, false);
	c->to.boots = schedule_set_boots(r->set);
	keep_texts(a, r);
	return true;
}

static void fill_job_change(struct job_change *a)
{
	struct op_job_change *c = &a->change;

	c->id = a->job->id;
	c->expect = a->job->revision;
	c->what = a->what;
	c->to.name = a->spec.name;
	c->to.spec = a->text;
	c->to.tags = &a->spec.tags;
	c->to.priority = a->spec.priority;
	c->to.queue = a->spec.queue;
	c->to.now = a->now;
	policy_start_of(&a->spec, &c->to.policy);
}

static bool differs(const struct job_spec *a, const struct job_spec *b)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (!job_diff_field_equal(&job_fields[i], a, b))
			return true;
	return false;
}

static bool check_change(struct job_change *a, const struct job_spec *before, bool restored,
	struct zone_cache *zones, struct err *e)
{
	AUTO_DONE(reading) r = {.before = before, .restored = restored};
	AUTO_DONE(buf) words = {};

	if (!job_spec_check(&a->spec, e) ||
		(!restored && !limits_check(&a->spec, a->limits_refused, e)))
		return false;
	if (!text_equal(before->sandbox, a->spec.sandbox) &&
		!sandbox_offers_check(a->sandboxes, a->spec.sandbox, e))
		return false;
	a->changed = differs(before, &a->spec);
	if (!a->changed)
		return true;
	if (!reschedule_job(a, &r, zones, e))
		return false;
	job_diff_words(before, &a->spec, &words);
	a->what = buf_steal(&words);
	a->text = spec_json_to_text(&a->spec);
	fill_job_change(a);
	return true;
}

/* Parses the current definition twice: one copy to compare with, one to change. */
static bool read_specs(struct job_change *a, struct job_spec *before, struct err *e)
{
	job_spec_init(&a->spec);
	return spec_json_from_text(a->job->spec, before, e) &&
	       spec_json_from_text(a->job->spec, &a->spec, e);
}

bool job_change_merge(struct job_change *a, const json_t *patch, struct zone_cache *zones,
	struct err *e)
{
	AUTO_DONE(job_spec) before;

	job_spec_init(&before);
	if (!read_specs(a, &before, e) || !spec_json_merge(patch, &a->spec, e))
		return false;
	if (!text_equal(before.template, a->spec.template))
		return err_field(e, "template",
			"the template of a job cannot be changed; add another job with 'jobctl add "
			"--template'");
	if (!a->spec.tz)
		a->spec.tz = xstrdup("UTC");
	if (!a->preview && !warrants_check_change(a->warrants, a->job, &before, &a->spec, e))
		return false;
	if (a->spec.schedule.n == 0)
		/* a change cannot leave a job without a schedule */
		strv_copy(&a->spec.schedule, &before.schedule);
	return check_change(a, &before, false, zones, e);
}

bool job_change_restore(struct job_change *a, const char *spec, int64_t revision,
	struct zone_cache *zones, struct err *e)
{
	AUTO_DONE(job_spec) before;

	job_spec_init(&before);
	job_spec_init(&a->spec);
	if (!spec_json_from_text(a->job->spec, &before, e) ||
		!spec_json_from_text(spec, &a->spec, e))
		return false;
	a->change.origin = revision;
	return check_change(a, &before, true, zones, e);
}
