/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a worker from the request to a launcher until exec(). */
#include "exec/worker/worker_launch.h"
#include "base/auto.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/launch.h"
#include "exec/child/user.h"
#include "exec/worker/launchers.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char *error_text(const struct child_report *report, const char *command, const char *cwd,
	const char *artifact_path)
{
	const char *stage = child_stage_name(report), *cause = strerror(report->error);

	if (strcmp(stage, "exec") == 0)
		return xprintf("could not run '%s': %s", command, cause);
	if (strcmp(stage, "artifact") == 0)
		return xprintf("could not mount the artifact at '%s': %s", artifact_path, cause);
	if (strcmp(stage, "directory") == 0)
		return xprintf("could not enter directory '%s': %s", cwd, cause);
	if ((strcmp(stage, "mounts") == 0 || strcmp(stage, "landlock") == 0) &&
		report->error == ELOOP)
		return xstrdup(
			"a path of its sandbox profile contains a symbolic link below the home directory, "
			"which is not followed: replace the link by a directory");
	return xprintf("could not start a process (%s): %s", stage, cause);
}

char *worker_launch_error(const struct child_report *report, const struct child_plan *p)
{
	return error_text(report, p->argv[0], p->cwd, p->artifact_path);
}

static char *launch_report_error(const struct worker_launch *l, const struct child_report *report)
{
	return error_text(report, l->command, l->cwd, l->artifact_path);
}

void worker_launch_free(struct worker *w)
{
	struct worker_launch *l = STEAL(w->launch);

	if (!l)
		return;
	if (l->start && w->phase == WORKER_OPENING)
		launcher_start_cancel(l->start);
	else if (l->start)
		launcher_start_abandon(l->start); /* its process is reaped by its pid */
	free(l->user);
	free(l->command);
	free(l->cwd);
	free(l->artifact_path);
	free(l);
}

/* The process has usually exited already. Otherwise it is reaped later. */
static void process_reap_or_register(struct workers *ws, pid_t pid)
{
	siginfo_t si = {};

	if (pid > 0 && (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0))
		orphans_add_helper(ws, pid);
}

static void process_kill_and_register(struct workers *ws, pid_t pid)
{
	if (pid > 0)
		kill(pid, SIGKILL);
	process_reap_or_register(ws, pid);
}

int worker_launch_adopt(struct workers *ws, const struct child_report *report, struct child *ret)
{
	const pid_t worker = report->pidns_helper ? report->worker : report->pid;
	int error = report->error, pidfd = -1;

	if (!error && worker <= 0)
		error = EINTR;
	if (!error && (pidfd = (int)syscall(SYS_pidfd_open, worker, 0)) < 0)
		error = errno;
	if (report->pidns_helper)
		process_reap_or_register(ws, report->pid);
	if (!error) {
		*ret = (struct child){
			.pid = worker, .pidfd = pidfd, .pidns_init = report->pidns_init};
		return 0;
	}
	process_kill_and_register(ws, worker);
	process_kill_and_register(ws, report->pidns_init);
	return -error;
}

/* Logs each start for another user. */
static void audit_log_start(const struct worker *w, const struct child *c)
{
	const struct worker_launch *l = w->launch;

	if (l->user && l->uid != w->all->uid)
		log_line(LOG_LEVEL_INFO, &(struct log_about){.run = w->run},
			"audit: run %" PRId64 " starts as '%s' (uid %u), pid %d", w->run, l->user,
			(unsigned)l->uid, (int)c->pid);
}

static void launch_succeeded(struct worker *w, const struct child *c)
{
	failpoint_pass(FP_SPAWN_FORKED);
	w->pid = c->pid;
	audit_log_start(w, c);
	worker_start_done(w, c);
	worker_report_queue(w, 0);
	if (w->launch->end_wanted != ATTEMPT_RUNNING)
		worker_end(w, w->launch->end_wanted);
}

/*
 * The process exists but has not called exec(). From now on the time limit applies, and the run can
 * be cancelled.
 */
static void launch_blocked(struct worker *w, const struct child_report *report)
{
	struct child_report made = *report;
	struct child child;

	if (w->phase != WORKER_OPENING || w->launch->given_up)
		return;
	made.error = 0;
	if (worker_launch_adopt(w->all, &made, &child) < 0)
		return; /* LAUNCH_DONE will report its end */
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
		"run %" PRId64 " is blocked before its command, by its directory, "
		"program or control group",
		w->run);
	launch_succeeded(w, &child);
}

