/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the route table, openapi.json, permissions and submissions. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/edit_distance.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/time/schedule.h"
#include "core/time/slots.h"
#include "core/time/zone_cache.h"
#include "daemon/api/access.h"
#include "daemon/api/store_read.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/submit/submission.h"
#include "unit/unit.h"
#include "wire/row_json.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- OpenAPI ---- */

static json_t *load_api(void)
{
	const char *top = getenv("top_builddir");
	AUTO_TEXT path = xprintf("%s/src/daemon/api/openapi.json", top ? top : ".");
	json_error_t je;
	json_t *o = json_load_file(path, JSON_REJECT_DUPLICATES, &je);

	if (!o)
		fail_msg("%s: %s at line %d", path, je.text, je.line);
	return o;
}

static json_t *schema_members(json_t *api, const char *schema)
{
	json_t *s = json_object_get(json_object_get(json_object_get(api, "components"), "schemas"), schema);
	json_t *members = json_object_get(s, "properties");

	if (!members)
		fail_msg("openapi.json has no schema '%s' with properties", schema);
	return members;
}

static json_t *find_operation(json_t *api, const struct route *r)
{
	char method[16];
	size_t i;

	for (i = 0; r->method[i] && i + 1 < sizeof(method); i++)
		method[i] = (char)tolower(r->method[i]);
	method[i] = '\0';
	return json_object_get(json_object_get(json_object_get(api, "paths"), r->path), method);
}

static json_t *find_parameter(json_t *operation, const char *where, const char *name)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(operation, "parameters"), i, p) {
		if (text_equal(json_string_value(json_object_get(p, "name")), name) &&
		    text_equal(json_string_value(json_object_get(p, "in")), where))
			return p;
	}
	return NULL;
}

static size_t count_parameters(const struct route *r)
{
	size_t n = strchr(r->path, '{') != NULL;

	for (size_t i = 0; i < ROUTE_QUERY_MAX && r->query[i].name; i++)
		n++;
	return n;
}

static void openapi_json_describes_every_route_with_its_parameters(void **state)
{
	json_t *api = load_api();

	(void)state;
	for (size_t i = 0; i < routes_count; i++) {
		const struct route *r = &routes[i];
		json_t *op = find_operation(api, r);

		if (!op)
			fail_msg("%s %s is not in openapi.json", r->method, r->path);
		assert_string_equal(json_string_value(json_object_get(op, "summary")), r->summary);
		assert_int_equal(json_object_get(op, "requestBody") != NULL, r->body != BODY_NONE);
		for (size_t k = 0; k < ROUTE_QUERY_MAX && r->query[k].name; k++)
			if (!find_parameter(op, "query", r->query[k].name))
				fail_msg("%s %s: parameter '%s' is not in openapi.json", r->method, r->path,
					r->query[k].name);
		if (json_array_size(json_object_get(op, "parameters")) != count_parameters(r))
			fail_msg("%s %s: openapi.json has too many parameters", r->method, r->path);
	}
	json_decref(api);
}

/*
 * The URL of a callback is a credential, so it must not be written to the audit trail. The record of
 * the run has the end that a callback reports.
 */
static bool is_audited(const struct route *r)
{
	return strcmp(r->method, "GET") != 0 && strcmp(r->path, "/v1/callbacks/{callback}") != 0;
}

/*
 * Routes that change something need an audit action, also for refusals. So does the backup of the
 * store.
 */
static void every_route_that_changes_something_has_an_audit_action(void **state)
{
	(void)state;
	for (size_t i = 0; i < routes_count; i++)
		if (is_audited(&routes[i]) && routes[i].what == EVENT_NONE)
			fail_msg("%s %s has no audit action", routes[i].method, routes[i].path);
}

static void openapi_json_describes_no_other_routes(void **state)
{
	json_t *api = load_api(), *path, *op;
	const char *name, *method;
	size_t n = 0;

	(void)state;
	json_object_foreach(json_object_get(api, "paths"), name, path)
		json_object_foreach(path, method, op)
			n++;
	assert_int_equal(n, routes_count);
	json_decref(api);
}

