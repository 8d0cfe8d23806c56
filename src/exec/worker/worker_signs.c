/* SPDX-License-Identifier: Apache-2.0 */
/* Receives signs of life and progress from the command of a worker. */
#include "exec/worker/worker_signs.h"
#include "base/auto.h"
#include "base/duration.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "core/job/job.h"
#include "exec/child/user.h"
#include "exec/proto/frame.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define DATAGRAM_MAX 4096
#define DATAGRAMS_PER_TURN 32
/*
 * If the spawner itself was stopped for longer than this, the silence of the worker says nothing and
 * its heartbeat begins again.
 */
#define LATE_MAX (2 * USEC_SEC)

void worker_signs_init(struct worker_signs *g)
{
	*g = (struct worker_signs){.pipe.fd = -1, .socket.fd = -1};
}

void worker_signs_offer_done(struct worker_signs_offer *o)
{
	if (o->pipe >= 0)
		close(o->pipe);
	free(o->socket);
	*o = (struct worker_signs_offer){.pipe = -1};
}

/* ---- the directory of the notify sockets ---- */

static void old_sockets_remove(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *f;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((f = readdir(d)))
		if (f->d_name[0] != '.')
			unlinkat(dir, f->d_name, 0);
	closedir(d);
}

/*
 * The daemon may write in the parent directory, so the directory is used by descriptor only, after a
 * check that nobody else can write in it.
 */
void worker_signs_open(struct workers *ws, const char *path, bool fresh)
{
	AUTO_FD dir = -1;
	struct stat st;

	ws->notify_path = path;
	if (mkdir(path, 0711) < 0 && errno != EEXIST) {
		log_warning("could not create directory '%s', jobs get no NOTIFY_SOCKET: %s", path, strerror(errno));
		return;
	}
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022 || fchmod(dir, 0711) < 0) {
		log_warning("directory '%s' does not belong to the spawner alone, jobs get no NOTIFY_SOCKET", path);
		return;
	}
	if (fresh)
		old_sockets_remove(dir);
	ws->notify_dir = STEAL_FD(dir);
}

static void socket_name(const struct worker *w, char name[64])
{
	snprintf(name, 64, "%" PRId64 "-%" PRId64, w->run, w->fence);
}

/*
 * Only processes of the owner may send to the socket. The name is created in a directory that only
 * the spawner can change, so a change of its owner by name is safe.
 */
