/* SPDX-License-Identifier: Apache-2.0 */
/* Answers artifact requests from the cache; starts tasks for missing artifacts. */
#include "net/artifact/artifact_cache.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "net/artifact/artifact_cache_private.h"
#include "net/request.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool artifact_cache_start(struct request *r, struct artifact_cache *c, struct err *e)
{
	const struct net_payload *p = &r->payload;
	struct artifact_entry found = {};

	if ((p->n != 2 && p->n != 4) || strlen(p->texts[1]) != 64)
		return err_set(e, ERR_INVALID, "an artifact needs a URL and a SHA-256");
	net_frame_artifact_key(p->texts[0], p->texts[1], r->uid, r->key);
	if (artifact_entry_read(c, r->key, &found)) {
		if (!c->o.private_copies) {
			artifact_entry_answer(r, c, r->key);
			return true;
		}
		artifact_task_add(c, r, r);
	} else {
		const struct artifact_task *t = c->tasks;

		while (t && (t->copy_for || strcmp(t->key, r->key) != 0))
			t = t->next;
		if (!t) {
			artifact_entry_remove(c, r->key); /* a damaged entry, if there is one */
			artifact_task_add(c, r, NULL);
		}
	}
	artifact_tasks_start(c);
	return true;
}

void artifact_cache_drop(struct request *r, struct artifact_cache *c)
{
	char copy[ARTIFACT_COPY_NAME];
	struct artifact_task *next;

	r->stage = REQUEST_ENDED; /* no task serves it any more */
	for (struct artifact_task *t = c->tasks; t; t = next) {
		bool wanted = false;

		next = t->next;
		for (const struct request *o = *c->o.requests; o; o = o->next)
			wanted |= artifact_task_serves(t, o);
		if (!wanted)
			artifact_task_free(t);
	}
	artifact_entry_copy_name(r, copy);
	if (c->o.private_copies && r->key[0] &&
		faccessat(c->dir, copy, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		artifact_entry_remove(c, copy);
	r->key[0] = '\0';
	artifact_tasks_start(c);
}

void artifact_cache_hold(struct request *r, struct artifact_cache *c, const char *key)
{
	(void)c;
	memcpy(r->key, key, sizeof(r->key));
	r->stage = REQUEST_ENDED;
}

void artifact_cache_synced(struct artifact_cache *c)
{
	struct artifact_entry *v = NULL;
	size_t n = artifact_entries_list(c, &v);

	c->synced = true;
	for (size_t i = 0; i < n; i++)
		if (!v[i].in_use && text_starts(v[i].name, "run-"))
			artifact_entry_remove(c, v[i].name);
	artifact_entries_free(v, n);
	artifact_budget_evict(c, 0);
}

void artifact_cache_set_budget(struct artifact_cache *c, int64_t bytes)
{
	c->budget = bytes;
	artifact_budget_evict(c, 0);
}

/* Removes unfinished directories of an earlier process. */
static void stale_entries_remove(struct artifact_cache *c)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	AUTO_DONE(strv) names = {};
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (text_starts(e->d_name, ".new-") || text_starts(e->d_name, ".old-"))
			strv_add(&names, e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < names.n; i++)
		artifact_entry_remove(c, names.v[i]);
}

bool artifact_cache_new(struct sd_event *ev, const struct artifact_cache_options *o,
	struct artifact_cache **ret, struct err *e)
{
	AUTO(artifact_cache) *c = xcalloc(1, sizeof(*c));
	int r = io_mkdirs(o->dir, 0700);

	c->ev = ev;
	c->o = *o;
	c->remover_control = -1;
	c->dir = r < 0 ? -1 : open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dir < 0)
		return err_errno(
			e, r < 0 ? -r : errno, "could not open the directory '%s'", o->dir);
	c->o.dir = NULL;
	stale_entries_remove(c);
	*ret = STEAL(c);
	return true;
}

void artifact_cache_free(struct artifact_cache *c)
{
	if (!c)
		return;
	while (c->tasks)
		artifact_task_free(c->tasks);
	artifact_entries_close(c);
	auto_fd_close(&c->dir);
	free(c);
}
