/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a worker from an admitted request, or records why it cannot be started. */
#include "exec/worker/worker_start.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/start/start_failure.h"
#include "exec/child/artifact_mount.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/proto/frame.h"
#include "exec/worker/environment.h"
#include "exec/worker/orphans.h"
#include "exec/worker/pam_session.h"
#include "exec/worker/output/sandbox_hint.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_results.h"
#include "exec/worker/worker_session.h"
#include "exec/worker/worker_state.h"
#include "exec/worker/workers.h"
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
	worker_signs_done(w);
	worker_results_done(w);
	cgroup_release(w->all->groups, &w->group);
	w->reason = reason;
	free(w->error);
	w->error = why;
	w->reports |= REPORT_NOT_STARTED;
}

enum start_failure worker_start_failure(int errnum)
{
	return child_error_transient(errnum) ? START_TRANSIENT : START_ERROR;
}

struct worker *worker_start_refuse(
	struct workers *ws, const struct frame_start *s, enum start_failure reason, const char *why)
{
	struct worker *w = worker_new(ws, s);

	worker_start_failed(w, reason, xstrdup(why));
	return w;
}

/* If its output and exit cannot be watched, the process is killed. */
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
	worker_start_failed(w, START_TRANSIENT,
		xstrdup("could not watch the process: too many descriptors are watched"));
	w->reports = REPORT_NOT_STARTED;
	map_take(&w->all->by_pid, w->pid);
	w->all->running--;
	epoll_source_close(&w->exit);
}

void worker_start_done(struct worker *w, const struct child *c)
{
	w->pid = c->pid;
	w->exit.fd = c->pidfd;
	w->phase = WORKER_RUNNING;
	free(map_take(&w->all->orphans, w->pid)); /* a scan may have found it first */
	map_put(&w->all->by_pid, w->pid, w);
	if (c->pidns_init) /* a scan cannot identify it before it has called exec() */
		orphans_add(w->all,
			&(struct orphan){.pid = c->pidns_init, .run = w->run, .fence = w->fence});
	w->reports |= REPORT_STARTED;
	worker_watch(w);
	if (w->phase == WORKER_RUNNING)
		worker_signs_started(w);
	if (w->timeout && w->phase == WORKER_RUNNING)
		deadline_set(
			&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + w->timeout);
}

/* The command of the job, or a shell for one of its notice commands. */
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

/* The path of the artifact for the worker and, if it has to be mounted there, the mount. */
static bool start_artifact_prepare(
	const struct workers *ws, int artifact, char **ret_path, int *ret_mount, struct err *e)
{
	if (artifact < 0)
		return true;
	if (!ws->artifact_path)
		return artifact_mount_path(artifact, ret_path, e);
	*ret_path = xstrdup(ws->artifact_path);
	return artifact_mount_create(artifact, ret_mount, e);
}

static bool start_secrets_prepare(
	struct worker *w, const struct worker_start *s, struct secrets_files *ret)
{
	int r = s->secrets
		? secrets_files_make(ret, s->secrets, w->all->change_user ? s->user : NULL)
		: 0;

	if (r < 0)
		worker_start_failed(w, START_TRANSIENT,
			xprintf("could not pass the secrets: %s", strerror(-r)));
	else if (s->secrets)
		output_filter_set_secrets(&w->output_filter, s->secrets);
	return r == 0;
}

/* The channels for signs of the command. Commands of notices have none. */
static bool start_signs_prepare(struct worker *w, const struct worker_start *s, struct worker_signs_offer *ret)
{
	int r = s->frame->part == 0 ? worker_signs_offer(w, &s->payload->spec, s->user, ret) : 0;

	if (r < 0)
		worker_start_failed(w, worker_start_failure(-r),
			xprintf("could not create its notify channels: %s", strerror(-r)));
	return r == 0;
}

