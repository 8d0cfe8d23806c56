/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the body of a submission into validated jobs. */
#include "daemon/api/submit/submission.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/target/s3_url.h"
#include "core/job/limits.h"
#include "core/start/sandbox_offer.h"
#include "core/time/schedule_set.h"
#include "core/time/slots.h"
#include "core/time/zone_cache.h"
#include "daemon/loop/warrants.h"
#include "store/ops/job/jobs.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BULK_MEMBERS 50 /* average number of values per job in a bulk request */

void submission_init(struct submission *s)
{
	*s = (struct submission){};
}

void submission_done(struct submission *s)
{
	for (size_t i = 0; i < s->n; i++) {
		job_spec_done(&s->v[i].spec);
		free(s->v[i].text);
		free(s->v[i].key);
		free(s->v[i].content);
		free(s->v[i].asked);
		forecast_done(&s->v[i].forecast);
	}
	free(s->v);
	free(s->jobs);
	free(s->owner);
	free(s->traceparent);
	free(s->tracestate);
	free(s->baggage);
	sandbox_offers_free(s->sandboxes);
	buf_done(&s->body);
}

/* ---- one job ---- */

bool submission_check_kind(const struct schedule_set *set, struct err *e)
{
	if (schedule_set_follows(set) && schedule_set_count(set) > 1)
		return err_field(e, "schedule",
			"'after-finish' cannot be combined with other schedules");
	return true;
}

static bool hashed_by_number(const struct schedule_set *set, const struct job_spec *spec)
{
	for (size_t i = 0; i < schedule_set_count(set); i++)
		if (!spec->name && schedule_hashed(schedule_set_at(set, i)))
			return true;
	return false;
}

/*
 * A "now" part queues a run together with the job; the other parts wait for their first slot. H
 * takes its value from the name, or else from the number, which is not known before the job is
 * stored: such a text is kept unchanged.
 */
static void take_slots(const struct schedule_set *set, const struct job_spec *spec,
	struct job_new *new, struct strv *texts)
{
	bool later = hashed_by_number(set, spec);

	for (size_t i = 0; i < schedule_set_count(set); i++) {
		const struct schedule *part = schedule_set_at(set, i);
		AUTO_DONE(buf) text = {};
		usec_t first;

		if (schedule_kind(part) == SCHEDULE_NOW) {
			new->run_at = new->now;
			new->run_delay = io_random_upto(spec->jitter);
			strv_add(texts, "now");
			continue;
		}
		if (schedule_hashed(part) && !spec->name) {
			strv_add(texts, spec->schedule.v[i]);
			continue;
		}
		schedule_print(part, &text);
		strv_take(texts, buf_steal(&text));
		if (schedule_first(part, &first) && (!new->next_slot || first < new->next_slot))
			new->next_slot = first;
	}
	if (later)
		new->next_slot = slot_search_from(new->now);
}


static bool read_submitted_schedule(const struct job_spec *spec, usec_t now, const char *id,
	struct zone_cache *zones, struct schedule_set **ret, struct err *e)
{
	struct schedule_context c = {
		.anchor = now,
		.id = id,
		.gap = (enum dst_gap)spec->dst_gap,
		.fold = (enum dst_fold)spec->dst_fold,
		.from = spec->from,
		.until = spec->until,
	};

	return zone_cache_get(zones, spec->tz, &c.zone, e) &&
	       schedule_set_parse(&spec->schedule, &c, ret, e);
}

bool submission_set_number(struct submission *s, size_t i, struct job_new *n,
	struct zone_cache *zones, struct err *e)
{
	struct submission_job *j = &s->v[i];
	AUTO(schedule_set) *set = NULL;
	char number[32];

	snprintf(number, sizeof(number), "%" PRId64, n->id);
	if (!read_submitted_schedule(&j->spec, n->now, number, zones, &set, e))
		return false;
	if (!schedule_set_first(set, &n->next_slot))
		n->next_slot = 0;
	forecast_lint(&j->forecast, set, &j->spec, false);
	forecast_machine(&j->forecast, &j->spec, &s->machine);
	forecast_services(&j->forecast, &j->spec, &s->services);
	return true;
}

static void schedule_forget(struct submission_schedule *last)
{
	strv_done(&last->texts);
	free(last->tz);
	schedule_set_free(last->set);
	*last = (struct submission_schedule){};
}