static int socket_bind(struct worker *w, const struct user *user)
{
	struct workers *ws = w->all;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64];
	mode_t mask;
	int r;

	socket_name(w, name);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", ws->notify_dir, name);
	w->signs.socket.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->signs.socket.fd < 0)
		return -errno;
	unlinkat(ws->notify_dir, name, 0);
	mask = umask(0177);
	r = bind(w->signs.socket.fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	umask(mask);
	if (r == 0 && ws->change_user && fchownat(ws->notify_dir, name, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r;
}

static int socket_open(struct worker *w, const struct user *user, char **ret)
{
	AUTO_TEXT path = NULL;
	char name[64];
	int r;

	socket_name(w, name);
	path = xprintf("%s/%s", w->all->notify_path, name);
	if (w->all->notify_dir < 0 || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return 0; /* the command has the pipe */
	r = socket_bind(w, user);
	if (r == 0)
		*ret = STEAL(path);
	return r;
}

/* ---- what a sign does ---- */

static void wake_at_earliest(struct worker *w)
{
	const struct worker_signs *g = &w->signs;
	const usec_t times[] = {g->silent_at, g->watch_at, g->report_at};
	usec_t at = USEC_NEVER;

	for (size_t i = 0; i < ELEMENTS(times); i++)
		if (times[i] && times[i] < at)
			at = times[i];
	if (at == USEC_NEVER)
		deadline_clear(&w->all->signs, &w->signs.wake);
	else
		deadline_set(&w->all->signs, &w->signs.wake, at);
}

static void sign_of_life(struct worker_signs *g, usec_t extend, usec_t now)
{
	usec_t until = now + (extend > g->heartbeat ? extend : g->heartbeat);

	/* a heartbeat does not end earlier than an extension of it */
	if (g->silent_at && until > g->silent_at)
		g->silent_at = until;
}

static void sign_progress(struct worker_signs *g, const struct sign *s, usec_t now)
{
	if (s->percent == SIGN_PERCENT_NONE && !s->has_text)
		return;
	if (!g->progress) {
		g->progress = xcalloc(1, sizeof(*g->progress));
		g->progress->percent = SIGN_PERCENT_NONE;
	}
	if (s->percent != SIGN_PERCENT_NONE)
		g->progress->percent = s->percent;
	if (s->has_text)
		memcpy(g->progress->text, s->text, sizeof(s->text));
	g->progress->at = clock_now(&clock_system);
	if (!g->report_at)
		g->report_at = g->reported_at && g->reported_at + SIGNS_REPORT_INTERVAL > now
			? g->reported_at + SIGNS_REPORT_INTERVAL
			: now;
}

static void line_take(struct worker *w, const char *line, size_t len, usec_t now)
{
	struct sign s;

	if (!sign_parse(line, len < SIGN_LINE_MAX ? len : SIGN_LINE_MAX, &s))
		return;
	sign_of_life(&w->signs, s.extend, now);
	sign_progress(&w->signs, &s, now);
}

/* Returns the bytes after the last complete line. */
static size_t lines_take(struct worker *w, const char *data, size_t len, usec_t now)
{
	const char *end;

	while (len > 0 && (end = memchr(data, '\n', len))) {
		line_take(w, data, (size_t)(end - data), now);
		len -= (size_t)(end + 1 - data);
		data = end + 1;
	}
	return len;
}

static void pipe_take(struct worker *w, char *data, size_t len, usec_t now)
{
	size_t rest;

	if (w->signs.partial) { /* the start of the first line was read before */
		size_t had = strlen(w->signs.partial), more = strcspn(data, "\n");
		size_t room = had < SIGN_LINE_MAX ? SIGN_LINE_MAX - had : 0;

		if (more > len)
			more = len;
		w->signs.partial = xrealloc(w->signs.partial, had + room + 1);
		memcpy(w->signs.partial + had, data, more < room ? more : room);
		w->signs.partial[had + (more < room ? more : room)] = '\0';
		if (more == len)
			return;
		line_take(w, w->signs.partial, strlen(w->signs.partial), now);
		free(STEAL(w->signs.partial));
		data += more + 1;
		len -= more + 1;
	}
	rest = lines_take(w, data, len, now);
	if (rest > 0)
		w->signs.partial = xstrndup(data + len - rest, rest < SIGN_LINE_MAX ? rest : SIGN_LINE_MAX);
}

static void channels_read(struct worker *w, usec_t now)
{
	struct worker_signs *g = &w->signs;
	char *data = w->all->chunk;
	ssize_t n;

	if (g->pipe.fd >= 0) {
		n = read(g->pipe.fd, data, WORKER_CHUNK - 1);
		if (n > 0) {
			data[n] = '\0';
			pipe_take(w, data, (size_t)n, now);
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			epoll_source_close(&g->pipe); /* all writers have closed it */
		}
	}
	for (int i = 0; g->socket.fd >= 0 && i < DATAGRAMS_PER_TURN; i++) {
		n = recv(g->socket.fd, data, DATAGRAM_MAX, MSG_DONTWAIT);
		if (n < 0)
			break;
		data[n] = '\n';
		lines_take(w, data, (size_t)n + 1, now);
	}
}

/* Stops watching for SIGNS_INTERVAL. */
static void on_sign(struct worker *w)
{
	struct worker_signs *g = &w->signs;
	usec_t now = clock_boot(&clock_system);

	channels_read(w, now);
	if (g->pipe.fd >= 0)
		epoll_source_watch(w->all->ep, &g->pipe, EPOLL_CTL_MOD, 0);
	if (g->socket.fd >= 0)
		epoll_source_watch(w->all->ep, &g->socket, EPOLL_CTL_MOD, 0);
	g->watch_at = now + SIGNS_INTERVAL;
	wake_at_earliest(w);
}

/*
 * The kernel reports EPOLLHUP in any case. A pipe without writers is closed at once, so it does not
 * wake the loop again.
 */
static void on_sign_pipe(struct epoll_source *s, uint32_t events)
{
	(void)events;
	on_sign(CONTAINER_OF(s, struct worker, signs.pipe));
}

static void on_sign_socket(struct epoll_source *s, uint32_t events)
{
	(void)events;
	on_sign(CONTAINER_OF(s, struct worker, signs.socket));
}

/* ---- life of the channels ---- */

static int channels_watch(struct worker *w)
{
	struct worker_signs *g = &w->signs;

	g->pipe.on_ready = on_sign_pipe;
	g->socket.on_ready = on_sign_socket;
	if (g->pipe.fd >= 0 && epoll_source_watch(w->all->ep, &g->pipe, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	if (g->socket.fd >= 0 && epoll_source_watch(w->all->ep, &g->socket, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	return 0;
}

int worker_signs_offer(struct worker *w, const struct exec_spec *spec, const struct user *user,
	struct worker_signs_offer *ret)
{
	int pipe[2], r;

	w->signs.heartbeat = spec->heartbeat;
	w->signs.on_output = spec->heartbeat_on_output;
	/* other commands get descriptors 0 to 2 only */
	if (!spec->heartbeat)
		return 0;
	/* a script has its text at JOB_SCRIPT_FD */
	if (3 + spec->secrets.n != JOB_SCRIPT_FD) {
		if (pipe2(pipe, O_CLOEXEC) < 0)
			return -errno;
		w->signs.pipe.fd = pipe[0];
		ret->pipe = pipe[1];
		io_set_nonblock(w->signs.pipe.fd);
	}
	r = socket_open(w, user, &ret->socket);
	return r < 0 ? r : channels_watch(w);
}

void worker_signs_started(struct worker *w)
{
	if (w->signs.heartbeat)
		w->signs.silent_at = clock_boot(&clock_system) + w->signs.heartbeat;
	wake_at_earliest(w);
}

bool worker_signs_adopt(struct worker *w)
{
	w->signs.wake = (struct deadline){};
	w->signs.partial = NULL;
	w->signs.watch_at = 0;
	if (channels_watch(w) < 0)
		return false;
	wake_at_earliest(w);
	return true;
}

void worker_signs_output(struct worker *w)
{
	/* the deadline stays: when it has passed, the new time is used */
	if (w->signs.on_output)
		sign_of_life(&w->signs, 0, clock_boot(&clock_system));
}

/* ---- deadlines ---- */

static void worker_stalled(struct worker *w, usec_t now)
{
	struct worker_signs *g = &w->signs;
	char text[DURATION_TEXT_MAX];

	channels_read(w, now);
	if (g->silent_at > now)
		return;
	if (g->silent_at + LATE_MAX < now) {
		g->silent_at = now + g->heartbeat;
		return;
	}
	g->silent_at = 0;
	if (w->phase != WORKER_RUNNING)
		return;
	free(w->error);
	w->error = xprintf("ended because it gave no sign for %s", duration_format(g->heartbeat, text));
	worker_end(w, ATTEMPT_STALLED);
}

static void signs_due(struct worker *w, usec_t now)
{
	struct worker_signs *g = &w->signs;

	if (g->watch_at && g->watch_at <= now) {
		g->watch_at = 0;
		if (g->pipe.fd >= 0)
			epoll_source_watch(w->all->ep, &g->pipe, EPOLL_CTL_MOD, EPOLLIN);
		if (g->socket.fd >= 0)
			epoll_source_watch(w->all->ep, &g->socket, EPOLL_CTL_MOD, EPOLLIN);
	}
	if (g->report_at && g->report_at <= now) {
		g->report_at = 0;
		g->reported_at = now;
		worker_report_queue(w, REPORT_PROGRESS);
	}
	if (g->silent_at && g->silent_at <= now)
		worker_stalled(w, now);
	wake_at_earliest(w);
}

void worker_signs_run_due(struct workers *ws, usec_t now)
{
	struct deadline *d;

	while ((d = deadlines_take(&ws->signs, now)))
		signs_due(CONTAINER_OF(d, struct worker, signs.wake), now);
}

void worker_signs_stop(struct worker *w)
{
	struct worker_signs *g = &w->signs;
	char name[64];

	g->silent_at = 0;
	channels_read(w, clock_boot(&clock_system));
	if (g->report_at)
		worker_report_queue(w, REPORT_PROGRESS);
	g->report_at = g->watch_at = 0;
	if (g->socket.fd >= 0 && w->all->notify_dir >= 0) {
		socket_name(w, name);
		unlinkat(w->all->notify_dir, name, 0);
	}
	epoll_source_close(&g->pipe);
	epoll_source_close(&g->socket);
	deadline_clear(&w->all->signs, &g->wake);
}

void worker_signs_done(struct worker *w)
{
	struct worker_signs *g = &w->signs;

	if (g->pipe.fd >= 0 || g->socket.fd >= 0 || g->wake.position)
		worker_signs_stop(w);
	free(STEAL(g->partial));
	free(STEAL(g->progress));
}

void worker_signs_frame(struct frame *f, const struct worker *w)
{
	const struct progress *p = w->signs.progress;

	f->progress = (struct frame_progress){.run = w->run, .fence = w->fence, .attempt = w->attempt,
		.percent = p ? p->percent : SIGN_PERCENT_NONE, .at = p ? p->at : 0};
	frame_text(f->progress.text, FRAME_TEXT_MAX, p ? p->text : NULL);
}