static void openapi_json_describes_every_job_field_and_no_other(void **state)
{
	json_t *api = load_api(), *members = schema_members(api, "Submission"), *job = schema_members(api, "Job");
	size_t n = 2; /* 'key' and 'if_exists' */

	(void)state;
	assert_non_null(json_object_get(members, "key"));
	assert_non_null(json_object_get(members, "if_exists"));
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		AUTO_TEXT b64 = xprintf("%s_b64", f->name);
		json_t *m = json_object_get(members, f->name);

		if (!m || !json_object_get(job, f->name))
			fail_msg("'%s' is not in openapi.json", f->name);
		if (f->bytes && (!json_object_get(members, b64) || !json_object_get(job, b64)))
			fail_msg("'%s' is not in openapi.json", b64);
		if (f->type == FIELD_INT || f->type == FIELD_SIZE) {
			assert_int_equal(json_integer_value(json_object_get(m, "minimum")), f->min);
			assert_int_equal(json_integer_value(json_object_get(m, "maximum")), f->max);
			assert_int_equal(json_integer_value(json_object_get(m, "default")), f->preset);
		}
		n += f->bytes ? 2 : 1;
	}
	assert_int_equal(json_object_size(members), n);
	json_decref(api);
}

static void same_members(json_t *api, const char *schema, json_t *written /* moved */, size_t more)
{
	json_t *members = schema_members(api, schema), *v;
	const char *name;

	json_object_foreach(written, name, v)
		if (!json_object_get(members, name))
			fail_msg("%s: '%s' is not in openapi.json", schema, name);
	assert_int_equal(json_object_size(members), json_object_size(written) + more);
	json_decref(written);
}

static void openapi_json_describes_every_written_member(void **state)
{
	struct job j = { .id = 1, .spec = (char *)"{}" };
	struct run r = { .id = 1 };
	struct attempt a = { .run = 1 };
	json_t *api = load_api();
	size_t bytes = 0;

	(void)state;
	for (size_t i = 0; i < job_fields_count; i++)
		bytes += job_fields[i].bytes;
	same_members(api, "Job", row_json_job(&j, NULL), bytes + 4); /* existed, run, error, durations */
	same_members(api, "Run", row_json_run(&r), 0);
	same_members(api, "Attempt", row_json_attempt(&a), 0);
	json_decref(api);
}

/* ---- route lookup ---- */

