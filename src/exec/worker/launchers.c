/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes starts to the launchers in order; replaces blocked launchers. */
#include "exec/worker/launchers.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/launch_request.h"
#include "exec/child/sandbox.h"
#include "exec/proto/epoll_source.h"
#include "exec/worker/orphans.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define READY_MAX 3     /* launchers that are not blocked */
#define UID_READY_MAX 2 /* of these, for one uid; one stays free for other users */
#define UID_BLOCKED_MAX 8  /* blocked starts of one uid; more are refused */
#define CREATE_TIMEOUT (10 * USEC_SEC) /* until the process of the worker exists */

struct launcher {
	struct launchers *all;
	pid_t pid;
	struct epoll_source socket, exit;  /* exit: pidfd */
	struct launch_arena *arena;
	struct launcher_start *start; /* NULL: idle, or its start was cancelled or abandoned */
	bool busy;
	bool discard;                /* the processes that it creates are killed */
	struct launcher *next;
};

struct launcher_start {
	struct launchers *all;
	uid_t uid;
	launch_fn *fn;
	void *arg;
	struct launcher *by;         /* NULL: it waits for a launcher */
	bool blocked;
	usec_t began;                /* boottime when the launcher got it */
	struct deadline deadline;    /* of the next start_check() */
	struct buf request;          /* while it waits */
	struct launch_fds fds;       /* while it waits; owned */
	struct launcher_start *next;
};

static void launcher_start_free(struct launcher_start *l)
{
	deadline_clear(&l->all->deadlines, &l->deadline);
	if (l->request.data)
		explicit_bzero(l->request.data, l->request.len);
	buf_done(&l->request);
	while (l->fds.n > 0)
		close(l->fds.v[--l->fds.n]);
	if (l->by)
		l->by->start = NULL;
	free(l);
}

/* ---- launchers ---- */

/* Pending events of this loop iteration may still point to it, so its memory is freed later. A scan reaps its process. */
static void launcher_close(struct launcher *l)
{
	struct launcher **at = &l->all->first;

	l->all->workers->scan_wanted = true;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	epoll_source_close(&l->socket);
	epoll_source_close(&l->exit);
	if (l->arena)
		munmap(l->arena, LAUNCH_ARENA_SIZE);
	l->arena = NULL;
	l->next = l->all->dead;
	l->all->dead = l;
}

static void dead_launchers_free(struct launchers *ls)
{
	for (struct launcher *l; (l = ls->dead);) {
		ls->dead = l->next;
		free(l);
	}
}

/*
 * launch_request.h has the numbers of its descriptors. The socket replaces descriptors that do not
 * exist.
 */
