/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the response of every route for the owner, another user, a denied user, an administrator
 * and root.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "daemon/api/routes/routes.h"
#include "server/server_rig.h"
#include "unit/unit.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "s3cr3t" /* part of the name, command, tag and environment of ann's objects */

/*
 * Expected response: A: succeeds, lists include ann's objects. E: succeeds without ann's objects.
 * N: not found. D: denied. All objects belong to ann; the denied user is ann.
 */
static const struct row {
	const char *method, *path;
	char owner, other, denied, admin, root;
	const char *body;
} rows[] = {
	{"GET", "/", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/ui/{file}", 'N', 'N', 'N', 'N', 'N', NULL},
	{"GET", "/v1/events", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs", 'A', 'E', 'D', 'E', 'E',
		"{\"command\":[\"true\"],\"schedule\":\"manual\"}"},
	{"POST", "/v1/jobs/bulk", 'A', 'E', 'D', 'E', 'E',
		"{\"jobs\":[{\"command\":[\"true\"],\"schedule\":\"manual\"}]}"},
	{"POST", "/v1/apply", 'A', 'E', 'D', 'E', 'E',
		"{\"jobs\":[{\"name\":\"applied\",\"command\":[\"true\"],\"schedule\":\"manual\"}]}"},
	{"GET", "/v1/forecast", 'A', 'E', 'A', 'A', 'A', NULL},
	{"GET", "/v1/density", 'E', 'E', 'E', 'E', 'E', NULL}, /* numbers only */
	{"GET", "/v1/crontabs", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/v1/runs/{run}/output/search", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/jobs", 'A', 'E', 'A', 'A', 'A', NULL},
	{"GET", "/v1/jobs/{job}", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/jobs/{job}/why", 'A', 'N', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/pause", 'A', 'N', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/resume", 'A', 'N', 'D', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/run", 'A', 'N', 'D', 'A', 'A', NULL},
	{"POST", "/v1/bulk/pause", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/bulk/resume", 'A', 'E', 'D', 'A', 'A', NULL},
	{"POST", "/v1/bulk/run", 'A', 'E', 'D', 'A', 'A', NULL},
	{"POST", "/v1/bulk/tag", 'A', 'E', 'D', 'A', 'A', NULL},
	{"GET", "/v1/pauses", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/pause", 'A', 'A', 'A', 'A', 'A', "{\"scope\":\"tag\",\"key\":\"s3cr3t=1\"}"},
	{"POST", "/v1/resume", 'A', 'E', 'D', 'A', 'A', "{\"scope\":\"tag\",\"key\":\"s3cr3t=1\"}"},
	{"POST", "/v1/freeze", 'D', 'D', 'D', 'A', 'A', NULL},
	{"POST", "/v1/thaw", 'D', 'D', 'D', 'A', 'A', NULL},
	{"PATCH", "/v1/jobs/{job}", 'A', 'N', 'D', 'A', 'A', "{\"priority\":1}"},
	{"GET", "/v1/jobs/{job}/graph", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/jobs/{job}/revisions", 'A', 'N', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/undo", 'A', 'N', 'D', 'A', 'A', NULL},
	{"GET", "/v1/templates", 'A', 'E', 'A', 'E', 'E', NULL},
	{"GET", "/v1/templates/{template}", 'A', 'N', 'A', 'N', 'N', NULL},
	{"DELETE", "/v1/templates/{template}", 'A', 'N', 'D', 'N', 'N', NULL},
	{"PUT", "/v1/templates/{template}", 'A', 'A', 'D', 'A', 'A', "{\"command\":[\"true\"]}"},
	{"GET", "/v1/runs", 'A', 'E', 'A', 'A', 'A', NULL},
	{"GET", "/v1/runs/{run}", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/runs/{run}/attempts", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/runs/{run}/output", 'A', 'N', 'A', 'A', 'A', NULL},
	{"GET", "/v1/dead", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/dead/retry", 'A', 'E', 'D', 'A', 'A', NULL},
	{"POST", "/v1/dead/purge", 'A', 'E', 'D', 'A', 'A', NULL},
	{"POST", "/v1/runs/{run}/retry", 'A', 'N', 'D', 'A', 'A', NULL},
	{"POST", "/v1/runs/{run}/purge", 'A', 'N', 'D', 'A', 'A', NULL},
	{"GET", "/v1/queues", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/v1/queues/{queue}", 'A', 'A', 'A', 'A', 'A', NULL},
	{"PUT", "/v1/queues/{queue}", 'D', 'D', 'D', 'A', 'A', NULL},
	{"DELETE", "/v1/queues/{queue}", 'D', 'D', 'D', 'A', 'A', NULL},
	{"GET", "/v1/owners", 'A', 'E', 'A', 'A', 'A', NULL},
	{"GET", "/v1/owners/{owner}", 'A', 'N', 'A', 'A', 'A', NULL},
	{"PUT", "/v1/owners/{owner}", 'D', 'D', 'D', 'A', 'A', NULL},
	{"DELETE", "/v1/owners/{owner}", 'D', 'D', 'D', 'A', 'A', NULL},
	{"POST", "/v1/db/prune", 'D', 'D', 'D', 'A', 'A', NULL},
	{"GET", "/v1/db/backup", 'D', 'D', 'D', 'A', 'A', NULL},
	{"GET", "/v1/db/check", 'D', 'D', 'D', 'A', 'A', NULL},
	{"GET", "/v1/notices", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/notify-test", 'A', 'N', 'D', 'A', 'A', NULL},
	{"GET", "/v1/sandboxes", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/v1/nodes", 'E', 'E', 'E', 'E', 'E', NULL},
	/* there is no node of this name */
	{"POST", "/v1/nodes/{node}/drain", 'D', 'D', 'D', 'N', 'N', NULL},
	{"POST", "/v1/nodes/{node}/undrain", 'D', 'D', 'D', 'N', 'N', NULL},
	{"POST", "/v1/nodes/{node}/resign", 'D', 'D', 'D', 'N', 'N', NULL},
	{"GET", "/v1/stream", 'A', 'E', 'A', 'A', 'A', NULL},
	{"GET", "/v1/tokens", 'A', 'E', 'A', 'A', 'A', NULL},
	{"POST", "/v1/tokens", 'A', 'E', 'A', 'A', 'A', "{\"name\":\"other\"}"},
	{"POST", "/v1/tokens/once", 'A', 'E', 'A', 'A', 'A', NULL},
	{"DELETE", "/v1/tokens/{token}", 'A', 'N', 'A', 'A', 'A', NULL},
	/* sessions are for TCP */
	{"POST", "/v1/session", 'E', 'E', 'E', 'E', 'E', "{\"token\":\"x\"}"},
	{"GET", "/v1/session", 'E', 'E', 'E', 'E', 'E', NULL},
	{"DELETE", "/v1/session", 'E', 'E', 'E', 'E', 'E', NULL},
	{"POST", "/v1/web", 'E', 'E', 'E', 'E', 'E', NULL},
	/* this server has no asynchronous calls */
	{"POST", "/v1/callbacks/{callback}", 'N', 'N', 'N', 'N', 'N', "{\"state\":\"running\"}"},
	/* this server has no archive */
	{"GET", "/v1/archive/runs", 'N', 'N', 'N', 'N', 'N', NULL},
	{"GET", "/v1/archive/output", 'N', 'N', 'N', 'N', 'N', NULL},
	{"GET", "/healthz", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/readyz", 'E', 'E', 'E', 'E', 'E', NULL},
	{"GET", "/v1/status", 'E', 'E', 'E', 'E', 'E', NULL},
	/* this server has no metrics */
	{"GET", "/metrics", 'D', 'D', 'D', 'N', 'N', NULL},
	{"POST", "/v1/runs/{run}/cancel", 'A', 'N', 'A', 'A', 'A', NULL},
	{"POST", "/v1/jobs/{job}/cancel", 'A', 'N', 'A', 'A', 'A', NULL},
	{"DELETE", "/v1/jobs/{job}", 'A', 'N', 'A', 'A', 'A', NULL},
};

static const struct row *row_of(const struct route *r)
{
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		if (strcmp(rows[i].method, r->method) == 0 && strcmp(rows[i].path, r->path) == 0)
			return &rows[i];
	fail_msg("%s %s has no row in this table", r->method, r->path);
	return NULL;
}

static void every_route_has_a_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < routes_count; i++)
		row_of(&routes[i]);
	assert_int_equal(ELEMENTS(rows), routes_count);
}

/* ---- objects of ann ---- */

struct fixture {
	struct rig rig;
	char job[24], run[24];
};

static void number_into(char out[24], const struct rig_reply *a)
{
	snprintf(out, 24, "%lld", (long long)json_integer_value(json_object_get(a->json, "id")));
}

/*
 * Creates the objects again, because the last request may have cancelled, purged or removed them.
 */
static void create_objects(struct fixture *w)
{
	static const char job[] = "{\"name\":\"" SECRET "\",\"command\":[\"echo\",\"" SECRET
				  "\"],\"env\":{\"A\":\"" SECRET "\"},"
				  "\"tags\":{\"" SECRET "\":\"1\"},\"notify\":[\"mail:" SECRET
				  "\"],\"if_exists\":\"keep\",\"schedule\":\"manual\"}";
	AUTO_DONE(rig_reply) a = rig_request(&w->rig, ANN, "POST", "/v1/jobs", job);
	AUTO_DONE(rig_reply)
	changed = rig_request(&w->rig, ANN, "PATCH", "/v1/jobs/" SECRET, "{\"priority\":3}");
	AUTO_DONE(rig_reply)
	run = rig_request(&w->rig, ANN, "POST", "/v1/jobs/" SECRET "/run", "{\"force\":true}");

	assert_int_equal(a.kind, ERR_NONE);
	assert_int_equal(changed.kind, ERR_NONE);
	number_into(w->job, &a);
	if (run.kind == ERR_NONE)
		number_into(w->run, &run);
	rig_request_kind(&w->rig, ANN, "PUT", "/v1/templates/" SECRET, "{\"command\":[\"true\"]}");
	/*
	 * Removes the pauses of the last request: an owner could not end those of root and
	 * administrators.
	 */
	rig_request_kind(&w->rig, ROOT, "POST", "/v1/jobs/" SECRET "/resume", NULL);
	rig_request_kind(&w->rig, ROOT, "POST", "/v1/resume",
		"{\"scope\":\"tag\",\"key\":\"" SECRET "=1\"}");
	rig_request_kind(
		&w->rig, ANN, "POST", "/v1/pause", "{\"scope\":\"tag\",\"key\":\"" SECRET "=1\"}");
	rig_request_kind(&w->rig, ROOT, "PUT", "/v1/queues/" SECRET, NULL);
	rig_request_kind(&w->rig, ANN, "POST", "/v1/tokens", "{\"name\":\"" SECRET "\"}");
	rig_request_kind(&w->rig, ROOT, "PUT", "/v1/owners/daemon", "{\"max_running\":3}");
}

static char *target_of(const struct fixture *w, const char *path, bool missing)
{
	static const char *const kinds[] = {"{job}", "{run}", "{template}", "{queue}", "{owner}",
		"{token}"};
	const char *const real[] = {w->job, w->run, SECRET, SECRET, "daemon", SECRET};
	const char *const none[] = {"987654321", "987654321", "nothing", "nothing", "bin", "nothing"};
	const char *brace = strchr(path, '{');

	for (size_t i = 0; brace && i < ELEMENTS(kinds); i++)
		if (text_starts(brace, kinds[i]))
			return xprintf("%.*s%s%s", (int)(brace - path), path,
				(missing ? none : real)[i], brace + strlen(kinds[i]));
	return xstrdup(path);
}

/* Classifies a response. */
static char classify(const char *raw)
{
	int status = 0;

	sscanf(raw, "HTTP/1.1 %d", &status);
	if (status == 403)
		return 'D';
	if (status == 404)
		return 'N';
	return strstr(raw, SECRET) ? 'A' : 'E';
}

/* A list must show ann's objects; for other routes the status is sufficient. */
static bool is_expected(const struct row *r, char want, char got, const char *raw)
{
	bool shows = strcmp(r->method, "GET") == 0 && strchr("AE", want);
	bool binary = strstr(r->path, "/db/") != NULL;

	if (want == got)
		return true;
	if (want == 'A' && got == 'E')
		return !shows || binary || strstr(r->path, "/dead") ||
		       strstr(r->path, "/notices") || strstr(r->path, "/output") ||
		       strstr(r->path, "/attempts") || strstr(r->path, "/owners");
	if (want == 'A' && got == 'N') /* a run without output is not found, also for its owner */
		return strstr(r->path, "/output") && strstr(raw, "no output") == NULL &&
		       strstr(raw, "no run") == NULL;
	if (want == 'E' && got == 'A') /* all users see queues by name */
		return strstr(r->path, "/queues") != NULL;
	return false;
}

/* The query that a route needs. */
static const char *query_of(const struct row *r)
{
	if (strcmp(r->path, "/v1/bulk/tag") == 0)
		return "?name=" SECRET "&set=a%3Db";
	if (text_starts(r->path, "/v1/bulk/"))
		return "?name=" SECRET;
	return strstr(r->path, "/output/search") ? "?text=a" : "";
}

static void try_row(
	struct fixture *w, const struct row *r, uint32_t uid, char want, const char *who)
{
	AUTO_TEXT path = NULL;
	AUTO_TEXT target = NULL;
	AUTO_TEXT raw = NULL;
	char got;

	if (strcmp(r->path, "/v1/stream") == 0 || strcmp(r->path, "/v1/web") == 0)
		return; /* does not end; tests/integration/tcp_streams.py reads it */
	create_objects(w);
	path = target_of(w, r->path, false);
	target = xprintf("%s%s", path, query_of(r));
	if (want == 'D' && uid == ANN && r->owner != 'D')
		assert_int_equal(io_write_file(w->rig.deny, "daemon\n", 7, 0644), 0);
	else if (strcmp(who, "denied") == 0)
		assert_int_equal(io_write_file(w->rig.deny, "# none\ndaemon # ann\n", 20, 0644), 0);
	raw = rig_request_raw(&w->rig, uid, r->method, target, r->body);
	unlink(w->rig.deny);
	got = classify(raw);
	if (!is_expected(r, want, got, raw))
		fail_msg("%s %s as %s: '%c' expected, got '%c': %.300s", r->method, target, who,
			want, got, raw);
	if (strcmp(r->path, "/v1/freeze") == 0)
		rig_request_kind(&w->rig, ROOT, "POST", "/v1/thaw", NULL);
}

static void each_role_gets_its_status_from_every_route(void **state)
{
	struct fixture w = {};

	(void)state;
	rig_start(&w.rig, &rig_generous);
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		try_row(&w, &rows[i], EVE, rows[i].other, "another user");
		try_row(&w, &rows[i], ANN, rows[i].denied, "denied");
		try_row(&w, &rows[i], ANN, rows[i].owner, "owner");
		try_row(&w, &rows[i], BOB | ADMIN, rows[i].admin, "administrator");
		try_row(&w, &rows[i], ROOT, rows[i].root, "root");
	}
	rig_stop(&w.rig);
}

/* ---- other users' objects ---- */

static char *replace(const char *text, const char *what, const char *by)
{
	AUTO_DONE(buf) out = {};
	const char *at;

	while ((at = strstr(text, what))) {
		buf_add(&out, text, (size_t)(at - text));
		buf_str(&out, by);
		text = at + strlen(what);
	}
	buf_str(&out, text);
	return buf_steal(&out);
}

/* Removes the date and the length, which depends on the name. */
static char *comparable(const char *raw, const char *name)
{
	const char *body = strstr(raw, "\r\n\r\n");
	AUTO_TEXT same = body ? replace(body, name, "X") : NULL;

	assert_non_null(body);
	return xprintf("%.*s%s", (int)strcspn(raw, "\r"), raw, same);
}

static void compare_with_missing(
	struct fixture *w, const struct row *r, const char *real, const char *none)
{
	const char *brace = strchr(r->path, '{');
	const char *end = strchr(brace, '}') + 1;
	AUTO_TEXT foreign = xprintf("%.*s%s%s%s", (int)(brace - r->path), r->path, real, end, query_of(r));
	AUTO_TEXT missing = xprintf("%.*s%s%s%s", (int)(brace - r->path), r->path, none, end, query_of(r));
	AUTO_TEXT a_raw = rig_request_raw(&w->rig, BOB, r->method, foreign, r->body);
	AUTO_TEXT b_raw = rig_request_raw(&w->rig, BOB, r->method, missing, r->body);
	AUTO_TEXT a = comparable(a_raw, real);
	AUTO_TEXT b = comparable(b_raw, none);

	if (strcmp(a, b) != 0)
		fail_msg("%s %s distinguishes another user's object from a missing one:\n%s\n%s",
			r->method, r->path, a, b);
}

static void a_response_for_another_users_object_equals_that_for_a_missing_one(void **state)
{
	struct fixture w = {};

	(void)state;
	rig_start(&w.rig, &rig_generous);
	create_objects(&w);
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		if (strstr(rows[i].path, "{job}")) {
			compare_with_missing(&w, &rows[i], w.job, "987654321");
			compare_with_missing(&w, &rows[i], SECRET, "nothing");
		} else if (strstr(rows[i].path, "{run}")) {
			compare_with_missing(&w, &rows[i], w.run, "987654321");
		} else if (strstr(rows[i].path, "{template}") && rows[i].other == 'N') {
			compare_with_missing(&w, &rows[i], SECRET, "nothing");
		} else if (strstr(rows[i].path, "{owner}")) {
			compare_with_missing(
				&w, &rows[i], "1", "3"); /* 3 has no limits of its own */
		}
	}
	rig_stop(&w.rig);
}

/* ---- allow and deny files ---- */

static void write_list(const char *path, const char *text, mode_t mode)
{
	unlink(path);
	assert_int_equal(io_write_file(path, text, strlen(text), mode), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void allow_and_deny_files_decide_who_may_start_jobs(void **state)
{
	struct rig rig = {};

	(void)state;
	rig_start(&rig, &rig_generous);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	write_list(rig.deny, "# users\nbin\n", 0644);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_DENIED);
	write_list(rig.deny, "daemon\n", 0644);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_DENIED);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_NONE);
	write_list(rig.allow, "  daemon  # ann\n\n", 0644); /* then the deny file is not used */
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_DENIED);
	assert_int_equal(rig_submit(&rig, BOB | ADMIN, ""), ERR_DENIED);
	assert_int_equal(rig_submit(&rig, ROOT, ""), ERR_NONE);
	/* a denied user can see and stop existing jobs */
	assert_int_equal(rig_request_kind(&rig, BOB, "GET", "/v1/jobs", NULL), ERR_NONE);
	unlink(rig.allow);
	unlink(rig.deny);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_NONE);
	rig_stop(&rig);
}

static void expect_closed(struct rig *rig, const char *why)
{
	AUTO_DONE(rig_reply)
	a = rig_request(rig, ANN, "POST", "/v1/jobs", "{\"command\":[\"true\"]}");

	assert_int_equal(a.kind, ERR_DENIED);
	if (!strstr(a.msg, why))
		fail_msg("'%s' does not contain '%s'", a.msg, why);
	assert_int_equal(rig_submit(rig, ROOT, ""), ERR_NONE);
	assert_int_equal(rig_request_kind(rig, ANN, "GET", "/v1/jobs", NULL), ERR_NONE);
}

static void an_unusable_allow_or_deny_file_denies_all_users_except_root(void **state)
{
	static const char *const malformed[] = {
		"dae mon\n", "root,daemon\n", "@staff\n", "\xff\x01\n", "-x\n", "%all\n"};
	struct rig rig = {};

	(void)state;
	rig_start(&rig, &rig_generous);
	for (size_t i = 0; i < ELEMENTS(malformed); i++) {
		write_list(rig.deny, malformed[i], 0644);
		expect_closed(&rig, "/deny' cannot be used: line 1 is not a user name");
		write_list(rig.allow, malformed[i], 0644);
		expect_closed(&rig, "/allow' cannot be used: line 1 is not a user name");
		unlink(rig.allow);
	}
	write_list(rig.deny, "nobody\n", 0646);
	expect_closed(&rig, "it is writable by everyone");
	unlink(rig.deny);
	assert_int_equal(mkdir(rig.deny, 0755), 0);
	expect_closed(&rig, "it is not a regular file");
	rmdir(rig.deny);
	/* a loop: the file exists and cannot be read */
	assert_int_equal(symlink(rig.deny, rig.deny), 0);
	expect_closed(&rig, "symbolic links");
	unlink(rig.deny);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	rig_stop(&rig);
}

/* ---- submitting for other users ---- */

static void administrators_submit_for_other_users_but_not_for_root(void **state)
{
	static const char job[] = "{\"command\":[\"true\"],\"schedule\":\"manual\",\"name\":\"x\"}";
	static const char preload[] = "{\"command\":[\"true\"],\"schedule\":\"manual\",\"env\":{"
				      "\"LD_PRELOAD\":\"/x.so\"}}";
	struct rig rig = {};

	(void)state;
	rig_start(&rig, &rig_generous);
	assert_int_equal(
		rig_request_kind(&rig, BOB, "POST", "/v1/jobs?as=daemon", job), ERR_DENIED);
	assert_int_equal(
		rig_request_kind(&rig, BOB, "POST", "/v1/jobs?as=nonesuch", job), ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, BOB, "POST", "/v1/jobs?as=bin", job), ERR_NONE);
	for (int i = 0; i < 2; i++) {
		AUTO_DONE(rig_reply)
		a = rig_request(&rig, i ? ROOT : BOB | ADMIN, "POST", "/v1/jobs?as=daemon",
			"{\"command\":[\"true\"],\"schedule\":\"manual\"}");

		assert_int_equal(a.kind, ERR_NONE);
		assert_int_equal(json_integer_value(json_object_get(a.json, "uid")), ANN);
		assert_string_equal(json_string_value(json_object_get(a.json, "owner")), "daemon");
	}
	{
		AUTO_DONE(rig_reply) mine = rig_request(&rig, ANN, "GET", "/v1/jobs", NULL);
		AUTO_DONE(rig_reply)
		trail = rig_request(&rig, ANN, "GET", "/v1/events?what=job.add", NULL);

		assert_int_equal(json_array_size(json_object_get(mine.json, "jobs")), 2);
		assert_int_equal(json_array_size(json_object_get(trail.json, "events")), 2);
		assert_string_equal(
			json_string_value(json_object_get(
				json_array_get(json_object_get(trail.json, "events"), 1), "who")),
			"bin");
	}
	assert_int_equal(
		rig_request_kind(&rig, BOB | ADMIN, "POST", "/v1/jobs?as=root", job), ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "POST", "/v1/jobs/bulk?as=root",
				 "{\"jobs\":[{\"command\":[\"id\"]}]}"),
		ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, ROOT, "POST", "/v1/jobs?as=root", job), ERR_NONE);
	assert_int_equal(
		rig_request_kind(&rig, ROOT, "POST", "/v1/jobs?as=nobody", job), ERR_DENIED);
	assert_int_equal(
		rig_request_kind(&rig, ROOT, "POST", "/v1/jobs?as=nonesuch", job), ERR_NOT_FOUND);
	/* users may set variables of the dynamic loader for their own jobs */
	assert_int_equal(
		rig_request_kind(&rig, ROOT, "POST", "/v1/jobs?as=daemon", preload), ERR_INVALID);
	assert_int_equal(rig_request_kind(&rig, ANN, "POST", "/v1/jobs", preload), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "PATCH", "/v1/jobs/2",
				 "{\"env\":{\"LD_AUDIT\":\"x\"}}"),
		ERR_INVALID);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "PATCH", "/v1/jobs/2",
				 "{\"env\":{\"COLOUR\":\"x\"}}"),
		ERR_NONE);
	/* administrators cannot change jobs of root */
	assert_int_equal(rig_submit(&rig, ROOT, ",\"name\":\"roots\""), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "PATCH", "/v1/jobs/roots",
				 "{\"command\":[\"id\"]}"),
		ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "POST", "/v1/jobs/roots/run", NULL),
		ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, BOB | ADMIN, "POST", "/v1/jobs/roots/pause", NULL),
		ERR_NONE);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_route_has_a_row),
		TEST(each_role_gets_its_status_from_every_route),
		TEST(a_response_for_another_users_object_equals_that_for_a_missing_one),
		TEST(allow_and_deny_files_decide_who_may_start_jobs),
		TEST(an_unusable_allow_or_deny_file_denies_all_users_except_root),
		TEST(administrators_submit_for_other_users_but_not_for_root),
	};

	return RUN_TESTS(tests);
}