static bool schedule_is_last(const struct submission_schedule *last, const struct job_spec *spec)
{
	if (!last->set || last->dst_gap != spec->dst_gap || last->dst_fold != spec->dst_fold || last->from != spec->from ||
	    last->until != spec->until || last->texts.n != spec->schedule.n || !text_equal(last->tz, spec->tz))
		return false;
	for (size_t i = 0; i < last->texts.n; i++)
		if (strcmp(last->texts.v[i], spec->schedule.v[i]) != 0)
			return false;
	return true;
}

static bool schedule_is_hashed(const struct schedule_set *set)
{
	for (size_t i = 0; i < schedule_set_count(set); i++)
		if (schedule_hashed(schedule_set_at(set, i)))
			return true;
	return false;
}

/* A schedule that does not depend on the job is parsed once for adjacent jobs of a bulk. *ret_own is freed by the caller. */
static bool read_schedule_once(struct submission *s, const struct job_spec *spec, usec_t now, struct zone_cache *zones,
	struct schedule_set **ret_own, const struct schedule_set **ret, struct err *e)
{
	struct submission_schedule *last = &s->schedule;

	if (schedule_is_last(last, spec)) {
		*ret = last->set;
		return true;
	}
	if (!read_submitted_schedule(spec, now, spec->name, zones, ret_own, e))
		return false;
	*ret = *ret_own;
	if (!s->bulk || s->complete || schedule_is_hashed(*ret))
		return true;
	schedule_forget(last);
	*last = (struct submission_schedule){.tz = xstrdup(spec->tz), .dst_gap = spec->dst_gap, .dst_fold = spec->dst_fold,
		.from = spec->from, .until = spec->until, .set = STEAL(*ret_own)};
	strv_copy(&last->texts, &spec->schedule);
	return true;
}

/*
 * Relative times are resolved against the time of the submission, and the schedule is stored as
 * absolute text.
 */
static bool schedule_job(struct submission *s, struct submission_job *j, struct job_new *new,
	struct zone_cache *zones, struct err *e)
{
	AUTO(schedule_set) *own = NULL;
	AUTO_DONE(strv) texts = {};
	const struct schedule_set *set;
	bool undecided;

	if (j->spec.after.n > 0 && j->spec.schedule.n == 0)
		strv_add(&j->spec.schedule, "manual"); /* its slots are those of its parents */
	if (!read_schedule_once(s, &j->spec, new->now, zones, &own, &set, e) || !submission_check_kind(set, e))
		return false;
	undecided = hashed_by_number(set, &j->spec);
	take_slots(set, &j->spec, new, &texts);
	if (undecided && s->first_slot) {
		j->schedule_cache = s->schedule_cache;
		new->first_slot = s->first_slot;
		new->first_slot_arg = j;
	}
	new->boots = schedule_set_boots(set);
	if (new->boots && !new->next_slot)
		/* the job waits for future boots */
		new->next_slot = slot_boot_wait(j->spec.until, new->now);
	if (schedule_set_kind(set) == SCHEDULE_MANUAL)
		new->next_slot = USEC_NEVER; /* the job runs only when it is triggered */
	if (!new->run_at && !new->next_slot)
		return err_field(e, "schedule", "the time is in the past; the job would never run");
	if (s->dry_run)
		forecast_preview(&j->forecast, set, &j->spec, new->now, undecided);
	if (s->dry_run || (!s->bulk && !undecided))
		forecast_lint(&j->forecast, set, &j->spec, undecided);
	forecast_machine(&j->forecast, &j->spec, &s->machine);
	forecast_services(&j->forecast, &j->spec, &s->services);
	if (!s->bulk && slot_known(new->next_slot) &&
		(s->dry_run || new->next_slot % USEC_MIN == 0))
		new->density_max = SCHEDULE_DENSITY_MAX;
	strv_done(&j->spec.schedule);
	j->spec.schedule = texts;
	texts = (struct strv){};
	return true;
}

static const char *const if_exists_names[IF_EXISTS_MAX] = {
	[EXISTS_ERROR] = "error", [EXISTS_KEEP] = "keep", [EXISTS_REPLACE] = "replace"};