static int launcher_spawn(const struct launchers *ls, int socket, int arena, pid_t *ret)
{
	const struct sandbox_set *s = ls->sandboxes;
	const int from[LAUNCHER_FDS] = {[LAUNCHER_SOCKET] = socket,
		[LAUNCHER_ARENA] = arena,
		[LAUNCHER_SETTINGS] = ls->settings,
		[LAUNCHER_RULESET] = s->ruleset,
		[LAUNCHER_NETWORK] = s->network,
		[LAUNCHER_INIT] = s->init,
		[LAUNCHER_SELF] = s->self};
	char *const argv[] = {(char *)"jobsched-spawner", (char *)"--launch", NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	int r, above = LAUNCHER_FDS;

	for (int i = LAUNCHER_SOCKET; i < LAUNCHER_FDS; i++)
		above = from[i] >= above ? from[i] + 1 : above;
	posix_spawn_file_actions_init(&files);
	/* copied above all targets first: one may have the number of another's target */
	for (int i = LAUNCHER_SOCKET; i < LAUNCHER_FDS; i++)
		posix_spawn_file_actions_adddup2(
			&files, from[i] >= 0 ? from[i] : socket, above + i);
	for (int i = LAUNCHER_SOCKET; i < LAUNCHER_FDS; i++)
		posix_spawn_file_actions_adddup2(&files, above + i, i);
	posix_spawn_file_actions_addclosefrom_np(&files, LAUNCHER_FDS);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	r = posix_spawn(ret, io_own_program(program), &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static void on_launcher_answer(struct epoll_source *s, uint32_t events);
static void on_launcher_exit(struct epoll_source *s, uint32_t events);

static int launcher_open_fds(struct launcher *l, int *ret_socket, int *ret_arena)
{
	int pair[2];

	*ret_arena = memfd_create("jobsched-launch", MFD_CLOEXEC);
	if (*ret_arena < 0 || ftruncate(*ret_arena, (off_t)LAUNCH_ARENA_SIZE) < 0)
		return -errno;
	l->arena = mmap(NULL, LAUNCH_ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_arena, 0);
	if (l->arena == MAP_FAILED) {
		l->arena = NULL;
		return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	l->socket.fd = pair[0];
	*ret_socket = pair[1];
	return io_set_nonblock(pair[0]);
}

static int launcher_new(struct launchers *ls, struct launcher **ret)
{
	struct launcher *l = xcalloc(1, sizeof(*l));
	AUTO_FD socket = -1;
	AUTO_FD arena = -1;
	int r;

	*l = (struct launcher){.all = ls,
		.socket = {-1, on_launcher_answer},
		.exit = {-1, on_launcher_exit},
		.next = ls->first};
	ls->first = l;
	if (ls->settings < 0)
		ls->settings = launch_request_settings_make(ls->sandboxes);
	r = ls->settings < 0 ? ls->settings : launcher_open_fds(l, &socket, &arena);
	if (r == 0)
		r = launcher_spawn(ls, socket, arena, &l->pid);
	if (r == 0) {
		orphans_add_helper(ls->workers, l->pid);
		l->exit.fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
		if (l->exit.fd < 0 ||
			epoll_source_watch(ls->ep, &l->exit, EPOLL_CTL_ADD, EPOLLIN) < 0 ||
			epoll_source_watch(ls->ep, &l->socket, EPOLL_CTL_ADD, EPOLLIN) < 0)
			r = -errno;
	}
	if (r < 0) {
		launcher_close(l); /* the closed socket ends the process */
		return r;
	}
	*ret = l;
	return 0;
}

/* An idle or new launcher. NULL and *ret_error 0: all are busy. */
static struct launcher *launcher_find_idle(struct launchers *ls, uid_t uid, int *ret_error)
{
	size_t ready = 0, of_uid = 0;
	struct launcher *idle = NULL;

	*ret_error = 0;
	for (struct launcher *l = ls->first; l; l = l->next) {
		if (l->busy && (!l->start || l->start->blocked))
			continue;
		ready++;
		of_uid += l->busy && l->start->uid == uid;
		if (!l->busy)
			idle = l;
	}
	if (of_uid >= UID_READY_MAX)
		return NULL;
	if (!idle && ready < READY_MAX)
		*ret_error = launcher_new(ls, &idle);
	return idle;
}

static size_t blocked_starts_of(const struct launchers *ls, uid_t uid)
{
	size_t n = 0;

	for (const struct launcher *l = ls->first; l; l = l->next)
		n += l->start && l->start->blocked && l->start->uid == uid;
	return n;
}

/* ---- starts ---- */

static int launcher_submit(struct launcher *by, struct launcher_start *l, const struct buf *request,
	const struct launch_fds *fds)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int) * LAUNCH_FDS_MAX)] = {};
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * fds->n)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int) * fds->n)};
	memcpy(CMSG_DATA(c), fds->v, sizeof(int) * fds->n);
	by->arena->report = (struct child_report){.stage = -1};
	memcpy(by->arena->request, request->data, request->len);
	by->arena->len = request->len;
	if (sendmsg(by->socket.fd, &m, MSG_NOSIGNAL) != 1)
		return -errno;
	by->busy = true;
	by->start = l;
	l->by = by;
	l->began = clock_boot(&clock_system);
	deadline_set(&l->all->deadlines, &l->deadline, l->began + LAUNCH_BLOCKED_AFTER);
	return 0;
}

static int queue_add(struct launchers *ls, struct launcher_start *l, struct buf *request,
	const struct launch_fds *fds)
{
	l->request = *request;
	*request = (struct buf){};
	for (size_t i = 0; i < fds->n; i++) {
		int fd = fcntl(fds->v[i], F_DUPFD_CLOEXEC, 3);

		if (fd < 0)
			return -errno;
		l->fds.v[l->fds.n++] = fd;
	}
	*ls->queue_end = l;
	ls->queue_end = &l->next;
	return 0;
}

static void queue_remove(struct launchers *ls, struct launcher_start **at)
{
	struct launcher_start *l = *at;

	*at = l->next;
	if (!*at)
		ls->queue_end = at;
	l->next = NULL;
}