static void a_request_finds_its_route(void **state)
{
	static const struct {
		const char *method, *path;
		enum route_match match;
		const char *pattern, *param, *allow;
	} cases[] = {
		{ "GET", "/v1/jobs", ROUTE_FOUND, "/v1/jobs", NULL, NULL },
		{ "HEAD", "/v1/jobs", ROUTE_FOUND, "/v1/jobs", NULL, NULL },
		{ "POST", "/v1/jobs/bulk", ROUTE_FOUND, "/v1/jobs/bulk", NULL, NULL },
		{ "GET", "/v1/jobs/bulk", ROUTE_FOUND, "/v1/jobs/{job}", "bulk", NULL },
		{ "DELETE", "/v1/jobs/12", ROUTE_FOUND, "/v1/jobs/{job}", "12", NULL },
		{ "GET", "/v1/runs/7/output", ROUTE_FOUND, "/v1/runs/{run}/output", "7", NULL },
		{ "GET", "/v1/runs/7/", ROUTE_NO_PATH, NULL, NULL, NULL },
		{ "GET", "/v1/jobs/", ROUTE_NO_PATH, NULL, NULL, NULL },
		{ "GET", "/v1/jobs//cancel", ROUTE_NO_PATH, NULL, NULL, NULL },
		{ "GET", "/", ROUTE_FOUND, "/", NULL, NULL },
		{ "GET", "/v1/jobs/../status", ROUTE_NO_PATH, NULL, NULL, NULL },
		{ "PATCH", "/v1/status", ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD" },
		{ "GET", "/v1/jobs/12/cancel", ROUTE_NO_METHOD, NULL, NULL, "POST" },
		{ "get", "/v1/status", ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		char *params[ROUTE_PARAMS_MAX] = {};
		const struct route *r = NULL;
		AUTO_DONE(buf) allow = {};

		assert_int_equal(route_find(cases[i].method, cases[i].path, &r, params, &allow), cases[i].match);
		assert_true(text_equal(r ? r->path : NULL, cases[i].pattern));
		assert_true(text_equal(params[0], cases[i].param));
		if (cases[i].allow)
			assert_string_equal(allow.data, cases[i].allow);
		free(params[0]);
	}
}

static const struct route *route_of(const char *path)
{
	char *params[ROUTE_PARAMS_MAX] = {};
	const struct route *r = NULL;
	AUTO_DONE(buf) allow = {};

	assert_int_equal(route_find("GET", path, &r, params, &allow), ROUTE_FOUND);
	free(params[0]);
	return r;
}

static void a_bad_parameter_is_refused_under_its_name(void **state)
{
	static const struct {
		const char *path, *name, *value;
	} cases[] = {
		{ "/v1/jobs", "colour", "red" },       { "/v1/jobs", "limit", "0" },
		{ "/v1/jobs", "limit", "1001" },       { "/v1/jobs", "limit", "1x" },
		{ "/v1/jobs", "limit", "" },           { "/v1/jobs", "state", "happy" },
		{ "/v1/jobs", "state", "" },           { "/v1/jobs", "state", "active," },
		{ "/v1/jobs", "state", "queued" },     { "/v1/jobs", "all", "yes" },
		{ "/v1/jobs", "since", "yesterday" },  { "/v1/jobs", "tag", "x" },
		{ "/v1/jobs", "tag", "=x" },           { "/v1/runs", "state", "active" },
		{ "/v1/runs/1", "wait", "3601" },      { "/v1/runs/1", "wait", "-1" },
		{ "/v1/runs/1/output", "from", "-1" }, { "/v1/runs/1/output", "tail", "99999999999999999999" },
		{ "/v1/status", "limit", "1" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct query_value values[ROUTE_QUERY_MAX] = {};
		struct err e = {};

		if (route_query_add(route_of(cases[i].path), values, cases[i].name, cases[i].value, &e))
			fail_msg("%s=%s was accepted", cases[i].name, cases[i].value);
		assert_int_equal(e.kind, ERR_INVALID);
		assert_string_equal(e.field, cases[i].name);
		for (size_t k = 0; k < ROUTE_QUERY_MAX; k++)
			free(values[k].text);
	}
}

static void only_state_parameters_may_be_repeated(void **state)
{
	struct query_value values[ROUTE_QUERY_MAX] = {};
	const struct route *r = route_of("/v1/jobs");

	(void)state;
	assert_true(route_query_add(r, values, "state", "active,paused", NULL));
	assert_true(route_query_add(r, values, "state", "removed", NULL));
	assert_int_equal(values[0].number, 1 << JOB_ACTIVE | 1 << JOB_PAUSED | 1 << JOB_REMOVED);
	assert_true(route_query_add(r, values, "limit", "5", NULL));
	assert_false(route_query_add(r, values, "limit", "6", NULL));
	for (size_t k = 0; k < ROUTE_QUERY_MAX; k++)
		free(values[k].text);
}

/* ---- permissions ---- */

/*
 * For each verb: owner, denied owner, other user, administrator for another user's object and for
 * one of root.
 */
static const struct {
	enum access_verb verb;
	bool owner, denied, other, admin, admin_root;
} rights[] = {
	{VERB_SUBMIT, true, false, false, true, true},
	{VERB_SUBMIT_AS, false, false, false, true, false},
	{VERB_SEE, true, true, false, true, true},
	{VERB_CANCEL, true, true, false, true, true},
	{VERB_REMOVE, true, true, false, true, true},
	{VERB_CHANGE, true, false, false, true, false},
	{VERB_TEMPLATE, true, false, false, true, true},
	{VERB_STATUS, true, true, true, true, true},
	{VERB_PAUSE, true, true, false, true, true},
	{VERB_RESUME, true, false, false, true, true},
	{VERB_TRIGGER, true, false, false, true, false},
	{VERB_FREEZE, false, false, false, true, true},
	{VERB_QUEUES, true, true, true, true, true},
	{VERB_DEAD, true, false, false, true, true},
	{VERB_LIMIT, false, false, false, true, true},
	{VERB_DATABASE, false, false, false, true, true},
	{VERB_NODES, false, false, false, true, true},
	{VERB_NOTIFY, true, false, false, true, true},
	{VERB_TOKEN, true, true, false, true, false},
	{VERB_SESSION, true, true, true, true, true},
	{VERB_METRICS, false, false, false, true, true},
};

static void every_verb_is_allowed_for_its_roles(void **state)
{
	const struct access system = {.user_mode = false, .self = 999}, user = {.user_mode = true, .self = 1000};
	const struct caller ann = {.uid = 1000, .number = 1000}, denied = {.uid = 1000, .number = 1000, .denied = true};
	const struct caller admin = {.uid = 1001, .number = 1001, .admin = true}, root = {};

	(void)state;
	assert_int_equal(ELEMENTS(rights), VERB_MAX);
	for (size_t i = 0; i < ELEMENTS(rights); i++) {
		enum access_verb v = rights[i].verb;

		assert_int_equal(v, i);
		assert_int_equal(access_may(&system, &ann, v, 1000), rights[i].owner);
		assert_int_equal(access_may(&system, &denied, v, 1000), rights[i].denied);
		assert_int_equal(access_may(&system, &ann, v, 2000), rights[i].other);
		assert_int_equal(access_may(&system, &ann, v, 1000 + OWNER_STEP), rights[i].other);
		assert_int_equal(access_may(&system, &admin, v, 1000), rights[i].admin);
		assert_int_equal(access_may(&system, &admin, v, 0), rights[i].admin_root);
		assert_true(access_may(&system, &root, v, 1000));
		assert_true(access_may(&user, &ann, v, 1000));
		assert_int_equal(access_scope(&system, &root, v), OWNER_ALL);
		assert_int_equal(access_scope(&user, &ann, v), OWNER_ALL);
		assert_int_equal(access_scope(&system, &ann, v), rights[i].other ? OWNER_ALL : 1000);
		assert_int_equal(access_scope(&system, &admin, v), rights[i].admin_root ? OWNER_ALL : OWNER_NOT_ROOT);
	}
}

static void a_uid_that_cannot_be_mapped_is_not_served(void **state)
{
	const struct access system = {.user_mode = false, .self = 999}, user = {.user_mode = true, .self = 1000};

	(void)state;
	assert_false(access_serves(&system, UID_OVERFLOW));
	assert_false(access_serves(&system, UINT32_MAX));
	assert_true(access_serves(&system, 1234));
	assert_false(access_serves(&user, 1234));
	assert_true(access_serves(&user, 0));
}

static void the_edit_distance_counts_changed_letters(void **state)
{
	(void)state;
	assert_int_equal(edit_distance("bakcup", "backup", 2), 1);
	assert_int_equal(edit_distance("backup", "backup", 2), 0);
	assert_int_equal(edit_distance("bakup", "backup", 2), 1);
	assert_int_equal(edit_distance("a", "abcdef", 2), 3);
	assert_true(edit_distance("xyz", "abc", 2) > 2);
}

/* ---- submissions ---- */

#define NOW (INT64_C(1700000000) * USEC_SEC)

static bool prepare(const char *body, bool bulk, struct submission *s, struct err *e)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);

	submission_init(s);
	buf_str(&s->body, body);
	s->bulk = bulk;
	s->max_body = 1 << 20;
	s->max_jobs = 3;
	s->now = NOW;
	return submission_prepare(s, zones, e);
}

static void a_job_without_a_schedule_runs_now(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare("{\"command\":[\"true\"],\"key\":\"k\"}", false, &s, NULL));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.jobs[0].run_at, NOW);
	assert_int_equal(s.jobs[0].next_slot, 0);
	assert_string_equal(s.jobs[0].key, "k");
	assert_non_null(strstr(s.jobs[0].spec, "\"schedule\":[\"now\"]"));
}

