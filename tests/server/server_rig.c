/* SPDX-License-Identifier: Apache-2.0 */
/* Test server in its own process, with clients of several users. Needs root to use several uids. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/allow_list.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/loop/run_watch.h"
#include "daemon/schedule/planner.h"
#include "daemon/api/server.h"
#include "daemon/loop/store_thread.h"
#include "daemon/api/submit/zone_caches.h"
#include "server/server_rig.h"
#include "unit/unit.h"
#include "wire/http_client.h"
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

static int listen_at(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, 0666) < 0 ||
		listen(fd, 128) < 0)
		_exit(2);
	return fd;
}

static int serve(const struct rig *rig, const struct server_limits *limits)
{
	AUTO_TEXT db = xprintf("%s/jobs.db", rig->dir);
	struct store_thread_options so = { .where = db, .clock = &clock_system };
	struct server_context c = {.clock = &clock_system,
		.node_name = "n",
		.node_id = "i",
		.store_where = db,
		.output_dir = -1,
		.admin_group = ADMINS};
	struct dispatcher_options o = { .clock = &clock_system, .node_id = "i", .node_name = "n" };
	struct concurrency_rules rules = { .max_running = 1 };
	struct spawner_link *spawner = NULL;
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
	c.run_watch_set = o.run_watch_set = run_watch_set_new();
	o.store = c.store;
	c.planner = planner_new(&clock_system, c.store, NULL);
	c.zones = zone_caches_new();
	if (!spawner_link_new(ev, &(struct spawner_link_options){}, &spawner, &e))
		return 6;
	c.spawner = o.spawner = spawner;
	if (!dispatcher_new(ev, &o, &d, &e))
		return 4;
	c.dispatcher = d;
	c.allow = allow_list_new(rig->allow, rig->deny);
	c.concurrency = concurrency_new(&clock_system, d, &rules);
	if (!server_start(ev, listen_at(rig->socket), &c, limits, &server, &e))
		return 5;
	status = sd_event_loop(ev);
	server_free(server);
	store_thread_free(c.store);
	concurrency_free(c.concurrency);
	dispatcher_free(d);
	spawner_link_free(spawner);
	run_watch_set_free(c.run_watch_set);
	planner_free((struct planner *)c.planner);
	zone_caches_free(c.zones);
	allow_list_free(c.allow);
	sd_event_unref(ev);
	return status;
}

void rig_start(struct rig *rig, const struct server_limits *limits)
{
	struct http_client *c = NULL;

	if (geteuid() != 0)
		skip();
	snprintf(rig->dir, sizeof(rig->dir), "/tmp/jobsched-server.XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	assert_int_equal(chmod(rig->dir, 0755), 0);
	rig->socket = xprintf("%s/sock", rig->dir);
	rig->allow = xprintf("%s/allow", rig->dir);
	rig->deny = xprintf("%s/deny", rig->dir);
	rig->server = fork();
	if (rig->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also ends when a test case fails */
		_exit(serve(rig, limits));
	}
	for (int i = 0; i < 500 && !http_client_open(rig->socket, &c, NULL); i++)
		usleep(20000);
	assert_non_null(c);
	http_client_free(c);
}

const struct server_limits rig_generous = {.connections = 100,
	.connections_per_uid = 50,
	.body = 1 << 20,
	.bulk_body = 1 << 20,
	.bulk_jobs = 100,
	.bodies_per_uid = 1 << 20,
	.bodies_total = 8 << 20,
	.jobs_per_uid = 1000,
	.submissions_per_second = 1000,
	.submissions_burst = 1000,
	.head_timeout = 10,
	.body_timeout = 10};

void rig_stop(struct rig *rig)
{
	AUTO_TEXT clean = xprintf("rm -r %s", rig->dir);
	int status;

	assert_int_equal(kill(rig->server, SIGTERM), 0);
	assert_int_equal(waitpid(rig->server, &status, 0), rig->server);
	assert_int_equal(system(clean), 0);
	free(rig->socket);
	free(rig->allow);
	free(rig->deny);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- requests ---- */

void rig_reply_done(struct rig_reply *a)
{
	json_decref(a->json);
}

static void become(uint32_t uid)
{
	const struct group *gr = uid & ADMIN ? getgrnam(ADMINS) : NULL;
	gid_t groups[] = {gr ? gr->gr_gid : 0};

	uid &= ~ADMIN;
	if (setgroups(gr ? 1 : 0, groups) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		_exit(9);
}

static void ask_as(uint32_t uid, const char *path, const char *method, const char *target,
	const char *body, int out)
{
	struct http_client *c = NULL;
	json_t *sent = body ? json_loads(body, 0, NULL) : NULL, *got = NULL;
	struct err e = {};

	become(uid);
	if (http_client_open(path, &c, &e) &&
		http_client_call(c, method, target, sent, 10000, &got, &e))
		dprintf(out, "%d\n%s", ERR_NONE, json_dumps(got, 0));
	else
		dprintf(out, "%d\n%s", e.kind, e.msg);
	_exit(0);
}

struct rig_reply rig_request(const struct rig *rig, uint32_t uid, const char *method,
	const char *target, const char *body)
{
	AUTO_DONE(buf) text = {};
	struct rig_reply a = {};
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

enum err_kind rig_request_kind(const struct rig *rig, uint32_t uid, const char *method,
	const char *target, const char *body)
{
	AUTO_DONE(rig_reply) a = rig_request(rig, uid, method, target, body);

	return a.kind;
}

enum err_kind rig_submit(const struct rig *rig, uint32_t uid, const char *more)
{
	AUTO_TEXT body = xprintf(JOB, more);

	return rig_request_kind(rig, uid, "POST", "/v1/jobs", body);
}

/* ---- requests without the HTTP client ---- */

static void send_as(uint32_t uid, const char *path, const char *request, int out)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_DONE(buf) got = {};

	become(uid);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		io_write_all(fd, request, strlen(request)) < 0 ||
		io_read_all(fd, &got, 64 << 20) < 0)
		_exit(8);
	_exit(io_write_all(out, got.data, got.len) < 0);
}

char *rig_request_raw(const struct rig *rig, uint32_t uid, const char *method, const char *target,
	const char *body)
{
	AUTO_TEXT length = body ? xprintf("Content-Length: %zu\r\n", strlen(body)) : xstrdup("");
	AUTO_TEXT request =
		xprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n%s",
			method, target, length, body ? body : "");
	AUTO_DONE(buf) text = {};
	int pipes[2], status;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0)
		send_as(uid, rig->socket, request, pipes[1]);
	close(pipes[1]);
	assert_int_equal(io_read_all(pipes[0], &text, 64 << 20), 0);
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return buf_steal(&text);
}