/* The memory files that the command writes. */
static bool start_files_prepare(struct worker *w, const struct worker_start *s)
{
	int r = s->frame->part == 0 && s->payload->spec.results ? worker_results_offer(w, s->user) : 0;

	if (r == 0 && s->frame->part == 0 && s->payload->spec.gate)
		r = worker_gate_offer(w, s->user);
	if (r < 0)
		worker_start_failed(w, worker_start_failure(-r),
			xprintf("could not create a file for its results: %s", strerror(-r)));
	return r == 0;
}

/* The directory that the attempts of the run share. */
static bool start_state_prepare(struct worker *w, const struct worker_start *s, int *ret)
{
	int r = s->frame->part == 0 && s->payload->spec.checkpoint ? worker_state_open(w, s->user, ret) : 0;

	if (r == -EBUSY)
		worker_start_failed(w, START_TRANSIENT, xstrdup("the directory of an older run with its number is being removed"));
	else if (r < 0)
		worker_start_failed(w, worker_start_failure(-r),
			xprintf("could not create the directory of its state: %s", strerror(-r)));
	return r == 0;
}

/* The descriptors of the command from 3 on. */
struct extra_fds {
	int v[CHILD_EXTRA_FDS_MAX];
	size_t n;
};

/*
 * Returns the number that the descriptor has in the command; -1: there is none. A script has its text
 * at JOB_SCRIPT_FD, so a descriptor with this number is passed once more with the next one.
 */
static int extra_fd_add(struct extra_fds *x, int fd)
{
	if (fd < 0)
		return -1;
	x->v[x->n++] = fd;
	if (2 + x->n == JOB_SCRIPT_FD)
		x->v[x->n++] = fd;
	return 2 + (int)x->n;
}

/* The descriptors of the command besides its input and output. */
struct channels {
	struct secrets_files secrets;
	struct worker_signs_offer signs;
	int state;            /* owned; -1: none */
	struct extra_fds fds; /* borrowed from the others and from the worker */
	int results_fd, gate_fd, state_fd; /* numbers in the command; -1: none */
};

static void channels_done(struct channels *c)
{
	secrets_files_done(&c->secrets);
	worker_signs_offer_done(&c->signs);
	auto_fd_close(&c->state);
}

/* False: the start has failed. */
static bool channels_prepare(struct worker *w, const struct worker_start *s, struct channels *c)
{
	if (!start_secrets_prepare(w, s, &c->secrets) || !start_signs_prepare(w, s, &c->signs) || !start_files_prepare(w, s) ||
		!start_state_prepare(w, s, &c->state))
		return false;
	memcpy(c->fds.v, c->secrets.v, c->secrets.n * sizeof(c->fds.v[0]));
	c->fds.n = c->secrets.n;
	if (c->signs.pipe >= 0)
		c->fds.v[c->fds.n++] = c->signs.pipe;
	c->results_fd = extra_fd_add(&c->fds, w->results_fd);
	c->gate_fd = extra_fd_add(&c->fds, w->gate_fd);
	c->state_fd = extra_fd_add(&c->fds, c->state);
	return true;
}

/* Creates the process through a launcher or the process of its PAM session. */
static void worker_process_start(
	struct worker *w, struct child_plan *p, const struct environment_source *from)
{
	__attribute__((cleanup(environment_done))) struct environment vars = {};

	if (w->all->sessions) {
		worker_session_open(
			w, &(struct pam_session_plan){.run = w->run, .child = p, .environ = from});
		return;
	}
	environment_build(&vars, from);
	p->envp = vars.envp;
	p->path = environment_get(&vars, "PATH");
	if (p->in == w->all->null)
		p->in = -1; /* the launcher has its own */
	worker_launch(w, p);
}

static bool worker_begun(const struct worker *w)
{
	return w->phase == WORKER_RUNNING || w->phase == WORKER_OPENING;
}

static void worker_plan_start(
	struct worker *w, const struct worker_start *s, const struct child_limits *limits, int out)
{
	struct workers *ws = w->all;
	const struct exec_spec *o = &s->payload->spec;
	const char *cwd = s->frame->part == 0 ? o->cwd : NULL;
	const struct sandbox_prepared *sandbox;
	struct child_plan plan;
	AUTO_TEXT path = NULL;
	AUTO_FD mount = -1;
	AUTO_DONE(channels) with = {.signs.pipe = -1, .state = -1};
	struct err e = {};
	char *shell[4];

