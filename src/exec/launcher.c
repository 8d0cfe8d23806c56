/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that launches. */
/*
 * It has a table of descriptors of its own with next to nothing in it, because each child gets a copy: with a
 * thousand workers the spawner's own table has thousands. And because workers are children of this thread, the
 * main thread's children are exactly those that were orphaned: see orphan.c.
 */
#include "exec/launcher.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/packet.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct launcher {
	pthread_t thread;
	bool running;            /* the thread exists */
	int ours, theirs;        /* the two ends; the thread's is a number of its own table */
	struct child_room *room; /* the thread's alone */
};

void launch_free(struct launch *one)
{
	if (!one)
		return;
	payload_done(&one->payload);
	environ_vars_done(&one->vars);
	free(one);
}

static bool launch(struct launcher *l, struct launch *one, int in, int out)
{
	one->plan.in = in;
	one->plan.out = out;
	one->started_at = clock_now(&clock_system); /* when the launch returns, a short command may be over */
	one->result = child_launch(l->room, &one->plan, &one->child, &one->word);
	return one->result == 0;
}

/* A table of our own: standard descriptors, the socket, and /dev/null, which is returned. */
static int settle(int sock)
{
	if (unshare(CLONE_FILES) < 0 || (sock > 3 && close_range(3, (unsigned)sock - 1, 0) < 0) ||
		close_range((unsigned)sock + 1, ~0U, 0) < 0)
		return -errno;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void *launch_all(void *arg)
{
	struct launcher *l = arg;
	int sock = l->theirs, null = settle(sock), fds[PACKET_FDS_MAX];
	struct launch *one = NULL;
	size_t len, n;

	/* the first word says whether we are ready: an empty launch, with a descriptor or not */
	if (packet_send(sock, &one, sizeof(one), &null, null >= 0, 0) < 0 || null < 0)
		return NULL;
	while (packet_recv(sock, &one, sizeof(one), &len, fds, &n, 0) == 0 && len == sizeof(one) && n) {
		bool runs = launch(l, one, n > 1 ? fds[1] : null, fds[0]);
		int pidfd = one->child.pidfd, r;

		packet_fds_close(fds, n);
		r = packet_send(sock, &one, sizeof(one), &pidfd, runs, 0); /* from here on 'one' is not ours */
		if (runs)
			close(pidfd);
		if (r < 0)
			break;
	}
	return NULL;
}

bool launcher_new(struct launcher **ret, struct err *e)
{
	struct launcher *l = xcalloc(1, sizeof(*l));
	int pair[2], fds[PACKET_FDS_MAX], r;
	struct launch *one;
	size_t len, n = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(l);
		return err_errno(e, errno, "could not make a socket for the thread that launches");
	}
	l->ours = pair[0];
	l->theirs = pair[1];
	if (!child_room_new(&l->room, e)) {
		launcher_free(l);
		return false;
	}
	r = pthread_create(&l->thread, NULL, launch_all, l);
	l->running = r == 0;
	if (r == 0)
		r = -packet_recv(l->ours, &one, sizeof(one), &len, fds, &n, 0);
	packet_fds_close(fds, n);
	if (r || n != 1) {
		launcher_free(l);
		return err_errno(e, r ? r : EMFILE, "could not make the thread that launches");
	}
	close(l->theirs); /* the thread has its own copy; ours would be one more way to it */
	l->theirs = -1;
	*ret = l;
	return true;
}

void launcher_free(struct launcher *l)
{
	if (!l)
		return;
	shutdown(l->ours, SHUT_RDWR);
	if (l->running)
		pthread_join(l->thread, NULL);
	auto_fd_close(&l->ours);
	auto_fd_close(&l->theirs);
	child_room_free(l->room);
	free(l);
}

int launcher_fd(const struct launcher *l)
{
	return l->ours;
}

int launcher_submit(struct launcher *l, struct launch *one, int in, int out)
{
	return packet_send(l->ours, &one, sizeof(one), (int[]){out, in}, in >= 0 ? 2 : 1, MSG_DONTWAIT);
}

struct launch *launcher_take(struct launcher *l)
{
	int fds[PACKET_FDS_MAX];
	struct launch *one = NULL;
	size_t len = 0, n = 0;
	int r = packet_recv(l->ours, &one, sizeof(one), &len, fds, &n, MSG_DONTWAIT);

	if (r == -EBADMSG)
		n = 0; /* the descriptor did not fit into our table */
	else if (r < 0 || len != sizeof(one))
		return NULL;
	one->child.pidfd = n ? fds[0] : -1;
	if (one->result == 0 && n == 0) { /* what cannot be watched must not run */
		kill(-one->child.pid, SIGKILL);
		while (waitpid(one->child.pid, NULL, 0) < 0 && errno == EINTR)
			;
		one->result = -(one->word.error = EMFILE);
	}
	return one;
}
