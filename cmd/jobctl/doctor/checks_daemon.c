/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that ask the daemon. */
#include "base/auto.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/doctor/doctor.h"
#include "jobctl/member.h"
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INTEGRITY_BYTES (INT64_C(256) << 20) /* a larger store is not read as a whole */
#define MAIL_JOBS 1000                       /* jobs that are searched for mail notices */
#define OFFSET_SECONDS 1.0                   /* difference between the clocks of nodes */
#define OVERDUE_SECONDS 30.0                 /* as shown by 'jobctl status' */

static const char *start_daemon(const struct doctor *d)
{
	if (d->system)
		return "systemctl start jobschedd";
	return doctor_has_systemd() ? "systemctl --user start jobschedd" : "jobschedd --user";
}

void doctor_check_daemon(struct doctor *d)
{
	const char *stuck = member_text(d->status, "stuck_why");

	if (!d->status)
		doctor_find(d, DOCTOR_ERROR, start_daemon(d), "the daemon does not answer: %.*s",
			(int)strcspn(d->down.msg, ";"), d->down.msg);
	else if (stuck)
		doctor_find(d, DOCTOR_ERROR, "jobctl status", "the daemon cannot make progress: %s", stuck);
}

/* "jobschedd 0.1.0": the last word of the first line */
static char *version_of(const char *program)
{
	const char *const argv[] = {program, "--version", NULL};
	AUTO_DONE(buf) out = {};
	char *blank;

	if (doctor_run(argv, &out) != 0 || !out.data)
		return NULL;
	out.data[strcspn(out.data, "\n")] = '\0';
	blank = strrchr(out.data, ' ');
	return blank ? xstrdup(blank + 1) : NULL;
}

void doctor_check_versions(struct doctor *d)
{
	const char *const programs[] = {
		doctor_daemon_program(), JOBSCHED_LIBEXECDIR "/jobsched-spawner", JOBSCHED_LIBEXECDIR "/jobsched-net"};
	const char *running = member_text(d->status, "version"), *own = PACKAGE_VERSION;
	const char *restart = d->system ? "systemctl restart jobschedd" : "systemctl --user restart jobschedd";

	if (running && strcmp(running, own) != 0)
		doctor_find(d, DOCTOR_WARNING, restart, "the running daemon has version %s, and jobctl has %s",
			running, own);
	for (size_t i = 0; i < ELEMENTS(programs); i++) {
		AUTO_TEXT version = version_of(programs[i]);

		if (version && strcmp(version, own) != 0)
			doctor_find(d, DOCTOR_WARNING, doctor_install("jobsched"), "'%s' has version %s, and jobctl has %s",
				programs[i], version, own);
	}
}

void doctor_check_spawner(struct doctor *d)
{
	const char *why = member_text(d->status, "spawner_why");
	const json_t *stopped = json_object_get(d->status, "spawner_stopped");

	if (!json_is_true(json_object_get(d->status, "spawner_up")))
		doctor_find(d, DOCTOR_ERROR,
			d->system ? "systemctl start jobsched-spawner" : "systemctl --user restart jobschedd",
			"the spawner is not connected, so no job starts: %s", why ? why : "no reason is known");
	else if (stopped && !json_is_null(stopped))
		doctor_find(d, DOCTOR_ERROR, "jobctl status", "the spawner is stopped or does not answer");
}

void doctor_check_net(struct doctor *d)
{
	const json_t *net = json_object_get(d->status, "net");
	const char *why = member_text(net, "why");

	if (!json_is_true(json_object_get(net, "up")))
		doctor_find(d, DOCTOR_WARNING, "systemctl start jobsched-net",
			"jobsched-net is not connected, so calls, webhooks and artifacts wait: %s",
			why ? why : "no reason is known");
}

/* One request to the archive: in S3-compatible storage a list of one object. */
void doctor_check_archive(struct doctor *d)
{
	const char *place = member_text(json_object_get(d->status, "archive"), "place");
	json_auto_t *answer = NULL;
	struct err e = {};

	if (!place)
		doctor_skip(d, "there is no archive ('archive' in jobschedd.conf(5))");
	else if (!api_call(d->c, "GET", "/v1/archive/runs?limit=1", NULL, &answer, &e))
		doctor_find(d, DOCTOR_ERROR, "jobctl status",
			"the archive '%s' cannot be used, so old history is not deleted: %s", place, e.msg);
}

/* Without the daemon only the first bytes of a SQLite store are looked at. */
static void check_store_file(struct doctor *d)
{
	static const char magic[] = "SQLite format 3";
	AUTO_TEXT other = doctor_config(d, "store");
	AUTO_TEXT file = other ? xstrdup(other) : xprintf("%s/jobs.db", d->paths.state_dir);
	char head[sizeof(magic)] = {};
	int fd = file[0] == '/' ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n;

	if (fd < 0) {
		doctor_skip(d, "the store cannot be opened without the daemon");
		return;
	}
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n != (ssize_t)sizeof(head) || memcmp(head, magic, sizeof(magic)) != 0)
		doctor_find(d, DOCTOR_ERROR, "jobctl db restore FILE", "'%s' is not a SQLite store", file);
}