int launchers_start(struct launchers *ls, uid_t uid, const struct child_plan *p, launch_fn *fn,
	void *arg, struct launcher_start **ret)
{
	struct launcher_start *l = xcalloc(1, sizeof(*l));
	AUTO_DONE(buf) request = {};
	struct launch_fds fds;
	struct launcher *by;
	int r = 0;

	*l = (struct launcher_start){.all = ls, .uid = uid, .fn = fn, .arg = arg};
	launch_request_encode(p, &request, &fds);
	if (request.len > LAUNCH_REQUEST_MAX)
		r = -E2BIG;
	else if (blocked_starts_of(ls, uid) >= UID_BLOCKED_MAX)
		r = -EBUSY;
	by = r == 0 ? launcher_find_idle(ls, uid, &r) : NULL;
	if (by)
		r = launcher_submit(by, l, &request, &fds);
	else if (r == 0)
		r = queue_add(ls, l, &request, &fds);
	if (request.data)
		explicit_bzero(request.data, request.len);
	if (r < 0) {
		launcher_start_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* Gives waiting starts to idle launchers. A start that cannot be submitted is lost. */
static void queue_dispatch(struct launchers *ls)
{
	static const struct child_report none;

	for (struct launcher_start **at = &ls->queue; *at;) {
		struct launcher_start *l = *at;
		int r = blocked_starts_of(ls, l->uid) >= UID_BLOCKED_MAX ? -EBUSY : 0;
		struct launcher *by = r == 0 ? launcher_find_idle(ls, l->uid, &r) : NULL;

		if (!by && r == 0) {
			at = &l->next;
			continue;
		}
		queue_remove(ls, at);
		if (by)
			r = launcher_submit(by, l, &l->request, &l->fds);
		explicit_bzero(l->request.data, l->request.len);
		buf_done(&l->request);
		while (l->fds.n > 0)
			close(l->fds.v[--l->fds.n]);
		if (r < 0) {
			l->fn(LAUNCH_LOST, &none, l->arg);
			launcher_start_free(l);
			at = &ls->queue; /* fn may have changed the queue */
		}
	}
}

/* The processes are unreaped children of the spawner, so their pids are not reused. */
static void report_kill_processes(const struct child_report *report)
{
	const pid_t pids[] = {report->pid, report->worker, report->pidns_init};

	for (size_t i = 0; i < ELEMENTS(pids); i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

static void report_discard(struct launchers *ls, const struct child_report *report)
{
	const pid_t pids[] = {report->pid, report->worker, report->pidns_init};

	report_kill_processes(report);
	for (size_t i = 0; i < ELEMENTS(pids); i++)
		if (pids[i] > 0)
			orphans_add_helper(ls->workers, pids[i]);
}

/* The start is done; its launcher is idle again, or has exited. */
static void launcher_finish(struct launcher *by, enum launch_event event)
{
	struct child_report report = by->arena->report;
	struct launcher_start *l = by->start;

	explicit_bzero(by->arena->request, by->arena->len);
	by->arena->report = (struct child_report){.stage = -1};
	by->arena->len = 0;
	by->busy = false;
	by->start = NULL;
	if (by->discard) {
		report_discard(by->all, &report);
		report = by->arena->report;
	}
	if (!l || l->blocked)
		by->all->workers->scan_wanted = true; /* see launchers_expect() */
	if (!l)
		return;
	l->by = NULL;
	l->fn(event, &report, l->arg);
	launcher_start_free(l);
}

static void on_launcher_answer(struct epoll_source *s, uint32_t events)
{
	struct launcher *l = CONTAINER_OF(s, struct launcher, socket);
	char byte;

	(void)events;
	if (s->fd < 0 || recv(s->fd, &byte, 1, 0) != 1)
		return; /* the exit of a launcher is reported by its pidfd */
	if (l->start && l->discard)
		return; /* it answered before SIGKILL arrived; its exit follows */
	launcher_finish(l, LAUNCH_DONE);
	queue_dispatch(l->all);
}

static void on_launcher_exit(struct epoll_source *s, uint32_t events)
{
	struct launcher *l = CONTAINER_OF(s, struct launcher, exit);
	struct launchers *ls = l->all;

	(void)events;
	if (s->fd < 0)
		return;
	if (l->busy && !l->discard)
		log_warning("launcher %d exited during a start", (int)l->pid);
	if (l->busy)
		launcher_finish(l, LAUNCH_LOST);
	launcher_close(l);
	queue_dispatch(ls);
}

static void launcher_kill(struct launcher *by)
{
	by->discard = true;
	syscall(SYS_pidfd_send_signal, by->exit.fd, SIGKILL, NULL, 0);
	report_kill_processes(&by->arena->report);
}

static void queue_remove_start(struct launcher_start *l)
{
	struct launcher_start **at = &l->all->queue;

	while (*at != l)
		at = &(*at)->next;
	queue_remove(l->all, at);
}

void launcher_start_kill(struct launcher_start *l)
{
	static const struct child_report none;

	if (l->by) {
		launcher_kill(l->by);
		return;
	}
	queue_remove_start(l);
	l->fn(LAUNCH_LOST, &none, l->arg);
	launcher_start_free(l);
}

void launcher_start_cancel(struct launcher_start *l)
{
	if (l->by)
		launcher_kill(l->by);
	else
		queue_remove_start(l);
	launcher_start_free(l);
}

void launcher_start_abandon(struct launcher_start *l)
{
	launcher_start_free(l);
}

const struct child_report *launcher_start_report(const struct launcher_start *l)
{
	return l->by ? &l->by->arena->report : NULL;
}

bool launchers_expect(const struct launchers *ls, pid_t pid)
{
	for (const struct launcher *l = ls->first; l; l = l->next)
		if (l->pid == pid)
			return true;
		else if (l->busy &&
			(l->arena->report.pid == pid || l->arena->report.worker == pid ||
				l->arena->report.pidns_init == pid))
			return true;
	return false;
}

/* ---- the loop ---- */

void launchers_init(struct launchers *ls, int ep, struct workers *ws)
{
	*ls = (struct launchers){.ep = ep, .workers = ws, .settings = -1};
	ls->queue_end = &ls->queue;
}

void launchers_done(struct launchers *ls)
{
	while (ls->queue)
		launcher_start_cancel(ls->queue);
	while (ls->first) {
		if (ls->first->start)
			launcher_start_free(ls->first->start);
		launcher_close(ls->first);
	}
	dead_launchers_free(ls);
	deadlines_done(&ls->deadlines);
	if (ls->settings >= 0)
		close(ls->settings);
	ls->settings = -1;
}

/*
 * The start takes long. It is blocked once its worker exists. With a PID namespace that is after
 * the mounts.
 */
static void start_check(struct launcher_start *l, usec_t now)
{
	const struct child_report report = l->by->arena->report;

	if (l->by->discard)
		return;
	l->blocked = report.pid > 0;
	if ((report.pidns_helper ? report.worker : report.pid) > 0) {
		l->fn(LAUNCH_BLOCKED, &report, l->arg);
		return;
	}
	if (now > l->began + CREATE_TIMEOUT)
		launcher_kill(l->by);
	else
		deadline_set(&l->all->deadlines, &l->deadline, now + LAUNCH_BLOCKED_AFTER);
}

void launchers_run_due(struct launchers *ls, usec_t now)
{
	struct deadline *d;
	bool looked = false;

	while ((d = deadlines_take(&ls->deadlines, now))) {
		start_check(CONTAINER_OF(d, struct launcher_start, deadline), now);
		looked = true;
	}
	if (looked)
		queue_dispatch(ls);
	dead_launchers_free(ls);
}

usec_t launchers_next_due(const struct launchers *ls)
{
	return deadlines_next(&ls->deadlines);
}

void launchers_warm(struct launchers *ls)
{
	struct launcher *l;
	int r = ls->first ? 0 : launcher_new(ls, &l);

	if (r < 0)
		log_warning("could not start a launcher, retrying with the next start: %s",
			strerror(-r));
}

bool launchers_spare(const struct launchers *ls)
{
	size_t idle = 0;

	for (const struct launcher *l = ls->first; l; l = l->next)
		idle += !l->busy;
	return idle > 1;
}

void launchers_trim(struct launchers *ls)
{
	struct launcher *l = ls->first, *next;

	for (bool kept = false; l; l = next) {
		next = l->next;
		if (!l->busy && kept)
			launcher_close(l);
		else
			kept |= !l->busy;
	}
}

static bool launcher_is_awaited(const struct launcher *l)
{
	return l->busy && ((l->start && !l->start->blocked) || l->discard);
}

/*
 * After the timeout. A process that exists may call exec() at any moment, so its start counts as
 * blocked, that is, as started.
 */
static void starts_mark_blocked(struct launchers *ls)
{
	for (struct launcher *l = ls->first; l; l = l->next)
		if (l->start && !l->start->blocked && !l->arena->report.error)
			start_check(l->start, clock_boot(&clock_system));
}

void launchers_settle(struct launchers *ls, usec_t timeout)
{
	const usec_t until = clock_boot(&clock_system) + timeout;

	for (usec_t now; (now = clock_boot(&clock_system)) < until;) {
		struct launcher *l = ls->first;
		struct pollfd of[2];

		while (l && !launcher_is_awaited(l))
			l = l->next;
		if (!l)
			return;
		of[0] = (struct pollfd){.fd = l->socket.fd, .events = POLLIN};
		of[1] = (struct pollfd){.fd = l->exit.fd, .events = POLLIN};
		poll(of, ELEMENTS(of), (int)((until - now) / USEC_MSEC) + 1);
		if (of[0].revents)
			on_launcher_answer(&l->socket, 0);
		if (of[1].revents)
			on_launcher_exit(&l->exit, 0);
	}
	starts_mark_blocked(ls);
}
