/* SPDX-License-Identifier: Apache-2.0 */
/* Table of the checks, with what they share. */
#include "jobctl/doctor/doctor.h"

#include "base/auto.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_SECONDS 5
#define RUN_OUTPUT (64 * 1024)

const struct doctor_check doctor_checks[] = {
	{"daemon", "the daemon answers", 0, doctor_check_daemon},
	{"units", "the units of systemd run", DOCTOR_SYSTEMD, doctor_check_units},
	{"versions", "all programs have the same version", 0, doctor_check_versions},
	{"spawner", "the spawner runs", DOCTOR_DAEMON, doctor_check_spawner},
	{"net", "jobsched-net runs", DOCTOR_DAEMON | DOCTOR_SYSTEM, doctor_check_net},
	{"calls", "jobs that are calls can be sent", DOCTOR_DAEMON, doctor_check_calls},
	{"config", "the configuration is valid", 0, doctor_check_config},
	{"permissions", "directories and configuration are protected", 0, doctor_check_permissions},
	{"store", "the store is reachable and not full", 0, doctor_check_store},
	{"integrity", "the content of the store is consistent", DOCTOR_DAEMON, doctor_check_integrity},
	{"archive", "the archive can be read", DOCTOR_DAEMON, doctor_check_archive},
	{"disk", "there is free disk space", 0, doctor_check_disk},
	{"clock", "the clock is synchronised", 0, doctor_check_clock},
	{"zoneinfo", "time zones can be read", 0, doctor_check_zoneinfo},
	{"cgroup", "limits of jobs can be enforced", 0, doctor_check_cgroup},
	{"cluster", "nodes are alive and their clocks agree", DOCTOR_DAEMON, doctor_check_cluster},
	{"freeze", "starting is not frozen", DOCTOR_DAEMON, doctor_check_freeze},
	{"jobs", "no job is suspended or overdue", DOCTOR_DAEMON, doctor_check_jobs},
	{"dead", "there are no dead letters", DOCTOR_DAEMON, doctor_check_dead},
	{"notices", "notices could be sent", DOCTOR_DAEMON, doctor_check_notices},
	{"mail", "mail can be sent if jobs need it", DOCTOR_DAEMON, doctor_check_mail},
	{"crontabs", "crontabs are run by one program only", DOCTOR_DAEMON | DOCTOR_SYSTEM,
		doctor_check_crontabs},
	{"warrants", "root's jobs need a warrant", DOCTOR_SYSTEM, doctor_check_warrants},
	{"linger", "the daemon survives a logout", DOCTOR_USER | DOCTOR_SYSTEMD, doctor_check_linger},
	{"certificates", "certificates have not expired", 0, doctor_check_certificates},
	{},
};

/* ---- findings ---- */

const char *doctor_severity_name(enum doctor_severity s)
{
	static const char *const names[DOCTOR_SEVERITY_MAX] = {
		[DOCTOR_NOTE] = "note", [DOCTOR_WARNING] = "warning", [DOCTOR_ERROR] = "error"};

	return names[s];
}

void doctor_find(struct doctor *d, enum doctor_severity severity, const char *command,
	const char *fmt, ...)
{
	AUTO_TEXT text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvprintf(fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	json_array_append_new(d->findings,
		json_pack("{s:s, s:s+, s:s+}", "severity", doctor_severity_name(severity), "message", text,
			"", "command", command, ""));
}

void doctor_skip(struct doctor *d, const char *why)
{
	free(d->skipped);
	d->skipped = xstrdup(why);
}

/* ---- programs ---- */

static long seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long)t.tv_sec;
}

/* Reads until the end, the limit or the deadline; false: the deadline has passed. */
static bool read_bounded(int fd, struct buf *out)
{
	long deadline = seconds_now() + RUN_SECONDS;
	char part[4096];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		long left = deadline - seconds_now();
		ssize_t n;

		if (left <= 0 || (poll(&p, 1, (int)left * 1000) < 0 && errno != EINTR))
			return false;
		if (!p.revents)
			continue;
		n = read(fd, part, sizeof(part));
		if (n <= 0)
			return n == 0;
		if (out->len < RUN_OUTPUT)
			buf_add(out, part, (size_t)n);
	}
}

int doctor_run(const char *const argv[], struct buf *out)
{
	posix_spawn_file_actions_t actions;
	int fds[2], status = 0, r;
	bool ended;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (r != 0) {
		close(fds[0]);
		return -1;
	}
	ended = read_bounded(fds[0], out);
	close(fds[0]);
	if (!ended)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *doctor_install(const char *package)
{
	static const struct {
		const char *package, *apt, *dnf;
	} names[] = {{"jobsched", "apt install jobsched", "dnf install jobsched"},
		{"postfix", "apt install postfix", "dnf install postfix"},
		{"tzdata", "apt install tzdata", "dnf install tzdata"}};

	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (strcmp(names[i].package, package) == 0)
			return access("/usr/bin/dnf", X_OK) == 0 ? names[i].dnf : names[i].apt;
	return package;
}

bool doctor_has_systemd(void)
{
	return access("/run/systemd/system", F_OK) == 0;
}

/* ---- configuration ---- */

/* The directory of the daemon is usually not in PATH of a user. */
const char *doctor_daemon_program(void)
{
	static const char *const installed[] = {"/usr/sbin/jobschedd", "/usr/local/sbin/jobschedd"};

	for (size_t i = 0; i < ELEMENTS(installed); i++)
		if (access(installed[i], X_OK) == 0)
			return installed[i];
	return "jobschedd";
}

/* The daemon reads its configuration in the same way when it starts. */
static void read_config(struct doctor *d)
{
	const char *argv[] = {doctor_daemon_program(), "--print-config", d->system ? NULL : "--user", NULL, NULL, NULL};
	struct buf out = {};

	if (d->c->instance) {
		size_t n = argv[2] ? 3 : 2;

		argv[n] = "--instance";
		argv[n + 1] = d->c->instance;
	}
	if (doctor_run(argv, &out) == 0)
		d->config = out;
	else
		d->config_problem = out;
}

char *doctor_config(const struct doctor *d, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = d->config.data; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, key, len) == 0 && text_starts(line + len, " = "))
			return xstrndup(line + len + 3, strcspn(line + len + 3, "\n"));
	return NULL;
}

/* ---- the installation ---- */

/* The daemon that answers decides; without one, a system installation has precedence. */
static bool is_system(const struct doctor *d)
{
	const char *mode = member_text(d->status, "mode");

	if (mode)
		return strcmp(mode, "user") != 0;
	if (d->c->where != WHERE_ANY)
		return d->c->where == WHERE_SYSTEM;
	return access(JOBSCHED_STATEDIR, F_OK) == 0;
}

bool doctor_open(struct doctor *d, struct ctl *c, struct err *e)
{
	*d = (struct doctor){.c = c};
	api_call(c, "GET", "/v1/status", NULL, &d->status, &d->down);
	d->system = is_system(d);
	if (!paths_find(&(struct paths_options){.user_mode = !d->system, .instance = c->instance},
		    &d->paths, e))
		return false;
	read_config(d);
	return true;
}

void doctor_done(struct doctor *d)
{
	paths_done(&d->paths);
	json_decref(d->status);
	json_decref(d->findings);
	buf_done(&d->config);
	buf_done(&d->config_problem);
	free(d->skipped);
}