static void a_relative_time_is_stored_as_an_absolute_time(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare("{\"command\":[\"true\"],\"schedule\":\"@1700000600\"}", false, &s, NULL));
	assert_int_equal(s.jobs[0].run_at, 0);
	assert_int_equal(s.jobs[0].next_slot, NOW + 600 * USEC_SEC);
}

static void the_same_key_with_a_relative_time_is_the_same_submission_later(void **state)
{
	static const char body[] = "{\"key\":\"k\",\"command\":[\"true\"],\"schedule\":\"now + 10 minutes\"}";
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_DONE(submission) first = {};
	AUTO_DONE(submission) later = {};

	(void)state;
	assert_true(prepare(body, false, &first, NULL));
	submission_init(&later);
	buf_str(&later.body, body);
	later.max_body = sizeof(body);
	later.now = NOW + 5 * USEC_SEC;
	assert_true(submission_prepare(&later, zones, NULL));
	assert_string_not_equal(first.jobs[0].spec, later.jobs[0].spec);
	assert_string_equal(first.jobs[0].content, later.jobs[0].content);
}

static bool prepare_trial(const char *body, struct submission *s)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);

	submission_init(s);
	buf_str(&s->body, body);
	s->max_body = 1 << 20;
	s->dry_run = true;
	s->now = NOW;
	return submission_prepare(s, zones, NULL);
}

