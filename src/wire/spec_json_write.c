/* SPDX-License-Identifier: Apache-2.0 */
/* Writes specs, rows and errors as JSON. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "wire/spec_json.h"
#include <string.h>

json_t *json_value_text(const char *s)
{
	AUTO_DONE(buf) b = {};

	if (!s)
		return json_null();
	if (text_utf8_valid(s, strlen(s)))
		return json_string(s);
	text_escape(&b, s, strlen(s));
	return json_string(b.data);
}

json_t *json_value_time(int64_t t)
{
	char text[RFC3339_MAX];

	return t == 0 ? json_null() : json_string(rfc3339_format(t, text));
}

json_t *json_value_seconds(int64_t d)
{
	return d % USEC_SEC == 0 ? json_integer(d / USEC_SEC) : json_real((double)d / USEC_SEC);
}

/* ---- a spec ---- */

static bool is_plain_text(const char *data, size_t len)
{
	return !memchr(data, '\0', len) && text_utf8_valid(data, len);
}

static json_t *write_bytes(const char *data, size_t len, bool b64)
{
	AUTO_DONE(buf) b = {};

	if (!b64)
		return json_stringn(data, len);
	buf_base64(&b, data, len);
	return json_stringn(b.data ? b.data : "", b.len);
}

static bool list_is_plain(const struct strv *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!text_utf8_valid(l->v[i], strlen(l->v[i])))
			return false;
	}
	return true;
}

static json_t *write_list(const struct strv *l, bool b64)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(a, write_bytes(l->v[i], strlen(l->v[i]), b64));
	return a;
}

static json_t *write_map(const struct strv *l, bool b64)
{
	json_t *o = json_object();

	for (size_t i = 0; i < l->n; i++) {
		const char *eq = strchr(l->v[i], '=');
		AUTO_TEXT key = eq ? xstrndup(l->v[i], (size_t)(eq - l->v[i])) : NULL;

		if (eq)
			json_object_set_new(o, key, write_bytes(eq + 1, strlen(eq + 1), b64));
	}
	return o;
}

static json_t *write_number(const struct job_field *f, int64_t n)
{
	AUTO_TEXT text = NULL;

	switch (f->type) {
	case FIELD_INT:
	case FIELD_SIZE:
		return json_integer(n);
	case FIELD_DURATION:
		return json_value_seconds(n);
	case FIELD_TIME:
		if (n == 0)
			return json_null();
		break;
	default:
		break;
	}
	text = job_field_print(f, n);
	return json_string(text);
}

/* The value of a field; *ret_b64 when it can only be written as bytes. NULL: it has its default. */
static json_t *write_field(const struct job_field *f, const void *at, bool *ret_b64)
{
	const struct strv *list = at;
	const struct blob *blob = at;
	const char *text;
	int64_t n;

	*ret_b64 = false;
	switch (f->type) {
	case FIELD_TEXT:
		text = *(char *const *)at;
		*ret_b64 = text && !is_plain_text(text, strlen(text));
		return text ? write_bytes(text, strlen(text), *ret_b64) : NULL;
	case FIELD_BLOB:
		*ret_b64 = blob->data && !is_plain_text(blob->data, blob->len);
		return blob->data ? write_bytes(blob->data, blob->len, *ret_b64) : NULL;
	case FIELD_LIST:
		*ret_b64 = !list_is_plain(list);
		return list->n > 0 ? write_list(list, *ret_b64) : NULL;
	case FIELD_MAP:
		*ret_b64 = !list_is_plain(list);
		return list->n > 0 ? write_map(list, *ret_b64) : NULL;
	default:
		n = *(const int64_t *)at;
		return n == f->preset ? NULL : write_number(f, n);
	}
}

static json_t *write_default(const struct job_field *f)
{
	switch (f->type) {
	case FIELD_LIST:
		return json_array();
	case FIELD_MAP:
		return json_object();
	case FIELD_TEXT:
	case FIELD_BLOB:
		return json_null();
	default:
		return write_number(f, f->preset);
	}
}

static void write_spec(json_t *o, const struct job_spec *s, bool defaults)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		bool b64;
		json_t *v = write_field(f, (const char *)s + f->offset, &b64);
		char name[80];

		snprintf(name, sizeof(name), "%s%s", f->name, b64 ? "_b64" : "");
		if (v)
			json_object_set_new(o, name, v);
		else if (defaults)
			json_object_set_new(o, f->name, write_default(f));
	}
}

json_t *spec_json_write(const struct job_spec *s)
{
	json_t *o = json_object();

	write_spec(o, s, false);
	return o;
}

json_t *spec_json_write_all(const struct job_spec *s)
{
	json_t *o = json_object();

	write_spec(o, s, true);
	return o;
}

char *spec_json_to_text(const struct job_spec *s)
{
	AUTO_DONE(buf) b = {};
	json_t *o = spec_json_write(s);

	/* in a stored text, a missing umask is not the default of today but the one of earlier versions */
	if (s->umask == JOB_UMASK_UNSAID)
		json_object_del(o, "umask");
	else if (!json_object_get(o, "umask"))
		json_object_set_new(o, "umask", write_default(job_field_find("umask")));
	json_value_write(o, &b);
	json_decref(o);
	return buf_steal(&b);
}

/* ---- rows ---- */

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

static json_t *write_last_run(const struct job *j)
{
	if (j->last_run.id == 0)
		return json_null();
	return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "id", (json_int_t)j->last_run.id, "state",
		run_state_name((enum run_state)j->last_run.state), "slot", json_value_time(j->last_run.slot),
		"ended_at", json_value_time(j->last_run.ended_at), "exit_code",
		write_exit(j->last_run.exit_code), "signal", write_signal(j->last_run.term_signal));
}

json_t *row_json_job(const struct job *j, struct err *e)
{
	AUTO_DONE(job_spec) spec = {};
	json_t *o;

	job_spec_init(&spec);
	if (!spec_json_from_text(j->spec, &spec, e)) {
		err_wrap(e, "the stored job %lld", (long long)j->id);
		if (e)
			e->kind = ERR_INTERNAL;
		return NULL;
	}
	o = json_object();
	write_spec(o, &spec, true);
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
	json_object_set_new(o, "io_written", a->io_written < 0 ? json_null() : json_integer(a->io_written));
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

/* ---- errors ---- */

json_t *error_json_write(const struct err *e)
{
	return json_pack("{s:{s:s, s:o, s:o}}", "error", "code", err_kind_info(e->kind)->code, "message",
		json_value_text(e->msg), "field", json_value_text(e->field[0] ? e->field : NULL));
}

bool error_json_read(const json_t *o, struct err *e)
{
	const json_t *inner = json_object_get(o, "error");
	const char *code = json_string_value(json_object_get(inner, "code"));
	const char *message = json_string_value(json_object_get(inner, "message"));
	const char *field = json_string_value(json_object_get(inner, "field"));

	if (!code || !message)
		return false;
	err_set(e, err_kind_from_code(code), "%s", message);
	if (field)
		snprintf(e->field, sizeof(e->field), "%s", field);
	return true;
}
