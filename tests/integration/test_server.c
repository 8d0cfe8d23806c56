/* SPDX-License-Identifier: Apache-2.0 */
/* Several users at one server: who sees what, and how much each may take. Needs root to be several users. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/dispatcher.h"
#include "daemon/governor.h"
#include "daemon/hub.h"
#include "daemon/planner.h"
#include "daemon/server.h"
#include "daemon/store_thread.h"
#include "daemon/zones.h"
#include "unit/unit.h"
#include "wire/client.h"
#include "wire/codec.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#define ROOT 0
#define ANN 1       /* 'daemon' and 'bin' are users on every machine */
#define BOB 2
#define NAMELESS 54321
#define OVERFLOW 65534

#define JOB "{\"command\":[\"true\"],\"schedule\":\"2199-01-01T00:00:00Z\"%s}"

/* ---- the server, in a process of its own ---- */

struct rig {
	char dir[64];
	char *socket;
	pid_t server;
};

static int listen_at(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, 0666) < 0 || listen(fd, 128) < 0)
		_exit(2);
	return fd;
}

static int serve(const struct rig *rig, const struct server_limits *limits)
{
	AUTO_TEXT db = xprintf("%s/jobs.db", rig->dir);
	struct store_thread_options so = { .where = db, .clock = &clock_system };
	struct server_context c = { .clock = &clock_system, .node_name = "n", .node_id = "i", .store_where = db,
		.output_dir = -1 };
	struct dispatcher_options o = { .clock = &clock_system, .node_id = "i", .node_name = "n" };
	struct governor_rules rules = { .max_running = 1 };
	struct dispatcher *d = NULL;
	struct server *server = NULL;
	sd_event *ev = NULL;
	struct err e = {};
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (sd_event_new(&ev) < 0 || sd_event_add_signal(ev, NULL, SIGTERM, NULL, NULL) < 0 ||
	    !store_thread_start(ev, &so, &c.store, &e))
		return 3;
	c.hub = o.hub = hub_new();
	o.store = c.store;
	c.planner = planner_new(&clock_system, c.store);
	c.zones = zones_new();
	if (!dispatcher_new(ev, &o, &d, &e))
		return 4;
	c.dispatcher = d;
	c.governor = governor_new(&clock_system, d, &rules);
	if (!server_start(ev, listen_at(rig->socket), &c, limits, &server, &e))
		return 5;
	status = sd_event_loop(ev);
	server_free(server);
	store_thread_free(c.store);
	governor_free(c.governor);
	dispatcher_free(d);
	hub_free(c.hub);
	planner_free((struct planner *)c.planner);
	zones_free(c.zones);
	sd_event_unref(ev);
	return status;
}

