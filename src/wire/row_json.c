/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of the store as JSON. */
#include "wire/row_json.h"
#include "base/auto.h"
#include "base/err.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <string.h>

static json_t *write_exit(int64_t code)
{
	return code < 0 ? json_null() : json_integer(code);
}

static json_t *write_signal(int64_t number)
{
	return number <= 0 ? json_null() : json_integer(number);
}

static json_t *write_waiting(const char *code, const char *message)
{
	if (!code)
		return json_null();
	return json_pack("{s:s, s:o}", "code", code, "message", json_value_text(message));
}

static json_t *write_progress(const struct progress *p)
{
	if (!p->at)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "percent",
		p->percent == SIGN_PERCENT_NONE ? json_null() : json_integer(p->percent), "text",
		json_value_text(p->text[0] ? p->text : NULL), "at", json_value_time(p->at));
}

static json_t *write_last_run(const struct job *j)
{
	if (j->last_run.id == 0)
		return json_null();
	return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)j->last_run.id,
		"state", run_state_name((enum run_state)j->last_run.state), "slot",
		json_value_time(j->last_run.slot), "ended_at",
		json_value_time(j->last_run.ended_at), "exit_code",
		write_exit(j->last_run.exit_code), "signal", write_signal(j->last_run.term_signal),
		"progress", write_progress(&j->last_run.progress), "estimated_end",
		json_value_time(j->last_run.estimated_end));
}

json_t *row_json_job_brief(const struct job *j)
{
	return json_pack("{s:I, s:o, s:s, s:o}", "id", (json_int_t)j->id, "name", json_value_text(j->name), "state",
		job_state_name(j->state), "last_run",
		json_value_text(j->last_run.id ? run_state_name((enum run_state)j->last_run.state) : NULL));
}

json_t *row_json_pause(const struct pause_order *p)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
		"scope", pause_scope_name(p->scope),
		"key", json_value_text(p->key && *p->key ? p->key : NULL),
		"uid", p->uid < 0 ? json_null() : json_integer(owner_uid(p->uid)),
		"by", json_value_text(p->by_name),
		"by_uid", p->by_uid < 0 ? json_null() : json_integer(p->by_uid),
		"reason", json_value_text(p->reason),
		"at", json_value_time(p->at),
		"until", json_value_time(p->until),
		"spared", json_value_text(p->spared && *p->spared ? p->spared : NULL),
		"later", p->later);
}

json_t *row_json_job_pause(const struct job *j)
{
	const struct pause_order p = {.scope = PAUSE_JOB,
		.uid = j->uid,
		.by_uid = j->pause.by_uid,
		.by_name = j->pause.by_name,
		.reason = j->reason,
		.at = j->pause.at,
		.until = j->pause.until};

	return j->state == JOB_PAUSED ? row_json_pause(&p) : json_null();
}

json_t *row_json_job_next_pause(const struct job *j)
{
	const struct pause_order p = {.scope = PAUSE_JOB,
		.uid = j->uid,
		.by_uid = j->pause.by_uid,
		.by_name = j->pause.by_name,
		.reason = j->pause.reason,
		.at = j->pause.at,
		.later = true};

	return j->state == JOB_ACTIVE && j->pause.later ? row_json_pause(&p) : json_null();
}

static json_t *write_durations(const struct durations *d)
{
	const char *unusual = duration_unusual_names[d->unusual];

	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "count", (json_int_t)d->count, "p50",
		d->count ? json_value_seconds(d->p50) : json_null(), "p95",
		d->count ? json_value_seconds(d->p95) : json_null(), "last",
		d->ended ? json_value_seconds(d->last) : json_null(), "unusual",
		json_value_text(unusual));
}

json_t *row_json_job_spec(const char *text, struct err *e)
{
	AUTO_DONE(job_spec) spec = {};

	job_spec_init(&spec);
	return spec_json_from_text(text, &spec, e) ? spec_json_write_all(&spec) : NULL;
}

json_t *row_json_job(const struct job *j, struct err *e)
{
	json_t *spec = row_json_job_spec(j->spec, e);

	if (!spec) {
		err_wrap(e, "the stored job %lld", (long long)j->id);
		if (e)
			e->kind = ERR_INTERNAL;
		return NULL;
	}
	return row_json_job_of(j, spec);
}

json_t *row_json_job_of(const struct job *j, json_t *spec)
{
	json_t *o = spec;

	json_object_set_new(o, "id", json_integer(j->id));
	json_object_set_new(o, "name", json_value_text(j->name));
	json_object_set_new(o, "owner", json_value_text(j->owner));
	json_object_set_new(o, "uid", json_integer(owner_uid(j->uid)));
	json_object_set_new(o, "state", json_value_text(job_state_name(j->state)));
	json_object_set_new(o, "reason", json_value_text(j->reason));
	json_object_set_new(o, "pause", row_json_job_pause(j));
	json_object_set_new(o, "next_pause", row_json_job_next_pause(j));
	json_object_set_new(o, "revision", json_integer(j->revision));
	json_object_set_new(o, "segment", json_integer(j->segment));
	json_object_set_new(o, "queue", json_value_text(j->queue));
	json_object_set_new(o, "priority", json_integer(j->priority));
	json_object_set_new(o, "created_at", json_value_time(j->created_at));
	json_object_set_new(o, "updated_at", json_value_time(j->updated_at));
	json_object_set_new(o, "next_at", json_value_time(j->next_slot));
	json_object_set_new(o, "last_run", write_last_run(j));
	json_object_set_new(o, "waiting_for", write_waiting(j->waiting_code, j->waiting_message));
	if (j->durations.known)
		json_object_set_new(o, "durations", write_durations(&j->durations));
	return o;
}

