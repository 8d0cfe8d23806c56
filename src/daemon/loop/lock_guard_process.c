/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the lock guard as a separate program; restarts it when it ends. */
#include "daemon/loop/lock_guard_process.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "store/backend/lock_guard.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

/* After the guard has ended or could not be started. The delay stays short: without the guard lost locks are noticed late. */
#define RESTART_DELAY USEC_SEC

struct lock_guard_process {
	struct lock_guard_process_options o;
	sd_event *ev; /* borrowed */
	sd_event_source *source, *restart_timer;
	pid_t pid; /* 0: none */
	int fd;
	struct backoff backoff;
};

static bool guard_start(struct lock_guard_process *g);

static int on_restart_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lock_guard_process *g = arg;

	(void)source;
	(void)usec;
	g->restart_timer = sd_event_source_unref(g->restart_timer);
	guard_start(g);
	return 0;
}

static void guard_stop(struct lock_guard_process *g)
{
	g->source = sd_event_source_disable_unref(g->source);
	if (g->fd >= 0)
		close(STEAL_FD(g->fd));
	if (g->pid) {
		kill(g->pid, SIGKILL);
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	g->pid = 0;
}

static void guard_restart_later(struct lock_guard_process *g, const char *what, int error)
{
	usec_t now = clock_boot(&clock_system);
	enum log_level level;
	unsigned n;

	guard_stop(g);
	backoff_failed(&g->backoff, now);
	level = backoff_log_level(&g->backoff, now, &n);
	log_line(level, NULL, "%s, trying again in 1 s (failures since the last message: %u)%s%s", what, n, error ? ": " : "",
		error ? strerror(error) : "");
	if (!g->restart_timer)
		sd_event_add_time_relative(g->ev, &g->restart_timer, CLOCK_MONOTONIC,
			(uint64_t)RESTART_DELAY, 0, on_restart_timer, g);
}

static int on_message(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct lock_guard_process *g = arg;
	char message[64] = "";
	ssize_t n = recv(fd, message, sizeof(message) - 1, MSG_DONTWAIT);
	int64_t error;

	(void)source;
	(void)events;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n > 0 && message[0] == GUARD_MISSING)
		g->o.on_missing(g->o.arg);
	else if (n > 0 && message[0] == GUARD_FAILED)
		guard_restart_later(g, "the lock guard could not lock the store",
			text_parse_int(message + 1, 1, 4096, &error) ? (int)error : EIO);
	else if (n <= 0)
		guard_restart_later(g, "the lock guard of the store has ended", 0);
	return 0;
}

/* The guard is executed anew: it has no memory of the daemon, and only two of its descriptors. */
static int guard_spawn(struct lock_guard_process *g, int theirs)
{
	char *const argv[] = {(char *)"jobsched-guard", (char *)GUARD_OPTION, NULL};
	char *const env[] = {NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	sigset_t none;
	int r;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_adddup2(&files, theirs, GUARD_SOCKET);
	posix_spawn_file_actions_adddup2(&files, g->o.shared, GUARD_SHARED);
	posix_spawn_file_actions_addclosefrom_np(&files, GUARD_SHARED + 1);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn(&g->pid, io_own_program(program), &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		g->pid = 0;
	return r;
}

/*
 * Both descriptors are first moved above the numbers that the guard uses, so that dup2() overwrites
 * neither.
 */
static bool guard_start(struct lock_guard_process *g)
{
	AUTO_FD theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		guard_restart_later(
			g, "could not make a socket for the lock guard of the store", errno);
		return false;
	}
	g->fd = pair[0];
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, GUARD_SHARED + 1);
	close(pair[1]);
	r = theirs < 0 ? errno : guard_spawn(g, theirs);
	if (!r && send(g->fd, g->o.where, strlen(g->o.where), MSG_NOSIGNAL) < 0)
		r = errno;
	if (!r)
		r = -sd_event_add_io(g->ev, &g->source, g->fd, EPOLLIN, on_message, g);
	if (r <= 0)
		backoff_connected(&g->backoff, clock_boot(&clock_system));
	else
		guard_restart_later(g, "could not start the lock guard of the store", r);
	return r <= 0;
}

struct lock_guard_process *lock_guard_process_new(struct sd_event *ev,
	const struct lock_guard_process_options *o)
{
	struct lock_guard_process *g = xcalloc(1, sizeof(*g));

	*g = (struct lock_guard_process){.o = *o, .ev = ev, .fd = -1,
		.backoff = {.min = RESTART_DELAY, .max = RESTART_DELAY}};
	g->o.shared = fcntl(o->shared, F_DUPFD_CLOEXEC, GUARD_SHARED + 1);
	guard_start(g);
	return g;
}

void lock_guard_process_free(struct lock_guard_process *g)
{
	if (!g)
		return;
	guard_stop(g);
	sd_event_source_disable_unref(g->restart_timer);
	if (g->o.shared >= 0)
		close(g->o.shared);
	free(g);
}