static const char *code_of(const struct submission *s, size_t i)
{
	return json_string_value(json_object_get(json_array_get(s->v[0].forecast.findings, i), "code"));
}

static void a_dry_run_returns_the_schedule_its_slots_and_warnings(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare_trial("{\"command\":[\"true\"],\"schedule\":\"*/35 * * * *\",\"jitter\":\"1h\"}", &s));
	assert_string_equal(s.v[0].forecast.explain, "at minutes 0 and 35 of every hour, UTC");
	assert_int_equal(s.v[0].forecast.n, FORECAST_SLOTS);
	assert_int_equal(s.v[0].forecast.next[0], s.jobs[0].next_slot);
	assert_true(s.v[0].forecast.next[1] > s.v[0].forecast.next[0]);
	assert_string_equal(code_of(&s, 0), "uneven-step");
	assert_string_equal(code_of(&s, 1), "wide-jitter");
	assert_null(code_of(&s, 2));
	assert_int_equal(s.jobs[0].density_max, SCHEDULE_DENSITY_MAX);
}

static void an_unnamed_job_with_h_has_slots_once_it_has_a_number(void **state)
{
	static const char body[] = "{\"command\":[\"true\"],\"schedule\":\"H H * * *\"}";
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_DONE(submission) trial = {};
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare_trial(body, &trial));
	assert_string_equal(code_of(&trial, 0), "hash-by-number");
	assert_int_equal(trial.v[0].forecast.n, 0);
	assert_true(prepare(body, false, &s, NULL));
	assert_false(slot_known(s.jobs[0].next_slot));
	assert_null(s.v[0].forecast.findings);
	s.jobs[0].id = 12;
	assert_true(submission_set_number(&s, 0, &s.jobs[0], zones, NULL));
	assert_true(slot_known(s.jobs[0].next_slot));
	assert_int_equal(json_array_size(s.v[0].forecast.findings), 0);
}

static void a_time_equal_to_now_is_accepted(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare("{\"command\":[\"true\"],\"schedule\":\"@1700000000\"}", false, &s, NULL));
	assert_int_equal(s.jobs[0].next_slot, NOW);
}

static void a_job_without_a_zone_gets_utc(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	assert_true(prepare("{\"command\":[\"true\"]}", false, &s, NULL));
	assert_non_null(strstr(s.jobs[0].spec, "\"tz\":\"UTC\""));
}