static json_t *write_results(const struct strv *results)
{
	json_t *o = json_object();

	for (size_t i = 0; i < results->n; i++) {
		size_t key = strcspn(results->v[i], "=");
		AUTO_TEXT name = xstrndup(results->v[i], key);

		json_object_set_new(o, name, json_value_text(results->v[i] + key + 1));
	}
	return o;
}

json_t *row_json_run(const struct run *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(r->id));
	json_object_set_new(o, "job", json_integer(r->job));
	json_object_set_new(o, "job_name", json_value_text(r->job_name));
	json_object_set_new(o, "owner", json_value_text(r->owner));
	json_object_set_new(o, "uid", json_integer(owner_uid(r->uid)));
	json_object_set_new(o, "kind", json_value_text(run_kind_name(r->kind)));
	json_object_set_new(o, "state", json_value_text(run_state_name(r->state)));
	json_object_set_new(o, "reason", json_value_text(r->reason));
	json_object_set_new(o, "slot", json_value_time(r->slot));
	json_object_set_new(o, "slot_last", json_value_time(r->slot_last));
	json_object_set_new(o, "slot_count", json_integer(r->slot_count));
	json_object_set_new(o, "due_at", json_value_time(r->due_at));
	json_object_set_new(o, "revision", json_integer(r->revision));
	json_object_set_new(o, "priority", json_integer(r->priority));
	json_object_set_new(o, "queue", json_value_text(r->queue));
	json_object_set_new(o, "node", json_value_text(r->node));
	json_object_set_new(o, "node_name", json_value_text(r->node_name));
	json_object_set_new(o, "attempt", json_integer(r->attempt));
	json_object_set_new(o, "lost", json_integer(r->lost));
	json_object_set_new(o, "failures", json_integer(r->failures));
	json_object_set_new(o, "cancel_asked", json_boolean(r->cancel_asked));
	json_object_set_new(o, "created_at", json_value_time(r->created_at));
	json_object_set_new(o, "claimed_at", json_value_time(r->claimed_at));
	json_object_set_new(o, "started_at", json_value_time(r->started_at));
	json_object_set_new(o, "first_start", json_value_time(r->first_start));
	json_object_set_new(o, "ended_at", json_value_time(r->ended_at));
	json_object_set_new(o, "exit_code", write_exit(r->exit_code));
	json_object_set_new(o, "signal", write_signal(r->term_signal));
	json_object_set_new(o, "dead_at", json_value_time(r->dead_at));
	json_object_set_new(o, "results", write_results(&r->results));
	json_object_set_new(o, "progress", write_progress(&r->progress));
	json_object_set_new(o, "estimated_end", json_value_time(r->estimated_end));
	json_object_set_new(o, "waiting_for", write_waiting(r->waiting_code, r->waiting_message));
	return o;
}

json_t *row_json_attempt(const struct attempt *a)
{
	json_t *o = json_object();

	json_object_set_new(o, "run", json_integer(a->run));
	json_object_set_new(o, "attempt", json_integer(a->number));
	json_object_set_new(o, "node", json_value_text(a->node));
	json_object_set_new(o, "node_name", json_value_text(a->node_name));
	json_object_set_new(o, "spawner", json_value_text(a->spawner));
	json_object_set_new(o, "pid", a->pid > 0 ? json_integer(a->pid) : json_null());
	json_object_set_new(o, "started_at", json_value_time(a->started_at));
	json_object_set_new(o, "ended_at", json_value_time(a->ended_at));
	json_object_set_new(o, "outcome", json_value_text(attempt_outcome_name(a->outcome)));
	json_object_set_new(o, "exit_code", write_exit(a->exit_code));
	json_object_set_new(o, "signal", write_signal(a->term_signal));
	json_object_set_new(o, "cpu_user", json_value_seconds(a->cpu_user));
	json_object_set_new(o, "cpu_system", json_value_seconds(a->cpu_system));
	json_object_set_new(o, "max_rss", json_integer(a->max_rss));
	json_object_set_new(o, "io_read", a->io_read < 0 ? json_null() : json_integer(a->io_read));
	json_object_set_new(o, "io_written",
		a->io_written < 0 ? json_null() : json_integer(a->io_written));
	json_object_set_new(o, "output_bytes", json_integer(a->output_bytes));
	json_object_set_new(o, "output_dropped", json_integer(a->output_dropped));
	json_object_set_new(o, "error", json_value_text(a->error));
	return o;
}

json_t *row_json_event(const struct event *ev)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", ev->id ? json_integer(ev->id) : json_null());
	json_object_set_new(o, "at", json_value_time(ev->at));
	json_object_set_new(o, "uid", ev->uid >= 0 ? json_integer(ev->uid) : json_null());
	json_object_set_new(o, "who", json_value_text(ev->who));
	json_object_set_new(o, "origin", json_value_text(ev->origin));
	json_object_set_new(o, "what", json_value_text(event_what_name(ev->what)));
	json_object_set_new(o, "object", json_value_text(ev->object));
	json_object_set_new(o, "job", ev->job ? json_integer(ev->job) : json_null());
	json_object_set_new(o, "run", ev->run ? json_integer(ev->run) : json_null());
	json_object_set_new(o, "node", json_value_text(ev->node));
	json_object_set_new(o, "result", json_value_text(ev->result));
	json_object_set_new(o, "detail", json_value_text(ev->detail));
	return o;
}