void doctor_check_store(struct doctor *d)
{
	const json_t *store = json_object_get(d->status, "store");
	const char *away = member_text(store, "away_why"), *place = member_text(store, "place");

	if (!d->status)
		check_store_file(d);
	if (member_text(store, "away_since"))
		doctor_find(d, DOCTOR_ERROR, "jobctl status", "the store '%s' is unavailable: %s",
			place ? place : "", away ? away : "no reason is known");
	if (member_text(store, "risk"))
		doctor_find(d, DOCTOR_WARNING, "man jobsched-cluster", "%s", member_text(store, "risk"));
	if (member_text(store, "held"))
		doctor_find(d, DOCTOR_WARNING, "man jobsched-cluster", "%s", member_text(store, "held"));
	if (json_is_true(json_object_get(store, "full")))
		doctor_find(d, DOCTOR_ERROR, "df -h", "the file system of the store '%s' is full; nothing can be added",
			place ? place : "");
}

/* An administrator can read the whole store. */
void doctor_check_integrity(struct doctor *d)
{
	const char *place = member_text(json_object_get(d->status, "store"), "place");
	json_auto_t *answer = NULL;
	const json_t *problem;
	struct err e = {};
	struct stat st;
	size_t i;

	if (place && stat(place, &st) == 0 && st.st_size > INTEGRITY_BYTES) {
		doctor_skip(d, "the store is large; 'jobctl db check' reads all of it");
		return;
	}
	if (!api_call(d->c, "GET", "/v1/db/check", NULL, &answer, &e)) {
		if (e.kind == ERR_DENIED)
			doctor_skip(d, "only administrators can check the store");
		else
			doctor_find(d, DOCTOR_ERROR, "jobctl db check", "the store could not be checked: %s", e.msg);
		return;
	}
	json_array_foreach(json_object_get(answer, "unsafe_settings"), i, problem) {
		AUTO_TEXT command = xprintf("psql -c 'ALTER SYSTEM SET %s = on'", json_string_value(problem));

		doctor_find(d, DOCTOR_WARNING, command,
			"'%s' is off: a crash of the database's machine can lose acknowledged jobs and runs",
			json_string_value(problem));
	}
	json_array_foreach(json_object_get(answer, "problems"), i, problem)
		doctor_find(d, DOCTOR_ERROR, "jobctl db restore FILE", "%s",
			json_string_value(problem) ? json_string_value(problem) : "the store is inconsistent");
}

/* Reports the nodes that have ended without being stopped. */
static void check_nodes(struct doctor *d)
{
	json_auto_t *answer = NULL;
	const json_t *node;
	size_t i;

	if (!api_call(d->c, "GET", "/v1/nodes", NULL, &answer, NULL))
		return;
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
		if (text_equal(member_text(node, "state"), "silent"))
			doctor_find(d, DOCTOR_WARNING, "jobctl nodes", "node '%s' has not renewed its lease", member_text(node, "name"));
	json_array_foreach(json_object_get(answer, "gone"), i, node)
		if (text_equal(member_text(node, "state"), "lost"))
			doctor_find(d, DOCTOR_NOTE, "jobctl nodes", "node '%s' was given up and has not joined again",
				member_text(node, "name"));
}

void doctor_check_cluster(struct doctor *d)
{
	const json_t *cluster = json_object_get(d->status, "cluster");
	double offset = json_number_value(json_object_get(cluster, "clock_offset"));

	if (offset > OFFSET_SECONDS || offset < -OFFSET_SECONDS)
		doctor_find(d, DOCTOR_WARNING, "timedatectl set-ntp true",
			"the clock of this node differs from that of the store by %.1f s", offset);
	if (!member_text(cluster, "leader"))
		doctor_find(d, DOCTOR_ERROR, "jobctl nodes", "no node leads, so no slot is planned");
	if (json_is_true(json_object_get(cluster, "draining")))
		doctor_find(d, DOCTOR_NOTE, "jobctl node undrain NODE",
			"this node is drained and starts no new runs");
	if (json_number_value(json_object_get(cluster, "overdue")) >= OVERDUE_SECONDS)
		doctor_find(d, DOCTOR_WARNING, "jobctl nodes", "a slot that this node plans was due %.0f s ago and is not planned",
			json_number_value(json_object_get(cluster, "overdue")));
	check_nodes(d);
}