static void launch_failed(struct worker *w, enum start_failure reason, char *why /* moved */)
{
	w->all->running--;
	if (w->group.dir >= 0 && cgroup_populated(&w->group))
		cgroup_kill(&w->group);
	worker_start_failed(w, reason, why);
	worker_report_queue(w, 0);
}

static void note_cwd(struct worker *w, const struct child_report *report)
{
	if (!report->cwd_error)
		return;
	free(w->error);
	w->error = xprintf("could not enter '%s', ran in '/': %s", w->launch->cwd,
		strerror(report->cwd_error));
}

static void launch_finished(
	struct worker *w, enum launch_event event, const struct child_report *report)
{
	struct child child;
	int r;

	if (w->launch->given_up) {
		launch_failed(w, w->reason, STEAL(w->error));
		return;
	}
	r = worker_launch_adopt(w->all, report, &child);
	if (r == 0) {
		note_cwd(w, report);
		launch_succeeded(w, &child);
	} else if (event == LAUNCH_LOST && w->launch->end_wanted != ATTEMPT_RUNNING) {
		launch_failed(w, START_ERROR, xstrdup("ended before it was started"));
	} else if (event == LAUNCH_LOST) {
		launch_failed(w, START_TRANSIENT,
			xstrdup("its process could not be created: the launcher ended, or did not answer within 10 seconds"));
	} else {
		struct child_report failed = *report;

		failed.error = -r;
		launch_failed(w, worker_start_failure(-r), launch_report_error(w->launch, &failed));
	}
}

void worker_launch_ended(struct worker *w)
{
	const struct child_report *report =
		w->launch && w->launch->start ? launcher_start_report(w->launch->start) : NULL;

	if (!report || !report->error || w->forced != ATTEMPT_RUNNING)
		return;
	free(w->error);
	w->error = launch_report_error(w->launch, report);
}

static void on_launch_event(enum launch_event event, const struct child_report *report, void *arg)
{
	struct worker *w = arg;

	if (event == LAUNCH_BLOCKED) {
		launch_blocked(w, report);
		return;
	}
	w->launch->start = NULL;
	if (w->phase == WORKER_OPENING) {
		launch_finished(w, event, report);
	} else if (w->phase < WORKER_ENDING) {
		/* it was blocked, and has now called exec() or is about to exit */
		note_cwd(w, report);
		if (report->error && w->forced == ATTEMPT_RUNNING) {
			free(w->error);
			w->error = launch_report_error(w->launch, report);
		}
	}
	worker_launch_free(w);
}

void worker_launch_give_up(struct worker *w, enum start_failure reason, const char *why)
{
	if (w->launch->given_up)
		return;
	w->launch->given_up = true;
	w->reason = reason;
	free(w->error);
	w->error = xstrdup(why);
	launcher_start_kill(w->launch->start);
}

bool worker_launch_end(struct worker *w, enum attempt_outcome why)
{
	if (!launcher_start_report(w->launch->start))
		return false;
	w->launch->end_wanted = why;
	return true;
}

static char *launch_begin_error(int error)
{
	if (error == EBUSY)
		return xstrdup(
			"other starts of this user are blocked by a directory, program or control group; it is retried later");
	if (error == E2BIG)
		return xstrdup("its arguments, environment and paths together are too large");
	return xprintf("could not start a process (clone): %s", strerror(error));
}

void worker_launch(struct worker *w, struct child_plan *p)
{
	struct workers *ws = w->all;
	struct worker_launch *l = xcalloc(1, sizeof(*l));
	int r = -failpoint(FP_SPAWN_FORK);

	*l = (struct worker_launch){.uid = p->user ? p->user->uid : ws->uid,
		.user = p->user ? xstrdup(p->user->name) : NULL,
		.command = xstrdup(p->argv[0]),
		.cwd = xstrdup(p->cwd),
		.artifact_path = p->artifact_path ? xstrdup(p->artifact_path) : NULL};
	w->launch = l;
	/* a short command may have ended when the launcher answers */
	w->started_at = clock_now(&clock_system);
	if (r == 0)
		r = launchers_start(&ws->launchers, l->uid, p, on_launch_event, w, &l->start);
	if (r < 0) {
		worker_start_failed(w, r == -EBUSY ? START_TRANSIENT : worker_start_failure(-r),
			launch_begin_error(-r));
		worker_launch_free(w);
		return;
	}
	w->phase = WORKER_OPENING;
	ws->running++;
}
