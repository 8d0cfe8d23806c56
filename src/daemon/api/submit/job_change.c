/* SPDX-License-Identifier: Apache-2.0 */
/* Merges a patch or restores a revision, then validates the result. */
#include "daemon/api/submit/job_change.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "core/target/s3_url.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include "core/job/limits.h"
#include "core/start/sandbox_offer.h"
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
	c->to.after = &a->spec.after;
	c->to.after_mode = a->spec.after_mode;
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

	if (before->origin)
		return err_set(e, ERR_CONFLICT, "job %lld comes from %s and changes only with that file: edit the file",
			(long long)a->job->id, before->origin);
	if (a->spec.origin)
		return err_field(e, "origin", "'origin' is set by the daemon for the jobs of crontabs");
	if (!job_spec_check(&a->spec, e) ||
		(!restored && !limits_check(&a->spec, a->limits_refused, e)) ||
		!call_submission_check(&a->spec, &a->calls, a->job->owner, e) ||
		!s3_url_artifact_check(a->spec.artifact, a->calls.buckets, e))
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

/* The instant in a stored schedule: "R/2026-11-16T09:00:00Z/PT15M", "PT1H since 2026-…". */
static bool stored_anchor(const char *text, usec_t *ret)
{
	for (const char *at = text; *at; at += strcspn(at, "/ "), at += strspn(at, "/ ")) {
		AUTO_TEXT word = xstrndup(at, strcspn(at, "/ "));

		if (rfc3339_parse(word, ret, NULL))
			return true;
	}
	return false;
}

/* The canonical text of 'text' if it had been submitted at 'anchor'; NULL: it is not valid then. */
static char *text_at(const char *text, struct schedule_context c, usec_t anchor)
{
	AUTO(schedule) *s = NULL;
	AUTO_DONE(buf) out = {};

	c.anchor = anchor;
	if (!schedule_parse(text, &c, &s, NULL))
		return NULL;
	if (schedule_kind(s) == SCHEDULE_NOW)
		return xstrdup("now");
	schedule_print(s, &out);
	return buf_steal(&out);
}

/*
 * Whether 'text' means the stored schedule. A relative text is read as of the times at which the
 * stored one may have been submitted; its own anchor may differ from that time by a fixed delay.
 */
static bool schedule_text_same(const struct job *job, const struct schedule_context *c,
	const char *text, const char *stored)
{
	usec_t tries[4] = {job->created_at, job->updated_at}, anchor, other;
	size_t n = 2;

	if (strcmp(text, stored) == 0)
		return true;
	if (stored_anchor(stored, &anchor)) {
		AUTO_TEXT shifted = text_at(text, *c, anchor);

		tries[n++] = anchor;
		if (shifted && stored_anchor(shifted, &other))
			tries[n++] = anchor - (other - anchor);
	}
	for (size_t i = 0; i < n; i++) {
		AUTO_TEXT canonical = text_at(text, *c, tries[i]);

		if (text_equal(canonical, stored))
			return true;
	}
	return false;
}

/* Uses the stored texts where the meaning is the same, so that their slots do not move. */
static bool keep_same_schedules(struct job_change *a, const struct job_spec *before,
	struct zone_cache *zones, struct err *e)
{
	struct schedule_context c = {.id = a->spec.name,
		.gap = (enum dst_gap)a->spec.dst_gap,
		.fold = (enum dst_fold)a->spec.dst_fold,
		.from = a->spec.from,
		.until = a->spec.until,
		.accepted = true};
	struct strv *texts = &a->spec.schedule;

	if (texts->n == 0)
		strv_add(texts, a->spec.after.n > 0 ? "manual" : "now");
	if (!zone_cache_get(zones, a->spec.tz, &c.zone, e))
		return false;
	if (texts->n != before->schedule.n)
		return true;
	for (size_t i = 0; i < texts->n; i++)
		if (!schedule_text_same(a->job, &c, texts->v[i], before->schedule.v[i]))
			return true;
	strv_done(texts);
	*texts = (struct strv){};
	strv_copy(texts, &before->schedule);
	return true;
}

/* Copies what belongs to the submission of the job and not to its definition. */
static void keep_submitted_fields(const struct job_spec *before, struct job_spec *to)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		bool kept = (f->quiet && strcmp(f->name, "warrant") != 0) || strcmp(f->name, "template") == 0;
		char **at = (char **)((char *)to + f->offset);

		if (!kept || f->type != FIELD_TEXT)
			continue;
		free(*at);
		*at = xstrdup(*(char *const *)((const char *)before + f->offset));
	}
}

bool job_change_replace(struct job_change *a, struct job_spec *want, struct zone_cache *zones,
	struct err *e)
{
	AUTO_DONE(job_spec) before;

	a->spec = *want;
	job_spec_init(want);
	job_spec_init(&before);
	if (!spec_json_from_text(a->job->spec, &before, e))
		return false;
	keep_submitted_fields(&before, &a->spec);
	if (!a->spec.tz)
		a->spec.tz = xstrdup("UTC");
	if (!keep_same_schedules(a, &before, zones, e))
		return false;
	if (!warrants_check_change(a->warrants, a->job, &before, &a->spec, e)) {
		if (!a->preview || !e || strcmp(e->field, "warrant") != 0)
			return false;
		*e = (struct err){};
		a->warrant_missing = true;
	}
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
