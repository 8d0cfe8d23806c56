/* SPDX-License-Identifier: Apache-2.0 */
/* Sends API requests, page by page for lists; explains missing objects. */
#include "jobctl/api.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/trace.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/suggest.h"
#include "jobctl/render/words.h"
#include "jobctl/unresponsive.h"
#include "jobctl/warrant_supply.h"
#include "wire/http_client.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 500 /* rows per request */
#define BUSY_PAUSE_MS 800 /* the longest pause before a request is repeated */

void api_query_add(struct buf *path, const char *key, const char *value)
{
	buf_char(path, path->data && strchr(path->data, '?') ? '&' : '?');
	buf_printf(path, "%s=", key);
	for (; *value; value++) {
		unsigned char ch = (unsigned char)*value;

		if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			(ch >= '0' && ch <= '9') || strchr("-._~,", ch))
			buf_char(path, (char)ch);
		else
			buf_printf(path, "%%%02X", ch);
	}
}

/* The daemon writes times in UTC. */
static void localize(struct err *e)
{
	AUTO_DONE(buf) local = {};

	words_localize(e->msg, &local);
	snprintf(e->msg, sizeof(e->msg), "%s", local.data ? local.data : "");
}

static bool request_once(struct ctl *c, const char *method, const char *path, const json_t *body,
	json_t **ret, struct err *e)
{
	usec_t asked = clock_boot(&clock_system);
	bool ok;

	unresponsive_watch(c);
	ok = http_client_call(c->client, method, path, body, API_TIMEOUT_MS, ret, e);
	unresponsive_watch_end(c);
	if (!ok && (e->kind == ERR_UNREACHABLE || e->kind == ERR_UNCERTAIN) &&
	    clock_boot(&clock_system) - asked >= API_TIMEOUT_MS * USEC_MSEC)
		unresponsive_explain(c, e);
	if (!ok)
		localize(e);
	return ok;
}

/*
 * ERR_BUSY means that the daemon did nothing, so the request can be repeated, also one that is not
 * idempotent.
 */
static bool request_retry_busy(struct ctl *c, const char *method, const char *path,
	const json_t *body, json_t **ret, struct err *e)
{
	struct err why = {};

	for (unsigned pause_ms = 50; connect_daemon(c, &why); pause_ms *= 2) {
		if (request_once(c, method, path, body, ret, &why))
			return true;
		if (why.kind != ERR_BUSY || pause_ms > BUSY_PAUSE_MS)
			break;
		poll(NULL, 0, (int)pause_ms);
	}
	if (e)
		*e = why;
	return false;
}

void api_add_trace(json_t *body)
{
	static const struct {
		const char *member, *variable;
	} parts[] = {{"traceparent", "TRACEPARENT"}, {"tracestate", "TRACESTATE"}, {"baggage", "BAGGAGE"}};
	const char *parent = getenv("TRACEPARENT");

	if (!parent || !trace_parent_valid(parent) || json_object_get(body, "traceparent") ||
		json_object_get(body, "template"))
		return;
	for (size_t i = 0; i < ELEMENTS(parts); i++) {
		const char *text = getenv(parts[i].variable);
		AUTO_TEXT pair = text ? xprintf("%s=%s", parts[i].variable, text) : NULL;

		if (pair && trace_var_valid(pair))
			json_object_set_new(body, parts[i].member, json_string(text));
	}
}

bool api_call(struct ctl *c, const char *method, const char *path, const json_t *body, json_t **ret,
	struct err *e)
{
	json_auto_t *approved = NULL;
	struct err why = {};

	if (request_retry_busy(c, method, path, body, ret, &why))
		return true;
	if (warrant_supply_needed(&why) &&
		warrant_supply(c, &(struct warrant_supply_request){method, path, body}, &approved,
			&why) &&
		request_retry_busy(c, method, path, approved, ret, &why))
		return true;
	if (e)
		*e = why;
	return false;
}

