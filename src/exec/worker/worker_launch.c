/* SPDX-License-Identifier: Apache-2.0 */
/* A worker between its launcher and its command. */
#include "base/auto.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/child.h"
#include "exec/child/user.h"
#include "exec/worker/worker.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char *error_text(const struct child_report *word, const char *command, const char *cwd, const char *place)
{
	const char *stage = child_stage_name(word), *cause = strerror(word->error);

	if (strcmp(stage, "exec") == 0)
		return xprintf("could not run '%s': %s", command, cause);
	if (strcmp(stage, "artifact") == 0)
		return xprintf("could not put the artifact at '%s': %s", place, cause);
	if (strcmp(stage, "directory") == 0)
		return xprintf("could not enter directory '%s': %s", cwd, cause);
	if ((strcmp(stage, "mounts") == 0 || strcmp(stage, "landlock") == 0) && word->error == ELOOP)
		return xstrdup("a path of its sandbox profile leads through a symbolic link below the home directory, "
			       "which is not followed: replace the link by a directory");
	return xprintf("could not start a process (%s): %s", stage, cause);
}

char *worker_launch_error(const struct child_report *word, const struct child_plan *p)
{
	return error_text(word, p->argv[0], p->cwd, p->artifact_place);
}

static char *launch_error(const struct worker_launch *l, const struct child_report *word)
{
	return error_text(word, l->command, l->cwd, l->place);
}

void worker_launch_free(struct worker *w)
{
	struct worker_launch *l = STEAL(w->launch);

	if (!l)
		return;
	if (l->of && w->phase == WORKER_OPENING)
		launcher_start_cancel(l->of);
	else if (l->of)
		launcher_start_abandon(l->of); /* its process has been reaped, or will be by its number */
	free(l->user);
	free(l->command);
	free(l->cwd);
	free(l->place);
	free(l);
}

/* Reaps it if it is dead already, which it mostly is. */
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

int worker_launch_adopt(struct workers *ws, const struct child_report *word, struct child *ret)
{
	const pid_t worker = word->host ? word->worker : word->pid;
	int error = word->error, pidfd = -1;

	if (!error && worker <= 0)
		error = EINTR;
	if (!error && (pidfd = (int)syscall(SYS_pidfd_open, worker, 0)) < 0)
		error = errno;
	if (word->host)
		process_reap_or_register(ws, word->pid);
	if (!error) {
		*ret = (struct child){.pid = worker, .pidfd = pidfd, .keeper = word->keeper};
		return 0;
	}
	process_kill_and_register(ws, worker);
	process_kill_and_register(ws, word->keeper);
	return -error;
}

/* The spawner logs each start for another user. */
static void audit_log_start(const struct worker *w, const struct child *c)
{
	const struct worker_launch *l = w->launch;

	if (l->user && l->uid != geteuid())
		log_line(LOG_LEVEL_INFO, &(struct log_about){.run = w->run}, "audit: run %" PRId64 " starts as '%s' (uid %u), pid %d",
			w->run, l->user, (unsigned)l->uid, (int)c->pid);
}

static void started(struct worker *w, const struct child *c)
{
	failpoint_pass(FP_SPAWN_FORKED);
	w->pid = c->pid;
	audit_log_start(w, c);
	worker_start_done(w, c);
	worker_report_queue(w, 0);
}

/* The worker has a process that is not its command yet: it is under its time limit and can be cancelled from now on. */
static void held(struct worker *w, const struct child_report *word)
{
	struct child_report so_far = *word;
	struct child child;

	if (w->phase != WORKER_OPENING || w->launch->given_up)
		return;
	so_far.error = 0;
	if (worker_launch_adopt(w->all, &so_far, &child) < 0)
		return; /* its end comes as LAUNCH_DONE */
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run}, "run %" PRId64 " is held up before its command: by its directory, "
		"its program or its control group", w->run);
	started(w, &child);
}

static void launch_failed(struct worker *w, enum start_failure reason, char *why /* moved */)
{
	w->all->running--;
	if (w->group.dir >= 0 && cgroup_populated(&w->group))
		cgroup_kill(&w->group);
	worker_start_failed(w, reason, why);
	worker_report_queue(w, 0);
}

static void note_cwd(struct worker *w, const struct child_report *word)
{
	if (!word->cwd_error)
		return;
	free(w->error);
	w->error = xprintf("could not enter '%s', ran in '/': %s", w->launch->cwd, strerror(word->cwd_error));
}

static void launch_finished(struct worker *w, enum launch_event news, const struct child_report *word)
{
	struct child child;
	int r;

	if (w->launch->given_up) {
		launch_failed(w, w->reason, STEAL(w->error));
		return;
	}
	r = worker_launch_adopt(w->all, word, &child);
	if (r == 0) {
		note_cwd(w, word);
		started(w, &child);
	} else if (news == LAUNCH_LOST) {
		launch_failed(w, START_TRANSIENT, xstrdup("its process could not be made: the launcher ended, or did not answer within 10 seconds"));
	} else {
		struct child_report failed = *word;

		failed.error = -r;
		launch_failed(w, worker_start_failure(-r), launch_error(w->launch, &failed));
	}
}

void worker_launch_ended(struct worker *w)
{
	const struct child_report *word = w->launch && w->launch->of ? launcher_start_report(w->launch->of) : NULL;

	if (!word || !word->error || w->forced != ATTEMPT_RUNNING)
		return;
	free(w->error);
	w->error = launch_error(w->launch, word);
}

static void on_launch_event(enum launch_event news, const struct child_report *word, void *arg)
{
	struct worker *w = arg;

	if (news == LAUNCH_BLOCKED) {
		held(w, word);
		return;
	}
	w->launch->of = NULL;
	if (w->phase == WORKER_OPENING) {
		launch_finished(w, news, word);
	} else if (w->phase < WORKER_ENDING) { /* it was held, and is its command now, or is about to end */
		note_cwd(w, word);
		if (word->error && w->forced == ATTEMPT_RUNNING) {
			free(w->error);
			w->error = launch_error(w->launch, word);
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
	launcher_start_kill(w->launch->of);
}

static char *launch_error_text(int error)
{
	if (error == EBUSY)
		return xstrdup("other starts of this user are blocked by a directory, a program or a control group; tried again later");
	if (error == E2BIG)
		return xstrdup("its words, variables and paths together are too large");
	return xprintf("could not start a process (clone): %s", strerror(error));
}

void worker_launch(struct worker *w, struct child_plan *p)
{
	struct workers *ws = w->all;
	struct worker_launch *l = xcalloc(1, sizeof(*l));
	int r = -failpoint(FP_SPAWN_FORK);

	*l = (struct worker_launch){.uid = p->user ? p->user->uid : geteuid(), .user = p->user ? xstrdup(p->user->name) : NULL,
		.command = xstrdup(p->argv[0]), .cwd = xstrdup(p->cwd), .place = p->artifact_place ? xstrdup(p->artifact_place) : NULL};
	w->launch = l;
	w->started_at = clock_now(&clock_system); /* when the answer comes, a short command may be over */
	if (r == 0)
		r = launchers_start(&ws->launchers, l->uid, p, on_launch_event, w, &l->of);
	if (r < 0) {
		worker_start_failed(w, r == -EBUSY ? START_TRANSIENT : worker_start_failure(-r), launch_error_text(-r));
		worker_launch_free(w);
		return;
	}
	w->phase = WORKER_OPENING;
	ws->running++;
}