static void a_boot_job_waits_for_boots_until_its_end(void **state)
{
	AUTO_DONE(submission) ever = {};
	AUTO_DONE(submission) bound = {};

	(void)state;
	assert_true(prepare("{\"command\":[\"true\"],\"schedule\":\"@reboot\"}", false, &ever, NULL));
	assert_int_equal(ever.jobs[0].next_slot, USEC_NEVER);
	assert_true(prepare("{\"command\":[\"true\"],\"schedule\":\"@reboot\",\"until\":\"@1700000060\"}", false, &bound, NULL));
	assert_true(bound.jobs[0].next_slot > NOW + 60 * USEC_SEC && bound.jobs[0].next_slot < NOW + USEC_HOUR);
	assert_false(slot_known(bound.jobs[0].next_slot));
	assert_int_equal(slot_boot_wait(NOW, NOW + 1), 0);
}

static void a_refused_submission_names_the_member(void **state)
{
	static const struct {
		const char *body, *field;
		bool bulk;
		enum err_kind kind;
	} cases[] = {
		{ "{}", "command", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"script\":\"b\"}", "script", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"schedule\":\"@1600000000\"}", "schedule", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"schedule\":\"whenever\"}", "schedule", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"tz\":\"Mars/Olympus\"}", "tz", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"tz\":\"../../etc/passwd\"}", "tz", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"schedule\":[\"after-finish 5m\",\"@daily\"]}", "schedule", false, ERR_INVALID },
		{ "{\"command\":[\"a\"],\"schedule\":[\"@reboot\"],\"until\":\"@1699999999\"}", "schedule", false, ERR_INVALID },
		{ "{\"command\":[\"a\"]}", "jobs", true, ERR_INVALID },
		{ "{\"jobs\":[]}", "jobs", true, ERR_INVALID },
		{ "{\"jobs\":{}}", "jobs", true, ERR_INVALID },
		{ "{\"jobs\":[],\"more\":1}", "jobs", true, ERR_INVALID },
		{ "{\"jobs\":[{\"command\":[\"a\"]},{\"command\":[\"a\"],\"env\":1}]}", "jobs[1].env", true, ERR_INVALID },
		{ "{\"jobs\":[7]}", "jobs[0]", true, ERR_INVALID },
		{ "{\"jobs\":[{\"command\":[\"a\"]},{\"name\":\"\xff\"}]}", "jobs[1].name", true, ERR_INVALID },
		{ "{\"jobs\":[{},{},{},{}]}", "jobs", true, ERR_TOO_LARGE },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(submission) s = {};
		struct err e = {};

		if (prepare(cases[i].body, cases[i].bulk, &s, &e))
			fail_msg("%s was accepted", cases[i].body);
		if (e.kind != cases[i].kind || strcmp(e.field, cases[i].field))
			fail_msg("%s: %s under '%s': %s", cases[i].body, err_kind_info(e.kind)->code, e.field, e.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(openapi_json_describes_every_route_with_its_parameters),
		TEST(openapi_json_describes_no_other_routes),
		TEST(every_route_that_changes_something_has_an_audit_action),
		TEST(openapi_json_describes_every_job_field_and_no_other),
		TEST(openapi_json_describes_every_written_member),
		TEST(a_request_finds_its_route),
		TEST(a_bad_parameter_is_refused_under_its_name),
		TEST(only_state_parameters_may_be_repeated),
		TEST(every_verb_is_allowed_for_its_roles),
		TEST(a_uid_that_cannot_be_mapped_is_not_served),
		TEST(the_edit_distance_counts_changed_letters),
		TEST(a_job_without_a_schedule_runs_now),
		TEST(a_relative_time_is_stored_as_an_absolute_time),
		TEST(the_same_key_with_a_relative_time_is_the_same_submission_later),
		TEST(a_dry_run_returns_the_schedule_its_slots_and_warnings),
		TEST(an_unnamed_job_with_h_has_slots_once_it_has_a_number),
		TEST(a_time_equal_to_now_is_accepted),
		TEST(a_job_without_a_zone_gets_utc),
		TEST(a_boot_job_waits_for_boots_until_its_end),
		TEST(a_refused_submission_names_the_member),
	};

	return RUN_TESTS(tests);
}