	sandbox = sandbox_set_find(ws->sandboxes, o->sandbox ? o->sandbox : SANDBOX_PRESET, &e);
	if (!sandbox) {
		worker_start_failed(w, START_SANDBOX, xstrdup(e.msg));
		return;
	}
	if (!start_artifact_prepare(ws, s->artifact, &path, &mount, &e)) {
		worker_start_failed(w, START_ARTIFACT, xstrdup(e.msg));
		return;
	}
	if (!channels_prepare(w, s, &with))
		return;
	plan = (struct child_plan){.user = ws->change_user ? s->user : NULL,
		.argv = command_argv(s, shell),
		.cwd = cwd ? cwd : s->user->home,
		.cwd_optional = !cwd,
		.in = s->in >= 0 ? s->in : ws->null,
		.cgroup = w->group.dir >= 0 ? &w->group.dir : NULL,
		.cgroup_clone = ws->groups->can_clone_into,
		.artifact = mount,
		.artifact_path = mount >= 0 ? path : NULL,
		.extra_fds = with.fds.v,
		.extra_fds_n = with.fds.n,
		.state = with.state >= 0 ? with.fds.n : 0,
		.out = out,
		.umask = (mode_t)o->umask,
		.limits = limits,
		.parent = ws->pid,
		.sandbox = sandbox,
		.home = s->user->home};
	worker_process_start(w, &plan,
		&(struct environment_source){.user = s->user,
			.payload = s->payload,
			.start = s->frame,
			.artifact = path,
			.lang = ws->lang,
			.notify_fd = with.signs.pipe >= 0 ? 3 + (int)with.secrets.n : -1,
			.notify_socket = with.signs.socket,
			.results_fd = with.results_fd,
			.gate_fd = with.gate_fd,
			.state_fd = with.state_fd,
			.spawner = ws->spawner});
	w->profile = sandbox->profile.name;
	w->filtered = sandbox->profile.part[SANDBOX_CALLS];
	if (sandbox->profile.part[SANDBOX_PRIVILEGES] && s->user->uid != 0)
		w->words = sandbox_hint_words(plan.argv);
	if (sandbox->reduced && worker_begun(w) && !w->error)
		w->error = xprintf("ran without a part of sandbox '%s': %s", sandbox->profile.name,
			sandbox->missing);
}

int worker_start_cgroup(
	struct workers *ws, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret)
{
	return cgroups_enabled(ws->groups) ? cgroup_acquire(ws->groups, uid, l, ret) : 0;
}

/* The spawner reads without waiting; the command writes to an ordinary pipe. */
static bool output_pipe(int ret[2])
{
	if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	if (fcntl(ret[1], F_SETFL, 0) == 0)
		return true;
	close(ret[0]);
	close(ret[1]);
	return false;
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
	if (!output_pipe(pipe)) {
		worker_start_failed(w, worker_start_failure(errno),
			xprintf("could not create a pipe: %s", strerror(errno)));
		return w;
	}
	w->out.fd = pipe[0];
	out = pipe[1];
	/* may exist from another store with the same run number */
	output_file_remove(ws->output_dir, w->run, w->attempt, NULL);
	if (s->group) {
		w->group = *s->group;
		*s->group = (struct cgroup){.dir = -1, .events.fd = -1};
	} else {
		r = worker_start_cgroup(ws, s->user->uid, &limits.group, &w->group);
	}
	if (r < 0) {
		worker_start_failed(w, START_TRANSIENT,
			xprintf("could not create its control group: %s", strerror(-r)));
		return w;
	}
	w->timeout = s->frame->timeout;
	w->leaves = (s->payload->spec.cron || s->payload->spec.leaves) && s->frame->part == 0;
	worker_plan_start(w, s, &limits.child, out);
	if (worker_begun(w) && !w->error)
		w->error = STEAL(limits.note);
	return w;
}