/* Removes the member from the submission, because it is not a field of the job. */
static bool take_if_exists(json_t *o, enum if_exists *ret, struct err *e)
{
	const json_t *v = json_object_get(o, "if_exists");
	const char *word = json_string_value(v);

	if (!v)
		return true;
	for (int i = 0; word && i < IF_EXISTS_MAX; i++)
		if (strcmp(word, if_exists_names[i]) == 0) {
			*ret = (enum if_exists)i;
			json_object_del(o, "if_exists");
			return true;
		}
	return err_field(e, "if_exists", "'if_exists' must be error, keep or replace");
}

/*
 * A repeated key is compared by the text of the submission and not by the resulting job, because
 * the template may have changed since.
 */
static bool fill_from_template(struct submission *s, struct submission_job *j, json_t *o,
	struct err *e)
{
	AUTO_DONE(buf) text = {};
	json_t *key = json_object_get(o, "key");

	if (!s->from_template)
		return err_set(e, ERR_INTERNAL, "templates cannot be used here");
	if (key) {
		json_auto_t *alone = json_pack("{s:O}", "key", key);

		if (!spec_json_read(alone, &j->spec, &j->key, e))
			return false;
		json_object_del(o, "key");
	}
	json_value_write(o, &text);
	j->content = buf_steal(&text);
	return s->from_template(s->template_arg, s->uid, o, &j->spec, e);
}

bool submission_check_owner(const struct submission *s, const struct job_spec *spec,
	const struct strv *had, struct err *e)
{
	if (s->foreign && !job_env_check_foreign(&spec->env, had, e))
		return false;
	if (s->of_root && spec->artifact)
		return err_field(e, "artifact",
			"a job of root cannot have an artifact, because the daemon that fetches it "
			"is not root; give the job to another user, or install the program");
	if (s->of_root && spec->state_size)
		return err_field(e, "state_size",
			"the state of a job of root stays on its node, because the daemon that would move it is not root; "
			"leave 'state_size' out, or give the job to another user");
	return true;
}

char *submission_asked(struct job_spec *spec)
{
	char *warrant = STEAL(spec->warrant), *text = spec_json_to_text(spec);

	spec->warrant = warrant;
	return text;
}

/* The definition without the trace context, so that a repeated submission is recognised. */
static char *asked_untraced(const struct submission *s, struct job_spec *spec)
{
	char *parent = STEAL(spec->traceparent), *state = STEAL(spec->tracestate), *baggage = STEAL(spec->baggage);
	char *text = s->complete ? submission_asked(spec) : spec_json_to_text(spec);

	spec->traceparent = parent;
	spec->tracestate = state;
	spec->baggage = baggage;
	return text;
}

/* The trace context of the request, unless the definition has one. */
static void set_trace(const struct submission *s, struct job_spec *spec)
{
	if (spec->traceparent || !s->traceparent)
		return;
	spec->traceparent = xstrdup(s->traceparent);
	if (!spec->tracestate)
		spec->tracestate = xstrdup(s->tracestate);
	if (!spec->baggage)
		spec->baggage = xstrdup(s->baggage);
}

static bool read_submitted_job(struct submission *s, size_t i, json_t *o, struct err *e)
{
	struct submission_job *j = &s->v[i];

	if (!s->complete && json_is_object(o) && !take_if_exists(o, &s->jobs[i].if_exists, e))
		return false;
	if (!s->complete && json_is_string(json_object_get(o, "template"))
			? !fill_from_template(s, j, o, e)
			: !spec_json_read(o, &j->spec, s->complete ? NULL : &j->key, e))
		return false;
	if (!job_spec_check(&j->spec, e) || !limits_check(&j->spec, s->limits_refused, e) ||
		!call_submission_check(&j->spec, &s->calls, s->owner, e) ||
		!s3_url_artifact_check(j->spec.artifact, s->calls.buckets, e) ||
		!submission_check_owner(s, &j->spec, NULL, e))
		return false;
	if (!s->dry_run && call_kind_of(&j->spec) == CALL_NONE && !warrants_check(s->warrants, s->uid, j->spec.warrant, e))
		return false;
	if (s->jobs[i].if_exists && !j->spec.name)
		return err_field(e, "if_exists", "'if_exists' needs a job name");
	if (j->spec.name || j->key)
		j->asked = asked_untraced(s, &j->spec);
	return true;
}

