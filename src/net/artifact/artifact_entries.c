/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the artifact cache on disk. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "net/artifact/artifact_cache_private.h"
#include "net/child.h"
#include "net/unpack/quota.h"
#include "net/request.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

void artifact_entry_copy_name(const struct request *r, char out[ARTIFACT_COPY_NAME])
{
	snprintf(out, ARTIFACT_COPY_NAME, "run-%" PRId64 "-%" PRId64, r->id.id, r->id.attempt);
}

static bool entry_in_use(const struct artifact_cache *c, const char *name)
{
	char copy[ARTIFACT_COPY_NAME];

	for (const struct request *r = *c->o.requests; r; r = r->next) {
		if (!r->key[0])
			continue;
		artifact_entry_copy_name(r, copy);
		if (strcmp(r->key, name) == 0 || strcmp(copy, name) == 0)
			return true;
	}
	return false;
}

static int compare_last_use(const void *a, const void *b)
{
	const struct artifact_entry *x = a, *y = b;

	return x->used_at < y->used_at ? -1 : x->used_at > y->used_at;
}

bool artifact_entry_read(
	const struct artifact_cache *c, const char *name, struct artifact_entry *ret)
{
	AUTO_TEXT path = xprintf("%s/size", name);
	AUTO_TEXT content = xprintf(
		"%s/%s", name, c->o.private_copies && !text_starts(name, "run-") ? "file" : "tree");
	AUTO_FD fd = openat(c->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_DONE(buf) text = {};
	struct stat st, there;

	if (fd < 0 || fstat(fd, &st) < 0 ||
		fstatat(c->dir, content, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		io_read_all(fd, &text, 64) < 0 || !text.len)
		return false;
	text.data[strcspn(text.data, "\n")] = '\0';
	ret->used_at = (usec_t)st.st_mtim.tv_sec * USEC_SEC + st.st_mtim.tv_nsec / 1000;
	return text_parse_int(text.data, 0, INT64_MAX, &ret->bytes);
}

size_t artifact_entries_list(const struct artifact_cache *c, struct artifact_entry **ret)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	size_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		struct artifact_entry found = {};

		if (e->d_name[0] == '.')
			continue;
		if (!artifact_entry_read(c, e->d_name, &found))
			found = (struct artifact_entry){};
		found.name = xstrdup(e->d_name);
		found.in_use = entry_in_use(c, e->d_name);
		*ret = xgrow(*ret, n, sizeof(**ret));
		(*ret)[n++] = found;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(*ret, n, sizeof(**ret), compare_last_use);
	return n;
}

void artifact_entries_free(struct artifact_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].name);
	free(v);
}

void artifact_entry_answer(struct request *r, const struct artifact_cache *c, const char *name)
{
	AUTO_TEXT path = xprintf("%s/tree", name);
	AUTO_TEXT size = xprintf("%s/size", name);
	int fd = openat(c->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		request_end(r, NET_BUSY, "could not read the artifact cache", -1);
		return;
	}
	utimensat(c->dir, size, NULL, AT_SYMLINK_NOFOLLOW); /* for the order of eviction */
	request_end(r, NET_DONE, NULL, fd);
}

/* ---- removal, in a child because a large tree takes long ---- */

static void remover_start(struct artifact_cache *c);

static int on_remover_result(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct artifact_cache *c = arg;
	struct quota_report report = {};
	ssize_t n = recv(fd, &report, sizeof(report), MSG_DONTWAIT);

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	report.text[sizeof(report.text) - 1] = '\0';
	if (n == (ssize_t)sizeof(report) && report.kind == QUOTA_FAILED)
		log_warning("%s", report.text);
	c->remover_source = sd_event_source_disable_unref(c->remover_source);
	close(c->remover_control);
	kill(c->remover, SIGKILL);
	waitpid(c->remover, NULL, 0);
	c->remover = 0;
	if (c->remove_again)
		remover_start(c);
	return 0;
}

static void remover_start(struct artifact_cache *c)
{
	struct err e = {};

	if (c->remover) {
		c->remove_again = true;
		return;
	}
	c->remove_again = false;
	if (!child_start(&(struct child_request){.task = CHILD_REMOVE, .file = -1, .other = c->dir},
		    &c->remover, &c->remover_control, &e)) {
		c->remover = 0;
		log_warning("%s", e.msg);
		return;
	}
	sd_event_add_io(
		c->ev, &c->remover_source, c->remover_control, EPOLLIN, on_remover_result, c);
}

void artifact_entry_remove(struct artifact_cache *c, const char *name)
{
	char id[RANDOM_ID_LEN + 1];
	AUTO_TEXT old = NULL;

	io_random_id(id);
	old = xprintf(".old-%s", id);
	if (renameat(c->dir, name, c->dir, old) == 0)
		remover_start(c);
	else if (errno != ENOENT)
		log_warning("could not remove the artifact '%s': %s", name, strerror(errno));
}

void artifact_entries_close(struct artifact_cache *c)
{
	if (!c->remover)
		return;
	sd_event_source_disable_unref(c->remover_source);
	close(c->remover_control);
	kill(c->remover, SIGKILL);
	waitpid(c->remover, NULL, 0);
}
