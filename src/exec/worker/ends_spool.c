/* SPDX-License-Identifier: Apache-2.0 */
/* Writes unacknowledged ends in a separate process, because fsync() can block for seconds. */
#include "exec/worker/ends_spool.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/ends_file.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY (10 * USEC_SEC) /* after a failure */
#define DIRECTORY 3           /* descriptor of the directory in the writing process */

/* ---- selection ---- */

struct batch {
	struct ends_frames frames;
	usec_t now, next; /* next: when the next end is old enough */
	size_t new;       /* ends that are not in the file yet */
};

static void batch_add(struct worker *w, void *arg)
{
	struct batch *b = arg;

	w->spooling = false;
	if (w->phase != WORKER_ENDED)
		return;
	if (!w->spooled && w->unacked_since + ENDS_SPOOL_AFTER > b->now) {
		if (w->unacked_since + ENDS_SPOOL_AFTER < b->next)
			b->next = w->unacked_since + ENDS_SPOOL_AFTER;
		return;
	}
	w->spooling = true;
	b->new += !w->spooled;
	ends_frames_add(&b->frames, w);
}

void ends_spool_note(struct worker *w)
{
	struct ends_spool *s = &w->all->spool;
	usec_t now = clock_boot(&clock_system);

	w->unacked_since = now;
	if (!s->look_at)
		s->look_at = now + ENDS_SPOOL_AFTER;
}

void ends_spool_forget(struct worker *w)
{
	if (w->spooled)
		w->all->spool.spooled--;
	w->spooled = w->spooling = false;
}

static void unacked_since_clear(struct worker *w, void *none)
{
	(void)none;
	w->unacked_since = -ENDS_SPOOL_AFTER;
}

/* The ends in the file may differ from those in memory, so it is replaced or removed at once. */
void ends_spool_resume(struct workers *ws)
{
	ws->spool.file = ends_file_exists(ws->output_dir);
	workers_each(ws, unacked_since_clear, NULL);
	if (ws->count)
		ws->spool.look_at = clock_boot(&clock_system);
}

/* ---- the writing process ---- */

static int writer_spawn(const struct workers *ws, int frames, int result)
{
	char *const argv[] = {(char *)"jobsched-spawner", (char *)"--write-ends", NULL};
	char *const none[] = {NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	sigset_t mask;
	pid_t pid;
	int r;

	sigemptyset(&mask);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, frames, 0);
	posix_spawn_file_actions_adddup2(&files, result, 1);
	posix_spawn_file_actions_adddup2(&files, ws->output_dir, DIRECTORY);
	posix_spawn_file_actions_addclosefrom_np(&files, DIRECTORY + 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	r = posix_spawn(&pid, io_own_program(program), &files, &attr, argv, none);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return r ? -r : pid;
}

int ends_spool_main(void)
{
	AUTO_DONE(buf) frames = {};
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = io_read_all(0, &frames, (size_t)ENDS_FILE_MAX << 10);
	if (r >= 0)
		r = ends_file_write(DIRECTORY, &frames);
	/*
	 * No exit handlers: there is nothing to flush, and the leak check of a sanitizer fails
	 * while the spawner is traced.
	 */
	_exit(io_write_all(1, &r, sizeof(r)) < 0);
}

static void spooled_note(struct worker *w, void *arg)
{
	struct ends_spool *s = arg;

	w->spooled = w->spooling;
	w->spooling = false;
	s->spooled += w->spooled;
}

static void writer_ended(struct workers *ws, int r)
{
	struct ends_spool *s = &ws->spool;

	epoll_source_close(&s->pipe);
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->pidfd = -1;
	if (r < 0) {
		log_error(
			"could not write unacknowledged ends of runs to disk, retrying in 10 s: %s",
			strerror(-r));
		s->look_at = clock_boot(&clock_system) + RETRY;
		s->retry_at = s->look_at;
		return;
	}
	s->file = !s->removing;
	s->spooled = 0;
	if (s->file)
		workers_each(ws, spooled_note, s);
	if (s->file && !s->said)
		log_warning(
			"the daemon does not acknowledge the ends of runs; they are kept on disk until it does");
	s->said = s->file;
}

static void on_writer_result(struct epoll_source *src, uint32_t events)
{
	struct ends_spool *s = CONTAINER_OF(src, struct ends_spool, pipe);
	int r = -EIO;

	(void)events;
	if (read(src->fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		r = -EIO; /* the process was killed */
	writer_ended(CONTAINER_OF(s, struct workers, spool), r > 0 ? 0 : r);
}

/*
 * The process is not reaped before the next iteration of the loop, so its pid is not reused until
 * the pidfd is open.
 */
static int writer_start(struct workers *ws, const struct buf *frames)
{
	struct ends_spool *s = &ws->spool;
	AUTO_FD data =
		io_memfd_sealed("jobsched-ends", frames->data ? frames->data : "", frames->len);
	AUTO_FD result = -1;
	int pipe[2], pid;

	if (data < 0 || pipe2(pipe, O_CLOEXEC) < 0)
		return data < 0 ? data : -errno;
	s->pipe = (struct epoll_source){.fd = pipe[0], .on_ready = on_writer_result};
	result = pipe[1];
	lseek(data, 0, SEEK_SET);
	pid = writer_spawn(ws, data, result);
	if (pid < 0)
		return pid;
	orphans_add_helper(ws, pid);
	s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	s->removing = frames->len == 0;
	return epoll_source_watch(ws->ep, &s->pipe, EPOLL_CTL_ADD, EPOLLIN) < 0 ? -errno : 0;
}

void ends_spool_stop(struct workers *ws, bool wait)
{
	struct ends_spool *s = &ws->spool;
	siginfo_t si;

	if (s->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
		while (wait && waitid(P_PIDFD, (id_t)s->pidfd, &si, WEXITED | WNOWAIT) < 0 &&
			errno == EINTR)
			;
		close(s->pidfd);
	}
	s->pidfd = -1;
	epoll_source_close(&s->pipe);
}

/* ---- schedule ---- */

void ends_spool_run_due(struct workers *ws, usec_t now)
{
	struct ends_spool *s = &ws->spool;
	AUTO_DONE(buf) none = {};
	struct batch b = {.now = now, .next = USEC_NEVER};
	int r = 0;

	if (s->pipe.fd >= 0 || now < s->retry_at)
		return;
	if (s->look_at && now >= s->look_at) {
		workers_each(ws, batch_add, &b);
		s->look_at = b.next == USEC_NEVER ? 0 : b.next;
	}
	if (b.new)
		r = writer_start(ws, ends_frames_join(&b.frames));
	else if (s->file && s->spooled == 0)
		r = writer_start(ws, &none);
	ends_frames_done(&b.frames);
	if (r < 0)
		writer_ended(ws, r);
}

usec_t ends_spool_next_due(const struct workers *ws)
{
	const struct ends_spool *s = &ws->spool;

	if (s->pipe.fd >= 0)
		return USEC_NEVER;
	if (s->file && s->spooled == 0)
		return s->retry_at ? s->retry_at : 1; /* at once */
	return s->look_at ? s->look_at : USEC_NEVER;
}
