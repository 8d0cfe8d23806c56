/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes the other nodes of a SQLite file: each node watches one file with inotify, and a new node writes to it. */
#include "daemon/cluster/peer_wakeup.h"
#include "base/err.h"
#include "base/file/inotify.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <systemd/sd-event.h>
#include <unistd.h>

struct peer_wakeup {
	char *path;
	int inotify;
	sd_event_source *source;
	void (*on_wakeup)(void *arg);
	void *arg;
};

static int on_written(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct peer_wakeup *b = arg;
	_Alignas(struct inotify_event) char data[4096];

	(void)source;
	(void)events;
	while (read(fd, data, sizeof(data)) > 0)
		;
	b->on_wakeup(b->arg);
	return 0;
}

static int touch(const char *path)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

bool peer_wakeup_new(struct sd_event *ev, const char *store, void (*on_wakeup)(void *arg), void *arg, struct peer_wakeup **ret, struct err *e)
{
	AUTO(peer_wakeup) *b = xcalloc(1, sizeof(*b));
	int r;

	*b = (struct peer_wakeup){.path = xprintf("%s-nodes", store), .inotify = -1, .on_wakeup = on_wakeup, .arg = arg};
	r = touch(b->path);
	if (r < 0)
		return err_errno(e, -r, "could not make '%s'", b->path);
	if (!inotify_new(&b->inotify, e))
		return false;
	if (inotify_add_watch(b->inotify, b->path, IN_CLOSE_WRITE) < 0)
		return err_errno(e, errno, "could not watch '%s'", b->path);
	r = sd_event_add_io(ev, &b->source, b->inotify, EPOLLIN, on_written, b);
	if (r < 0)
		return err_errno(e, -r, "could not watch '%s'", b->path);
	*ret = STEAL(b);
	return true;
}

void peer_wakeup_free(struct peer_wakeup *b)
{
	if (!b)
		return;
	sd_event_source_disable_unref(b->source);
	if (b->inotify >= 0)
		close(b->inotify);
	free(b->path);
	free(b);
}

void peer_wakeup_send(struct peer_wakeup *b)
{
	int r = touch(b->path);

	if (r < 0)
		log_warning("other nodes notice this node late: could not write '%s': %s", b->path, strerror(-r));
}
