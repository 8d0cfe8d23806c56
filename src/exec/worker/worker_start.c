/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a worker: from an admitted order to a process that is watched, or to the reason why there is none. */
#include "exec/worker/worker.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/child.h"
#include "exec/worker/environment.h"
#include "exec/proto/frame.h"
#include "exec/child/sandbox.h"
#include "exec/worker/pam_session.h"
#include "exec/worker/setuid_hint.h"
#include "exec/spawner/reexec_state.h"
#include "exec/worker/artifact_mount.h"
#include "exec/child/user.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void worker_start_give_up(struct worker *w, enum start_failure reason, const char *why)
{
	if (w->launch)
		worker_launch_give_up(w, reason, why);
	else
		worker_session_give_up(w, reason, why);
}

void worker_start_failed(struct worker *w, enum start_failure reason, char *why /* moved */)
{
	w->phase = WORKER_NOT_STARTED;
	epoll_source_close(&w->session);
	cgroup_release(w->all->groups, &w->group);
	w->reason = reason;
	free(w->error);
	w->error = why;
	w->news |= REPORT_NOT_STARTED;
}

enum start_failure worker_start_failure(int errnum)
{
	return child_error_transient(errnum) ? START_TRANSIENT : START_ERROR;
}

struct worker *worker_start_refuse(struct workers *ws, const struct frame_start *s, enum start_failure reason,
	const char *why)
{
	struct worker *w = worker_new(ws, s);

	worker_start_failed(w, reason, xstrdup(why));
	return w;
}

/* Without these we would not learn of its output and end: it must not run then. */
static void worker_watch(struct worker *w)
{
	if (epoll_source_watch(w->all->ep, &w->exit, EPOLL_CTL_ADD, EPOLLIN) == 0 &&
		epoll_source_watch(w->all->ep, &w->out, EPOLL_CTL_ADD, EPOLLIN) == 0)
		return;
	kill(-w->pid, SIGKILL);
	kill(w->pid, SIGKILL);
	if (w->group.dir >= 0)
		cgroup_kill(&w->group);
	orphans_add_helper(w->all, w->pid);
	worker_start_failed(w, START_TRANSIENT, xstrdup("could not watch the process: too many descriptors are watched"));
	w->news = REPORT_NOT_STARTED;
	map_take(&w->all->by_pid, w->pid);
	w->all->running--;
	epoll_source_close(&w->exit);
}

/* It counts as running already. */
void worker_start_done(struct worker *w, const struct child *c)
{
	w->pid = c->pid;
	w->exit.fd = c->pidfd;
	w->phase = WORKER_RUNNING;
	free(map_take(&w->all->adopted, w->pid)); /* of one that was seen before we knew */
	map_put(&w->all->by_pid, w->pid, w);
	if (c->keeper) /* it cannot say yet whose it is: its program has not begun */
		orphans_add(w->all, &(struct reexec_state_orphan){.pid = c->keeper, .run = w->run, .fence = w->fence});
	w->news |= REPORT_STARTED;
	worker_watch(w);
	if (w->timeout && w->phase == WORKER_RUNNING)
		deadline_set(&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + w->timeout);
}

/* Which words are run: the order's own, or a command of its notices by the shell. */
static char *const *command_argv(const struct worker_start *s, char *shell[4])
{
	const struct exec_spec *o = &s->payload->spec;

	if (s->frame->part == 0)
		return o->argv.v;
	shell[0] = (char *)"/bin/sh";
	shell[1] = (char *)"-c";
	shell[2] = o->notices.v[s->frame->part - 1];
	shell[3] = NULL;
	return shell;
}

/* Where its artifact is, and the mount that gets it there, if it takes one. */
static bool start_artifact_prepare(const struct workers *ws, int artifact, char **ret_place, int *ret_mount, struct err *e)
{
	if (artifact < 0)
		return true;
	if (!ws->artifact_place)
		return artifact_mount_path(artifact, ret_place, e);
	*ret_place = xstrdup(ws->artifact_place);
	return artifact_mount_create(artifact, ret_mount, e);
}

static bool start_secrets_prepare(struct worker *w, const struct worker_start *s, struct secrets_files *ret)
{
	int r = s->secrets ? secrets_files_make(ret, s->secrets, w->all->change_user ? s->user : NULL) : 0;

	if (r < 0)
		worker_start_failed(w, START_TRANSIENT, xprintf("could not hand over the secrets: %s", strerror(-r)));
	else if (s->secrets)
		output_filter_set_secrets(&w->output_filter, s->secrets);
	return r == 0;
}