static void start(struct rig *rig, const struct server_limits *limits)
{
	struct client *c = NULL;

	if (geteuid() != 0)
		skip();
	snprintf(rig->dir, sizeof(rig->dir), "/tmp/jobsched-server.XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	assert_int_equal(chmod(rig->dir, 0755), 0);
	rig->socket = xprintf("%s/sock", rig->dir);
	rig->server = fork();
	if (rig->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed case does not stop it */
		_exit(serve(rig, limits));
	}
	for (int i = 0; i < 500 && !client_open(rig->socket, &c, NULL); i++)
		usleep(20000);
	assert_non_null(c);
	client_free(c);
}

static const struct server_limits generous = { .connections = 100, .connections_per_uid = 50, .body = 1 << 20,
	.bulk_body = 1 << 20, .bulk_jobs = 100, .jobs_per_uid = 1000, .submissions_per_second = 1000,
	.submissions_burst = 1000, .head_timeout = 10, .body_timeout = 10 };

static void stop(struct rig *rig)
{
	AUTO_TEXT clean = xprintf("rm -r %s", rig->dir);
	int status;

	assert_int_equal(kill(rig->server, SIGTERM), 0);
	assert_int_equal(waitpid(rig->server, &status, 0), rig->server);
	assert_int_equal(system(clean), 0);
	free(rig->socket);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- somebody asks ---- */

struct answer {
	enum err_kind kind;
	json_t *json; /* owned; NULL on an error */
	char msg[512];
};

static void answer_done(struct answer *a)
{
	json_decref(a->json);
}

static void ask_as(uint32_t uid, const char *path, const char *method, const char *target, const char *body, int out)
{
	struct client *c = NULL;
	json_t *sent = body ? json_loads(body, 0, NULL) : NULL, *got = NULL;
	struct err e = {};

	if (setgid(uid) < 0 || setuid(uid) < 0)
		_exit(9);
	if (client_open(path, &c, &e) && client_call(c, method, target, sent, 10000, &got, &e))
		dprintf(out, "%d\n%s", ERR_NONE, json_dumps(got, 0));
	else
		dprintf(out, "%d\n%s", e.kind, e.msg);
	_exit(0);
}

static struct answer ask(const struct rig *rig, uint32_t uid, const char *method, const char *target,
	const char *body)
{
	AUTO_DONE(buf) text = {};
	struct answer a = {};
	int pipes[2], status;
	pid_t child;
	char *rest;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0)
		ask_as(uid, rig->socket, method, target, body, pipes[1]);
	close(pipes[1]);
	assert_int_equal(io_read_all(pipes[0], &text, 16 << 20), 0);
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_non_null(text.data);
	a.kind = (enum err_kind)strtol(text.data, &rest, 10);
	if (a.kind == ERR_NONE)
		a.json = json_loads(rest + 1, 0, NULL);
	else
		snprintf(a.msg, sizeof(a.msg), "%s", rest + 1);
	return a;
}

static enum err_kind kind_of(const struct rig *rig, uint32_t uid, const char *method, const char *target,
	const char *body)
{
	AUTO_DONE(answer) a = ask(rig, uid, method, target, body);

	return a.kind;
}

static enum err_kind submit(const struct rig *rig, uint32_t uid, const char *more)
{
	AUTO_TEXT body = xprintf(JOB, more);

	return kind_of(rig, uid, "POST", "/v1/jobs", body);
}

static size_t count_jobs(const struct rig *rig, uint32_t uid)
{
	AUTO_DONE(answer) a = ask(rig, uid, "GET", "/v1/jobs", NULL);

	assert_int_equal(a.kind, ERR_NONE);
	return json_array_size(json_object_get(a.json, "jobs"));
}

/* ---- cases ---- */

static void a_job_is_its_owners_and_the_administrators_and_to_others_not_there(void **state)
{
	struct rig rig = {};

	(void)state;
	start(&rig, &generous);
	assert_int_equal(submit(&rig, ANN, ",\"name\":\"secret\""), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 1);
	assert_int_equal(count_jobs(&rig, BOB), 0);
	assert_int_equal(count_jobs(&rig, ROOT), 1);
	assert_int_equal(kind_of(&rig, ANN, "GET", "/v1/jobs/secret", NULL), ERR_NONE);
	for (size_t i = 0; i < 2; i++) {
		const char *refs[] = { "1", "secret" };
		AUTO_TEXT get = xprintf("/v1/jobs/%s", refs[i]);
		AUTO_TEXT cancel = xprintf("/v1/jobs/%s/cancel", refs[i]);

		assert_int_equal(kind_of(&rig, BOB, "GET", get, NULL), ERR_NOT_FOUND);
		assert_int_equal(kind_of(&rig, BOB, "POST", cancel, NULL), ERR_NOT_FOUND);
		assert_int_equal(kind_of(&rig, BOB, "DELETE", get, NULL), ERR_NOT_FOUND);
	}
	assert_int_equal(submit(&rig, BOB, ",\"name\":\"secret\""), ERR_NONE);
	assert_int_equal(kind_of(&rig, BOB, "DELETE", "/v1/jobs/secret", NULL), ERR_NONE);
	assert_int_equal(kind_of(&rig, ANN, "GET", "/v1/jobs/secret", NULL), ERR_NONE);
	assert_int_equal(kind_of(&rig, ROOT, "DELETE", "/v1/jobs/1", NULL), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 0);
	stop(&rig);
}

static void a_foreign_job_is_answered_as_a_missing_one(void **state)
{
	struct rig rig = {};
	struct answer foreign, missing;

	(void)state;
	start(&rig, &generous);
	assert_int_equal(submit(&rig, ANN, ",\"name\":\"secret\""), ERR_NONE);
	foreign = ask(&rig, BOB, "GET", "/v1/jobs/secret", NULL);
	missing = ask(&rig, BOB, "GET", "/v1/jobs/nothin", NULL);
	assert_string_equal(foreign.msg, "no job 'secret'; 'jobctl list' shows yours");
	assert_string_equal(missing.msg, "no job 'nothin'; 'jobctl list' shows yours");
	assert_int_equal(kind_of(&rig, BOB, "GET", "/v1/jobs/secre", NULL), ERR_NOT_FOUND);
	stop(&rig);
}

static void who_cannot_be_named_is_not_served(void **state)
{
	struct rig rig = {};

	(void)state;
	start(&rig, &generous);
	assert_int_equal(kind_of(&rig, OVERFLOW, "GET", "/v1/status", NULL), ERR_DENIED);
	assert_int_equal(submit(&rig, NAMELESS, ""), ERR_DENIED);
	assert_int_equal(kind_of(&rig, NAMELESS, "GET", "/v1/status", NULL), ERR_NONE);
	stop(&rig);
}

static void submissions_beyond_the_rate_are_put_off_for_one_user_only(void **state)
{
	struct server_limits l = generous;
	struct rig rig = {};

	(void)state;
	l.submissions_burst = 3;
	l.submissions_per_second = 1;
	start(&rig, &l);
	for (int i = 0; i < 3; i++)
		assert_int_equal(submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(submit(&rig, ANN, ""), ERR_LIMIT);
	assert_int_equal(submit(&rig, BOB, ""), ERR_NONE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(submit(&rig, ROOT, ""), ERR_NONE);
	/* a bulk that is larger than what is left is taken, and paid for afterwards */
	assert_int_equal(kind_of(&rig, BOB, "POST", "/v1/jobs/bulk",
		"{\"jobs\":[{\"command\":[\"a\"]},{\"command\":[\"a\"]},{\"command\":[\"a\"]},{\"command\":[\"a\"]}]}"),
		ERR_NONE);
	assert_int_equal(submit(&rig, BOB, ""), ERR_LIMIT);
	sleep(2);
	assert_int_equal(submit(&rig, ANN, ""), ERR_NONE);
	stop(&rig);
}

static void jobs_beyond_the_quota_are_refused_until_one_is_gone(void **state)
{
	struct server_limits l = generous;
	struct rig rig = {};

	(void)state;
	l.jobs_per_uid = 2;
	start(&rig, &l);
	assert_int_equal(submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(submit(&rig, ANN, ""), ERR_LIMIT);
	assert_int_equal(submit(&rig, BOB, ""), ERR_NONE);
	assert_int_equal(kind_of(&rig, ANN, "DELETE", "/v1/jobs/1", NULL), ERR_NONE);
	assert_int_equal(submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 2);
	stop(&rig);
}

/* Somebody who connects and says nothing. */
static pid_t hold(const struct rig *rig, uint32_t uid, int n)
{
	int pipes[2];
	pid_t child;
	char ready;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		if (setuid(uid) < 0)
			_exit(9);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < n; i++) {
			struct client *c = NULL;

			if (!client_open(rig->socket, &c, NULL))
				_exit(8);
		}
		(void)!write(pipes[1], "", 1);
		pause();
		_exit(0);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	close(pipes[0]);
	return child;
}

static void connections_beyond_the_quota_are_refused_for_one_user_only(void **state)
{
	struct server_limits l = generous;
	struct rig rig = {};
	pid_t holder;

	(void)state;
	l.connections_per_uid = 4;
	start(&rig, &l);
	holder = hold(&rig, ANN, 4);
	assert_int_equal(kind_of(&rig, ANN, "GET", "/v1/status", NULL), ERR_LIMIT);
	assert_int_equal(kind_of(&rig, BOB, "GET", "/v1/status", NULL), ERR_NONE);
	assert_int_equal(kind_of(&rig, ROOT, "GET", "/v1/status", NULL), ERR_NONE);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	for (int i = 0; i < 100 && kind_of(&rig, ANN, "GET", "/v1/status", NULL) != ERR_NONE; i++)
		usleep(20000);
	assert_int_equal(kind_of(&rig, ANN, "GET", "/v1/status", NULL), ERR_NONE);
	stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_is_its_owners_and_the_administrators_and_to_others_not_there),
		TEST(a_foreign_job_is_answered_as_a_missing_one),
		TEST(who_cannot_be_named_is_not_served),
		TEST(submissions_beyond_the_rate_are_put_off_for_one_user_only),
		TEST(jobs_beyond_the_quota_are_refused_until_one_is_gone),
		TEST(connections_beyond_the_quota_are_refused_for_one_user_only),
	};

	return RUN_TESTS(tests);
}