void doctor_check_freeze(struct doctor *d)
{
	const json_t *frozen = json_object_get(d->status, "frozen");
	json_auto_t *answer = NULL;
	size_t n;

	if (frozen && !json_is_null(frozen))
		doctor_find(d, DOCTOR_WARNING, "jobctl thaw", "starting is frozen by an administrator%s%s",
			member_text(frozen, "reason") ? ": " : "",
			member_text(frozen, "reason") ? member_text(frozen, "reason") : "");
	if (!api_call(d->c, "GET", "/v1/pauses", NULL, &answer, NULL))
		return;
	n = json_array_size(json_object_get(answer, "pauses"));
	if (n > 0 && (!frozen || json_is_null(frozen)))
		doctor_find(d, DOCTOR_NOTE, "jobctl status", "%zu pauses of several jobs are in effect", n);
}

void doctor_check_jobs(struct doctor *d)
{
	const json_t *jobs = json_object_get(d->status, "jobs");

	if (member_int(jobs, "suspended") > 0)
		doctor_find(d, DOCTOR_WARNING, "jobctl list --state suspended",
			"jobs are suspended because they cannot run: %" PRId64, member_int(jobs, "suspended"));
	if (member_int(jobs, "paused") > 0)
		doctor_find(d, DOCTOR_NOTE, "jobctl list --state paused", "paused jobs: %" PRId64,
			member_int(jobs, "paused"));
	if (member_int(d->status, "backlog") > member_int(d->status, "max_running"))
		doctor_find(d, DOCTOR_WARNING, "jobctl runs --state queued",
			"%" PRId64 " due runs wait for a free place", member_int(d->status, "backlog"));
}

void doctor_check_dead(struct doctor *d)
{
	json_auto_t *answer = NULL;

	if (api_call(d->c, "GET", "/v1/dead?limit=1", NULL, &answer, NULL) &&
		json_array_size(json_object_get(answer, "runs")) > 0)
		doctor_find(d, DOCTOR_WARNING, "jobctl dead list", "there are dead letters: runs that failed for good");
}

void doctor_check_notices(struct doctor *d)
{
	int64_t failed = member_int(json_object_get(d->status, "notices"), "failed");

	if (failed > 0)
		doctor_find(d, DOCTOR_WARNING, "jobctl notices list --failed",
			"%" PRId64 " notices could not be sent", failed);
}

/* ---- mail ---- */

static bool needs_mail(const json_t *row, void *arg)
{
	bool *found = arg;
	const json_t *channel;
	size_t i;

	json_array_foreach(json_object_get(row, "notify"), i, channel)
		*found |= json_is_string(channel) && text_starts(json_string_value(channel), "mail:");
	return !*found;
}

void doctor_check_mail(struct doctor *d)
{
	AUTO_TEXT program = doctor_config(d, "sendmail");
	AUTO_TEXT crontabs = doctor_config(d, "crontabs");
	bool needed = crontabs && strcmp(crontabs, "on") == 0;
	struct pages pages = {.path = "/v1/jobs?state=active,paused", .member = "jobs", .row = needs_mail,
		.arg = &needed, .limit = MAIL_JOBS};

	if (!needed)
		api_pages(d->c, &pages, NULL);
	free(pages.next_cursor);
	if (!needed)
		doctor_skip(d, "no job sends mail");
	else if (access(program ? program : "/usr/sbin/sendmail", X_OK) < 0)
		doctor_find(d, DOCTOR_WARNING, doctor_install("postfix"),
			"jobs send mail, and there is no program '%s' (key 'sendmail' of jobschedd.conf)",
			program ? program : "/usr/sbin/sendmail");
}

void doctor_check_crontabs(struct doctor *d)
{
	json_auto_t *answer = NULL;
	const char *cron, *problem, *wanted;

	if (!api_call(d->c, "GET", "/v1/crontabs", NULL, &answer, NULL))
		return;
	cron = member_text(answer, "cron");
	problem = member_text(answer, "problem");
	wanted = member_text(answer, "configured");
	if (text_equal(member_text(answer, "mode"), "off")) {
		if (problem && wanted && strcmp(wanted, "off") != 0)
			doctor_find(d, DOCTOR_ERROR, "jobctl import crontab --system --dry-run",
				"'crontabs = %s' has no effect: %s", wanted, problem);
		else
			doctor_skip(d, "crontabs = off");
		return;
	}
	if (problem)
		doctor_find(d, DOCTOR_ERROR, "jobctl status", "the crontabs cannot be read: %s", problem);
	if (text_equal(member_text(answer, "mode"), "on") && json_is_true(json_object_get(answer, "held")))
		doctor_find(d, DOCTOR_WARNING, "jobctl cron takeover",
			"the jobs of crontabs are held, because another cron daemon runs%s%s", cron ? ": " : "",
			cron ? cron : "");
}
