/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the API socket under its name, again after a removal. */
#include "daemon/api/listener.h"
#include "base/err.h"
#include "base/file/inotify.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

/*
 * The socket is bound to a hidden name and hard-linked to the public name. If the public name is
 * removed or replaced, it can be restored without a new socket, and no connection is lost.
 */
#define TCP_MAX 16
#define BACKLOG 4096 /* allows a thousand clients to connect at the same time */

struct listener {
	char *path, *hidden; /* hidden is NULL if systemd created the socket */
	int lock, fd, inotify;
	sd_event_source *source;
	int tcp[TCP_MAX];    /* owned: from systemd */
	size_t n_tcp;
};

static bool bind_socket(struct listener *l, mode_t mode, struct err *e)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (strlen(l->hidden) >= sizeof(at.sun_path))
		return err_set(e, ERR_INVALID,
			"the socket path '%s' is longer than the kernel allows; give a shorter "
			"--runtime-dir",
			l->path);
	strcpy(at.sun_path, l->hidden);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return err_errno(e, errno, "could not create a socket");
	unlink(l->hidden); /* left by a daemon that was killed; this process holds the lock */
	if (bind(l->fd, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(l->hidden, mode) < 0 ||
		listen(l->fd, BACKLOG) < 0)
		return err_errno(e, errno, "could not listen at '%s'", l->path);
	return true;
}

/* Links the public name to the socket and replaces what has that name. */
static bool publish_socket(struct listener *l, struct err *e)
{
	AUTO_TEXT temp = xprintf("%s.new", l->hidden);

	unlink(temp);
	if (link(l->hidden, temp) < 0 || rename(temp, l->path) < 0)
		return err_errno(e, errno, "could not publish the socket '%s'", l->path);
	return true;
}

/* systemd passes the Unix socket and the sockets of jobschedd-tcp.socket in any order. */
static bool take_activated_sockets(struct listener *l, struct err *e)
{
	int n = sd_listen_fds(1);

	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
		if (l->fd < 0 && sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0)
			l->fd = fd;
		else if (l->n_tcp < TCP_MAX && (sd_is_socket(fd, AF_INET, SOCK_STREAM, 1) > 0 ||
						       sd_is_socket(fd, AF_INET6, SOCK_STREAM, 1) > 0))
			l->tcp[l->n_tcp++] = fd;
		else
			return err_set(e, ERR_INVALID,
				"descriptor %d from the service manager is not a listening socket, or there "
				"are more than %d",
				fd, TCP_MAX);
		io_set_nonblock(fd);
	}
	return true;
}

bool listener_lock(const char *runtime_dir, int *ret, struct err *e)
{
	AUTO_TEXT lock = xprintf("%s/jobschedd.lock", runtime_dir);
	int fd = io_lock_file(lock);

	if (fd == -EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT,
			"another jobschedd is running here: '%s' is locked; reach it with "
			"'jobctl --socket %s/jobsched.sock'",
			lock, runtime_dir);
	if (fd < 0)
		return err_errno(e, -fd, "could not lock '%s'", lock);
	*ret = fd;
	return true;
}

bool listener_open(const char *runtime_dir, const char *socket_path, mode_t mode,
	struct listener **ret, struct err *e)
{
	AUTO(listener) *l = xcalloc(1, sizeof(*l));

	l->fd = l->inotify = l->lock = -1;
	if (!listener_lock(runtime_dir, &l->lock, e))
		return false;
	l->path = xstrdup(socket_path);
	if (!take_activated_sockets(l, e))
		return false;
	if (l->fd < 0) {
		l->hidden = xprintf("%s/.api", runtime_dir);
		if (!bind_socket(l, mode, e) || !publish_socket(l, e))
			return false;
	}
	*ret = STEAL(l);
	return true;
}

static bool still_ours(const struct listener *l)
{
	struct stat a, b;

	return lstat(l->path, &a) == 0 && lstat(l->hidden, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->source);
	if (l->hidden && l->lock >= 0) {
		if (still_ours(l))
			unlink(l->path);
		unlink(l->hidden);
	}
	if (l->inotify >= 0)
		close(l->inotify);
	for (size_t i = 0; i < l->n_tcp; i++)
		close(l->tcp[i]);
	if (l->fd >= 0)
		close(l->fd);
	if (l->lock >= 0)
		close(l->lock);
	free(l->hidden);
	free(l->path);
	free(l);
}

int listener_fd(const struct listener *l)
{
	return l->fd;
}

size_t listener_take_tcp(struct listener *l, const int **ret)
{
	size_t n = l->n_tcp;

	*ret = l->tcp;
	l->n_tcp = 0;
	return n;
}

int listener_take_fd(struct listener *l)
{
	return STEAL_FD(l->fd);
}

static int on_directory(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	char drain[4096];
	struct listener *l = arg;
	struct err e = {};

	(void)source;
	(void)events;
	while (read(fd, drain, sizeof(drain)) > 0)
		;
	if (still_ours(l))
		return 0;
	if (publish_socket(l, &e))
		log_warning("the socket '%s' was removed or replaced; it has been restored",
			l->path);
	else
		log_error("the socket '%s' was removed, restart jobschedd: %s", l->path, e.msg);
	return 0;
}

bool listener_watch(struct listener *l, struct sd_event *ev, struct err *e)
{
	AUTO_TEXT dir = xstrdup(l->path);
	int r;

	if (!l->hidden)
		return true; /* systemd owns the socket */
	*strrchr(dir, '/') = '\0';
	if (!inotify_new(&l->inotify, e))
		return false;
	if (inotify_add_watch(l->inotify, dir, IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) < 0)
		return err_errno(e, errno, "could not watch '%s'", dir);
	r = sd_event_add_io(ev, &l->source, l->inotify, EPOLLIN, on_directory, l);
	if (r < 0)
		return err_errno(e, -r, "could not watch '%s'", dir);
	return true;
}