bool submission_prepare_job(struct submission *s, size_t i, json_t *o, struct zone_cache *zones,
	struct err *e)
{
	struct submission_job *j = &s->v[i];
	struct job_new *new = &s->jobs[i];

	job_spec_init(&j->spec);
	new->now = s->now;
	if (!read_submitted_job(s, i, o, e) ||
		!sandbox_offers_check(s->sandboxes, j->spec.sandbox, e))
		return false;
	if (j->spec.origin)
		return err_field(e, "origin", "'origin' is set by the daemon for the jobs of crontabs");
	if (!j->spec.tz)
		j->spec.tz = xstrdup("UTC");
	if (!schedule_job(s, j, new, zones, &j->late)) {
		if (!j->key || s->dry_run) {
			if (e)
				*e = j->late;
			return false;
		}
		new->late = &j->late; /* a known key is accepted although the time has passed */
	}
	set_trace(s, &j->spec);
	j->text = spec_json_to_text(&j->spec);
	new->uid = s->uid;
	new->name = j->spec.name;
	new->spec = j->text;
	new->key = j->key;
	new->content = j->content ? j->content : j->asked;
	new->asked = j->asked;
	new->tags = &j->spec.tags;
	new->after = &j->spec.after;
	new->after_mode = j->spec.after_mode;
	new->priority = j->spec.priority;
	new->queue = j->spec.queue;
	policy_start_of(&j->spec, &new->policy);
	new->limit = s->jobs_limit;
	new->bytes_limit = s->bytes_limit;
	new->paused = s->paused;
	new->by_admin = s->admin;
	return true;
}

/* ---- body ---- */

void submission_allocate(struct submission *s, size_t n)
{
	s->v = xcalloc(n, sizeof(*s->v));
	s->jobs = xcalloc(n, sizeof(*s->jobs));
	s->n = n;
}

void submission_error_field(struct err *e, size_t index)
{
	char field[sizeof(e->field)];

	if (!e)
		return;
	snprintf(field, sizeof(field), "jobs[%zu]%s%.40s", index, e->field[0] ? "." : "", e->field);
	memcpy(e->field, field, sizeof(field));
	err_wrap(e, "jobs[%zu]", index);
}

static bool prepare_bulk(struct submission *s, const json_t *o, struct zone_cache *zones,
	struct err *e)
{
	json_t *list = json_object_get(o, "jobs"), *job;
	size_t i, n = json_array_size(list);

	if (!json_is_array(list) || json_object_size(o) != 1)
		return err_field(e, "jobs", "a bulk must be {\"jobs\":[…]} without other members");
	if (n == 0)
		return err_field(e, "jobs", "the list of jobs is empty");
	if (n > s->max_jobs) {
		err_field(e, "jobs", "%zu jobs are too many, the limit is %zu; split the request",
			n, s->max_jobs);
		if (e)
			e->kind = ERR_TOO_LARGE;
		return false;
	}
	submission_allocate(s, n);
	json_array_foreach(list, i, job) {
		if (!submission_prepare_job(s, i, job, zones, e)) {
			submission_error_field(e, i);
			break;
		}
	}
	schedule_forget(&s->schedule); /* it borrows from 'zones' */
	return i == n;
}

bool submission_prepare(struct submission *s, struct zone_cache *zones, struct err *e)
{
	size_t members = s->bulk ? JSON_MEMBERS_MAX + s->max_jobs * BULK_MEMBERS : JSON_MEMBERS_MAX;
	json_t *o = json_read_bounded(s->body.data, s->body.len, s->max_body, members, e);
	bool ok;

	if (!o)
		return false;
	buf_done(&s->body);
	if (s->bulk) {
		ok = prepare_bulk(s, o, zones, e);
	} else {
		submission_allocate(s, 1);
		ok = submission_prepare_job(s, 0, o, zones, e);
	}
	json_decref(o);
	return ok;
}

/* A member named "template" must contain these bytes, or an escape for one of them. */
bool submission_needs_store(const struct submission *s)
{
	return s->body.len && (memmem(s->body.data, s->body.len, "template", 8) ||
				      memmem(s->body.data, s->body.len, "\\u00", 4));
}

void submission_set_owner(struct submission *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->jobs[i].owner = s->owner;
}