/* By a launcher, or by the process of its session. */
static void worker_process_start(struct worker *w, struct child_plan *p, const struct environment_source *from)
{
	__attribute__((cleanup(environment_done))) struct environment vars = {};

	if (w->all->sessions) {
		worker_session_open(w, &(struct pam_session_plan){.run = w->run, .child = p, .environ = from});
		return;
	}
	environment_build(&vars, from);
	p->envp = vars.envp;
	p->path = environment_get(&vars, "PATH");
	worker_launch(w, p);
}

static bool worker_begun(const struct worker *w)
{
	return w->phase == WORKER_RUNNING || w->phase == WORKER_OPENING;
}

static void launch(struct worker *w, const struct worker_start *s, const struct child_limits *limits, int out)
{
	struct workers *ws = w->all;
	const struct exec_spec *o = &s->payload->spec;
	const char *cwd = s->frame->part == 0 ? o->cwd : NULL;
	const struct fences *fences;
	struct child_plan plan;
	AUTO_TEXT place = NULL;
	AUTO_FD mount = -1;
	AUTO_DONE(secrets_files) secrets = {};
	struct err e = {};
	char *shell[4];

	fences = sandbox_set_find(ws->sandboxes, o->sandbox ? o->sandbox : SANDBOX_PRESET, &e);
	if (!fences) {
		worker_start_failed(w, START_SANDBOX, xstrdup(e.msg));
		return;
	}
	if (!start_secrets_prepare(w, s, &secrets))
		return;
	if (!start_artifact_prepare(ws, s->artifact, &place, &mount, &e)) {
		worker_start_failed(w, START_ARTIFACT, xstrdup(e.msg));
		return;
	}
	plan = (struct child_plan){.user = ws->change_user ? s->user : NULL,
		.argv = command_argv(s, shell), .cwd = cwd ? cwd : s->user->home,
		.cwd_optional = !cwd, .in = s->in >= 0 ? s->in : ws->null,
		.cgroup = w->group.dir >= 0 ? &w->group : NULL, .born = ws->groups->births,
		.artifact = mount, .artifact_place = mount >= 0 ? place : NULL,
		.more = secrets.v, .more_n = secrets.n,
		.out = out, .umask = (mode_t)o->umask, .limits = limits,
		.parent = getpid(), .fences = fences, .home = s->user->home};
	worker_process_start(w, &plan, &(struct environment_source){.user = s->user, .payload = s->payload, .start = s->frame,
		.artifact = place, .lang = ws->lang, .spawner = ws->spawner});
	if (fences->profile.part[SANDBOX_PRIVILEGES] && s->user->uid != 0) {
		w->words = setuid_hint_words(plan.argv);
		w->profile = fences->profile.name;
	}
	if (fences->reduced && worker_begun(w) && !w->error)
		w->error = xprintf("ran without a part of sandbox '%s': %s", fences->profile.name, fences->missing);
}

int worker_start_cgroup(struct workers *ws, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret)
{
	return cgroups_enabled(ws->groups) ? cgroup_acquire(ws->groups, uid, l, ret) : 0;
}

struct worker *worker_start(struct workers *ws, const struct worker_start *s)
{
	struct worker *w = worker_new(ws, s->frame);
	AUTO_FD out = -1;
	__attribute__((cleanup(worker_limits_done))) struct worker_limits limits = {};
	struct err e = {};
	int pipe[2], r = 0;

	if (!worker_limits(ws, &s->payload->spec, &limits, &e)) {
		worker_start_failed(w, START_LIMIT, xstrdup(e.msg));
		return w;
	}
	if (pipe2(pipe, O_CLOEXEC) < 0) {
		worker_start_failed(w, worker_start_failure(errno), xprintf("could not make a pipe: %s", strerror(errno)));
		return w;
	}
	w->out.fd = pipe[0];
	out = pipe[1];
	io_set_nonblock(w->out.fd);
	output_file_remove(ws->output_dir, w->run, w->attempt, NULL); /* of another store */
	if (s->group) {
		w->group = *s->group;
		*s->group = (struct cgroup){.dir = -1, .events.fd = -1};
	} else {
		r = worker_start_cgroup(ws, s->user->uid, &limits.group, &w->group);
	}
	if (r < 0) {
		worker_start_failed(w, START_TRANSIENT, xprintf("could not make its control group: %s", strerror(-r)));
		return w;
	}
	w->timeout = s->frame->timeout;
	launch(w, s, &limits.child, out);
	if (worker_begun(w) && !w->error)
		w->error = STEAL(limits.note);
	return w;
}