bool api_pages(struct ctl *c, struct pages *p, struct err *e)
{
	AUTO_TEXT cursor = NULL;
	size_t left = p->limit ? p->limit : SIZE_MAX;

	for (;;) {
		AUTO_DONE(buf) path = {};
		AUTO_TEXT size = xprintf("%zu", left < PAGE ? left : (size_t)PAGE);
		json_auto_t *answer = NULL;
		const json_t *row;
		size_t i;

		buf_str(&path, p->path);
		api_query_add(&path, "limit", size);
		if (cursor)
			api_query_add(&path, "cursor", cursor);
		if (!api_call(c, "GET", path.data, NULL, &answer, e))
			return false;
		free(cursor);
		cursor = xstrdup(member_text(answer, "next_cursor"));
		json_array_foreach(json_object_get(answer, p->member), i, row) {
			left--;
			if (!p->row(row, p->arg))
				return true;
		}
		if (p->page)
			p->page(p->arg);
		if (!cursor || left == 0) {
			p->next_cursor = STEAL(cursor);
			return true;
		}
	}
}

static bool suggest_job_name(const json_t *job, void *arg)
{
	const char *name = member_text(job, "name");

	if (name)
		suggest_offer(arg, name);
	return true;
}

/* Replaces the daemon's "not found" by a message that suggests a similar name. */
static bool fail_unknown_job(struct ctl *c, const struct ref *r, struct err *e)
{
	AUTO_DONE(suggest) s = {.typed = r->name};
	json_auto_t *answer = NULL;
	const json_t *job;
	size_t i;

	if (!r->name[0])
		return err_set(e, ERR_NOT_FOUND,
			"no job %" PRId64 "; 'jobctl list --all' shows all jobs", r->job);
	if (api_call(c, "GET", "/v1/jobs?limit=1000", NULL, &answer, NULL))
		json_array_foreach(json_object_get(answer, "jobs"), i, job)
			suggest_job_name(job, &s);
	if (s.best)
		return err_set(e, ERR_NOT_FOUND, "no job '%s'; did you mean '%s'?", r->name,
			s.best);
	return err_set(e, ERR_NOT_FOUND, "no job '%s'; 'jobctl list --all' shows all jobs",
		r->name);
}

bool api_job(struct ctl *c, const struct ref *r, json_t **ret, struct err *e)
{
	AUTO_TEXT path = NULL;

	if (r->run) {
		json_auto_t *run = NULL;

		if (!api_run(c, r, &run, e))
			return false;
		path = xprintf("/v1/jobs/%" PRId64, member_int(run, "job"));
		return api_call(c, "GET", path, NULL, ret, e);
	}
	path = r->name[0] ? xprintf("/v1/jobs/%s", r->name) : xprintf("/v1/jobs/%" PRId64, r->job);
	if (api_call(c, "GET", path, NULL, ret, e))
		return true;
	return e->kind == ERR_NOT_FOUND ? fail_unknown_job(c, r, e) : false;
}

bool api_run_id(struct ctl *c, int64_t run, json_t **ret, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/runs/%" PRId64, run);

	return api_call(c, "GET", path, NULL, ret, e);
}

bool api_run(struct ctl *c, const struct ref *r, json_t **ret, struct err *e)
{
	json_auto_t *run = NULL;
	AUTO_DONE(buf) proper = {};

	if (!api_run_id(c, r->run, &run, e)) {
		if (e->kind == ERR_NOT_FOUND)
			return err_set(e, ERR_NOT_FOUND,
				"no run '%s'; 'jobctl runs' shows the runs", r->text);
		return false;
	}
	if (!ref_job_matches(r, member_int(run, "job"), member_text(run, "job_name"))) {
		ref_of_run(run, &proper);
		return err_set(e, ERR_NOT_FOUND, "no run '%s'; did you mean '%s'?", r->text,
			proper.data);
	}
	*ret = json_incref(run);
	return true;
}

bool api_runs(struct ctl *c, int64_t job, const char *states, int limit, json_t **ret,
	struct err *e)
{
	AUTO_DONE(buf) path = {};
	json_auto_t *answer = NULL;

	buf_printf(&path, "/v1/runs?job=%" PRId64 "&limit=%d", job, limit);
	if (states)
		api_query_add(&path, "state", states);
	if (!api_call(c, "GET", path.data, NULL, &answer, e))
		return false;
	*ret = json_incref(json_object_get(answer, "runs"));
	return true;
}

bool api_run_wait(struct ctl *c, int64_t run, int seconds, json_t **ret, struct err *e)
{
	AUTO_TEXT path = NULL;

	if (seconds > API_WAIT_MAX)
		seconds = API_WAIT_MAX;
	path = xprintf("/v1/runs/%" PRId64 "?wait=%d", run, seconds);
	return connect_daemon(c, e) && http_client_call(c->client, "GET", path, NULL,
					       seconds * 1000 + API_TIMEOUT_MS, ret, e);
}
