/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the cache. An entry KEY has the file 'size' and either 'tree' or, with private copies, 'file'. An entry
 * run-RUN-FENCE is the private copy of one run. Names with a dot are entries that are being made (.new-) or removed (.old-).
 * Entries that a request uses count against the budget and are never evicted; disk space for new ones is granted to the
 * children in steps.
 */
#include "net/artifact_cache.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "net/child.h"
#include "net/artifact_download.h"
#include "net/quota.h"
#include "net/request.h"
#include "net/unpack/unpack.h"
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

#define TASKS_MAX 8           /* at a time */
#define TASKS_OF_OWNER_MAX 4  /* of these */
#define GRANT_STEP (INT64_C(4) << 20)
#define KILL_MARGIN (30 * USEC_SEC)

enum task_stage { TASK_WAITING, TASK_FETCHING, TASK_UNPACKING };

/* One artifact that is being fetched, or one private copy that is being made. */
struct task {
	struct cache *cache;     /* borrowed */
	struct request *copy_for; /* borrowed; NULL: it makes the entry 'key' */
	char key[NET_KEY_MAX];
	char *url, *sha256;      /* owned */
	int64_t uid, limit;
	usec_t timeout;
	enum task_stage stage;
	char name[64];           /* of its directory */
	int dir;                 /* owned; -1: none */
	int64_t file_bytes;      /* of the fetched file, while the tree is made beside it */
	int64_t granted;
	pid_t pid;
	int control;             /* owned */
	sd_event_source *source, *timer;
	struct task *next;
};

struct cache {
	sd_event *ev;   /* borrowed */
	struct cache_options o;
	int dir;        /* owned */
	int64_t budget;
	bool synced;
	struct task *tasks;
	pid_t remover;  /* 0: none */
	int remover_control;
	sd_event_source *remover_source;
	bool remove_again;
};

/* ---- entries ---- */

struct entry {
	char *name; /* owned */
	int64_t bytes;
	usec_t used_at;
	bool in_use;
};

static void private_copy_name(const struct request *r, char out[64])
{
	snprintf(out, 64, "run-%" PRId64 "-%" PRId64, r->id.id, r->id.attempt);
}

static bool in_use(const struct cache *c, const char *name)
{
	char copy[64];

	for (const struct request *r = *c->o.requests; r; r = r->next) {
		if (!r->key[0])
			continue;
		private_copy_name(r, copy);
		if (strcmp(r->key, name) == 0 || strcmp(copy, name) == 0)
			return true;
	}
	return false;
}

static int compare_last_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->used_at < y->used_at ? -1 : x->used_at > y->used_at;
}

static bool entry_read(const struct cache *c, const char *name, struct entry *ret)
{
	AUTO_TEXT path = xprintf("%s/size", name);
	AUTO_TEXT content = xprintf("%s/%s", name, c->o.private_copies && !text_starts(name, "run-") ? "file" : "tree");
	AUTO_FD fd = openat(c->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_DONE(buf) text = {};
	struct stat st, there;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatat(c->dir, content, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		io_read_all(fd, &text, 64) < 0 || !text.len)
		return false;
	text.data[strcspn(text.data, "\n")] = '\0';
	ret->used_at = (usec_t)st.st_mtim.tv_sec * USEC_SEC + st.st_mtim.tv_nsec / 1000;
	return text_parse_int(text.data, 0, INT64_MAX, &ret->bytes);
}

/* All entries, least recently used first. An entry that cannot be read comes first, with a size of 0. */
static size_t entries_list(const struct cache *c, struct entry **ret)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	size_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		struct entry found = {};

		if (e->d_name[0] == '.')
			continue;
		if (!entry_read(c, e->d_name, &found))
			found = (struct entry){};
		found.name = xstrdup(e->d_name);
		found.in_use = in_use(c, e->d_name);
		*ret = xgrow(*ret, n, sizeof(**ret));
		(*ret)[n++] = found;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(*ret, n, sizeof(**ret), compare_last_use);
	return n;
}

static void entries_free(struct entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].name);
	free(v);
}

/* ---- removing, in a child because a large tree takes long ---- */

static void remover_start(struct cache *c);

static int on_remover_result(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct cache *c = arg;
	struct quota_report word = {};
	ssize_t n = recv(fd, &word, sizeof(word), MSG_DONTWAIT);

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	word.text[sizeof(word.text) - 1] = '\0';
	if (n == (ssize_t)sizeof(word) && word.kind == QUOTA_FAILED)
		log_warning("%s", word.text);
	c->remover_source = sd_event_source_disable_unref(c->remover_source);
	close(c->remover_control);
	kill(c->remover, SIGKILL);
	waitpid(c->remover, NULL, 0);
	c->remover = 0;
	if (c->remove_again)
		remover_start(c);
	return 0;
}

static void remover_start(struct cache *c)
{
	struct err e = {};

	if (c->remover) {
		c->remove_again = true;
		return;
	}
	c->remove_again = false;
	if (!child_start(&(struct child_request){.task = CHILD_REMOVE, .file = -1, .other = c->dir}, &c->remover,
		&c->remover_control, &e)) {
		c->remover = 0;
		log_warning("%s", e.msg);
		return;
	}
	sd_event_add_io(c->ev, &c->remover_source, c->remover_control, EPOLLIN, on_remover_result, c);
}

static void entry_remove(struct cache *c, const char *name)
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

/* ---- the budget ---- */

static int64_t tasks_bytes(const struct cache *c)
{
	int64_t sum = 0;

	for (const struct task *t = c->tasks; t; t = t->next)
		sum += t->stage == TASK_WAITING ? 0 : t->file_bytes + t->granted;
	return sum;
}

/* Evicts unused entries until 'more' bytes fit. Returns the bytes that are free then, which may be fewer, or negative. */
static int64_t entries_evict(struct cache *c, int64_t more)
{
	struct entry *v = NULL;
	size_t n = entries_list(c, &v);
	int64_t room = c->budget - tasks_bytes(c);

	for (size_t i = 0; i < n; i++)
		room -= v[i].bytes;
	for (size_t i = 0; i < n; i++) {
		if (room >= more || v[i].in_use || !c->synced)
			continue;
		room += v[i].bytes;
		entry_remove(c, v[i].name);
	}
	entries_free(v, n);
	return room;
}

static bool entry_in_use_by(const struct cache *c, const char *key, int64_t uid)
{
	for (const struct request *r = *c->o.requests; r; r = r->next)
		if (r->uid == uid && strcmp(r->key, key) == 0)
			return true;
	return false;
}

/* The bytes that the runs and tasks of one owner use. An artifact that several owners use counts for each of them. */
static int64_t owner_bytes_used(const struct cache *c, int64_t uid)
{
	struct entry *v = NULL;
	size_t n = entries_list(c, &v);
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += entry_in_use_by(c, v[i].name, uid) ? v[i].bytes : 0;
	for (const struct task *t = c->tasks; t; t = t->next)
		sum += t->uid == uid && t->stage != TASK_WAITING ? t->file_bytes + t->granted : 0;
	entries_free(v, n);
	return sum;
}

/* One owner has at most half of the budget in use, or what one artifact of the largest size needs. */
static bool owner_over_share(const struct task *t, int64_t missing)
{
	const struct cache *c = t->cache;
	int64_t one = 2 * t->limit, half = c->budget / 2; /* one: the archive and its tree exist at the same time */

	return !c->o.private_copies && owner_bytes_used(c, t->uid) + missing > (one > half ? one : half);
}

/* The answer to a child that needs 'needed' bytes in all. */
static int64_t task_grant(struct task *t, int64_t needed)
{
	struct cache *c = t->cache;
	int64_t missing = needed - t->granted, room;
	struct entry archive = {};

	if (missing <= 0)
		return t->granted;
	if (owner_over_share(t, missing))
		return QUOTA_OWNER;
	room = entries_evict(c, missing + GRANT_STEP);
	if (room >= missing) {
		t->granted = room >= missing + GRANT_STEP && !owner_over_share(t, missing + GRANT_STEP) ? needed + GRANT_STEP : needed;
		return t->granted;
	}
	if (t->copy_for)
		entry_read(c, t->key, &archive);
	return t->file_bytes + archive.bytes + needed > c->budget ? QUOTA_TOO_LARGE : QUOTA_FULL;
}

/* ---- tasks ---- */

static void task_child_end(struct task *t)
{
	t->source = sd_event_source_disable_unref(t->source);
	t->timer = sd_event_source_disable_unref(t->timer);
	auto_fd_close(&t->control);
	t->control = -1;
	if (t->pid > 0) {
		kill(t->pid, SIGKILL); /* it has reported, or is given up */
		waitpid(t->pid, NULL, 0);
	}
	t->pid = 0;
}

/* Removes the task, and its directory unless that has become an entry. */
static void task_free(struct task *t)
{
	for (struct task **at = &t->cache->tasks; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	task_child_end(t);
	if (t->name[0])
		entry_remove(t->cache, t->name);
	auto_fd_close(&t->dir);
	free(t->url);
	free(t->sha256);
	free(t);
}

static void tasks_start(struct cache *c);
static void task_report_apply(struct task *t, const struct quota_report *w);

static bool request_waits_for(const struct task *t, const struct request *r)
{
	return r->stage == REQUEST_UNDER_WAY && (t->copy_for ? r == t->copy_for : strcmp(r->key, t->key) == 0);
}

static void task_failed(struct task *t, enum err_kind kind, const char *why)
{
	enum net_outcome outcome = kind == ERR_BUSY ? NET_BUSY : NET_FAILED;

	for (struct request *r = *t->cache->o.requests; r; r = r->next)
		if (request_waits_for(t, r))
			request_end(r, outcome, why, -1);
}

static int on_task_report(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct task *t = arg;
	struct quota_report w = {};
	ssize_t n = recv(fd, &w, sizeof(w), MSG_DONTWAIT);
	int64_t answer;

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	w.text[sizeof(w.text) - 1] = '\0';
	if (n == (ssize_t)sizeof(w) && w.kind == QUOTA_MORE) {
		answer = task_grant(t, w.bytes);
		(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
		return 0;
	}
	if (n != (ssize_t)sizeof(w)) {
		w = (struct quota_report){.kind = QUOTA_FAILED, .error = ERR_INVALID};
		snprintf(w.text, sizeof(w.text), "the process for the artifact ended early; it may have needed too much memory");
	}
	task_report_apply(t, &w);
	return 0;
}

static int on_task_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	struct task *t = arg;
	struct cache *c = t->cache;

	(void)source;
	(void)usec;
	task_failed(t, ERR_INVALID, "the artifact could not be fetched and unpacked in time (see artifact-timeout in jobschedd.conf(5))");
	task_free(t);
	tasks_start(c);
	return 0;
}

static bool task_child_start(struct task *t, const struct child_request *o, struct err *e)
{
	usec_t patience = (o->task == CHILD_DOWNLOAD ? ARTIFACT_DOWNLOAD_TRIES * t->timeout : t->timeout) + KILL_MARGIN;
	int r;

	t->granted = 0;
	if (!child_start(o, &t->pid, &t->control, e)) {
		t->pid = 0;
		return false;
	}
	r = sd_event_add_io(t->cache->ev, &t->source, t->control, EPOLLIN, on_task_report, t);
	if (r >= 0)
		r = sd_event_add_time_relative(t->cache->ev, &t->timer, CLOCK_BOOTTIME, (uint64_t)patience, 1, on_task_timeout, t);
	return r >= 0 || err_errno(e, -r, "could not watch the process for the artifact");
}

/* ---- unpacking ---- */

static bool task_unpack_begin(struct task *t, int file, bool check, struct err *e)
{
	AUTO_FD tree = -1;

	if (mkdirat(t->dir, "tree", 0700) < 0 ||
		(tree = openat(t->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "could not write to the cache of artifacts");
	t->stage = TASK_UNPACKING;
	return task_child_start(t, &(struct child_request){.task = CHILD_UNPACK, .url = t->url, .sha256 = check ? t->sha256 : "",
		.limit = t->limit, .timeout = t->timeout, .file = file, .other = tree}, e);
}

static bool task_dir(struct task *t, struct err *e)
{
	if (mkdirat(t->cache->dir, t->name, 0700) < 0 ||
		(t->dir = openat(t->cache->dir, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "could not write to the cache of artifacts");
	return true;
}

/* The tree of an entry for a request, and its result. */
static void request_answer_tree(struct request *r, const struct cache *c, const char *name)
{
	AUTO_TEXT path = xprintf("%s/tree", name);
	AUTO_TEXT size = xprintf("%s/size", name);
	int fd = openat(c->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		request_end(r, NET_BUSY, "could not read the cache of artifacts", -1);
		return;
	}
	utimensat(c->dir, size, NULL, AT_SYMLINK_NOFOLLOW); /* for the order of eviction */
	request_end(r, NET_DONE, NULL, fd);
}

static bool task_write_size(const struct task *t, int64_t bytes, struct err *e)
{
	AUTO_TEXT text = xprintf("%" PRId64 "\n", bytes);
	AUTO_FD fd = openat(t->dir, "size", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
		return err_errno(e, errno, "could not write to the cache of artifacts");
	return true;
}

/* The directory of the task becomes an entry. */
static bool task_publish(struct task *t, const char *name, int64_t bytes, struct err *e)
{
	if (!task_write_size(t, bytes, e))
		return false;
	if (renameat(t->cache->dir, t->name, t->cache->dir, name) < 0)
		return err_errno(e, errno, "could not write to the cache of artifacts");
	t->name[0] = '\0';
	return true;
}

static void request_copy(struct request *r, struct cache *c);

static bool fetched(struct task *t, int64_t bytes, struct err *e)
{
	struct cache *c = t->cache;
	AUTO_FD file = -1;

	task_child_end(t);
	if (c->o.private_copies) {
		if (!task_publish(t, t->key, bytes, e))
			return false;
		for (struct request *r = *c->o.requests; r; r = r->next)
			if (request_waits_for(t, r))
				request_copy(r, c);
		task_free(t);
		return true;
	}
	file = openat(t->dir, "file", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_errno(e, errno, "could not read the cache of artifacts");
	t->file_bytes = bytes;
	return task_unpack_begin(t, file, false, e);
}

static bool unpacked(struct task *t, int64_t bytes, struct err *e)
{
	struct cache *c = t->cache;
	char name[NET_KEY_MAX];

	task_child_end(t);
	unlinkat(t->dir, "file", 0);
	if (t->copy_for)
		private_copy_name(t->copy_for, name);
	else
		memcpy(name, t->key, sizeof(name));
	if (!task_publish(t, name, bytes, e))
		return false;
	for (struct request *r = *c->o.requests; r; r = r->next)
		if (request_waits_for(t, r))
			request_answer_tree(r, c, name);
	task_free(t);
	return true;
}

static void task_report_apply(struct task *t, const struct quota_report *w)
{
	struct cache *c = t->cache;
	struct err e = {};
	bool altered = w->kind == QUOTA_FAILED && w->error == ERR_CONFLICT && t->copy_for;

	if (w->kind == QUOTA_DONE && (t->stage == TASK_FETCHING ? fetched(t, w->bytes, &e) : unpacked(t, w->bytes, &e))) {
		tasks_start(c);
		return;
	}
	if (altered) { /* a job has written to the cache: fetched again */
		struct request *r = t->copy_for;

		log_warning("artifact '%.16s': %s; it is fetched again", t->key, w->text);
		entry_remove(c, t->key);
		task_free(t);
		if (!cache_start(r, c, &e))
			request_end(r, NET_FAILED, e.msg, -1);
		return;
	}
	if (w->kind == QUOTA_FAILED)
		task_failed(t, w->error == ERR_BUSY || w->error == ERR_UNREACHABLE ? (enum err_kind)w->error : ERR_INVALID, w->text);
	else
		task_failed(t, e.kind, e.msg);
	task_free(t);
	tasks_start(c);
}

/* ---- starting ---- */

static bool task_fetch_begin(struct task *t, struct err *e)
{
	bool local = text_starts(t->url, "file:");
	struct child_request o = {.task = local ? CHILD_COPY : CHILD_DOWNLOAD, .url = t->url, .sha256 = t->sha256, .limit = t->limit,
		.timeout = t->timeout, .other = -1};
	AUTO_FD file = openat(t->dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO_FD mine = -1;
	struct request *r = *t->cache->o.requests;
	int pair[2];

	if (file < 0)
		return err_errno(e, errno, "could not write to the cache of artifacts");
	t->stage = TASK_FETCHING;
	o.file = file;
	if (!local)
		return task_child_start(t, &o, e);
	while (r && !request_waits_for(t, r))
		r = r->next;
	if (!r || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, errno, "could not ask for the file");
	o.other = mine = pair[0];
	request_need_file(r, pair[1]);
	return task_child_start(t, &o, e);
}

static bool task_copy_begin(struct task *t, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/file", t->key);
	AUTO_FD file = openat(t->cache->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (file < 0)
		return err_errno(e, errno, "could not read the cache of artifacts");
	return task_unpack_begin(t, file, true, e);
}

static bool task_may_start(const struct cache *c, const struct task *t)
{
	size_t all = 0, of_owner = 0;

	for (const struct task *o = c->tasks; o; o = o->next)
		if (o->stage != TASK_WAITING) {
			all++;
			of_owner += o->uid == t->uid;
		}
	return all < TASKS_MAX && of_owner < TASKS_OF_OWNER_MAX;
}

static void tasks_start(struct cache *c)
{
	struct task *next;

	for (struct task *t = c->tasks; t; t = next) {
		struct err e = {};

		next = t->next;
		if (t->stage != TASK_WAITING || !task_may_start(c, t))
			continue;
		if (task_dir(t, &e) && (t->copy_for ? task_copy_begin(t, &e) : task_fetch_begin(t, &e)))
			continue;
		task_failed(t, e.kind, e.msg);
		task_free(t);
	}
}

static void task_add(struct cache *c, const struct request *r, struct request *copy_for)
{
	struct task *t = xcalloc(1, sizeof(*t)), **last = &c->tasks;
	char id[RANDOM_ID_LEN + 1];

	*t = (struct task){.cache = c, .copy_for = copy_for, .url = xstrdup(r->payload.texts[0]),
		.sha256 = xstrdup(r->payload.texts[1]), .uid = r->uid, .limit = r->limit, .timeout = r->timeout, .dir = -1, .control = -1};
	memcpy(t->key, r->key, sizeof(t->key));
	io_random_id(id);
	snprintf(t->name, sizeof(t->name), ".new-%s", id);
	while (*last) /* in the order of arrival */
		last = &(*last)->next;
	*last = t;
}

static void request_copy(struct request *r, struct cache *c)
{
	task_add(c, r, r);
}

bool cache_start(struct request *r, struct cache *c, struct err *e)
{
	const struct net_payload *p = &r->payload;
	struct entry found = {};

	if (p->n != 2 || strlen(p->texts[1]) != 64)
		return err_set(e, ERR_INVALID, "an artifact needs a URL and a SHA-256");
	net_frame_artifact_key(p->texts[0], p->texts[1], r->uid, r->key);
	if (entry_read(c, r->key, &found)) {
		if (!c->o.private_copies) {
			request_answer_tree(r, c, r->key);
			return true;
		}
		request_copy(r, c);
	} else {
		const struct task *t = c->tasks;

		while (t && (t->copy_for || strcmp(t->key, r->key) != 0))
			t = t->next;
		if (!t) {
			entry_remove(c, r->key); /* a damaged entry, if any */
			task_add(c, r, NULL);
		}
	}
	tasks_start(c);
	return true;
}

void cache_drop(struct request *r, struct cache *c)
{
	char copy[64];
	struct task *next;

	r->stage = REQUEST_ENDED; /* it waits for nothing any more */
	for (struct task *t = c->tasks; t; t = next) {
		bool wanted = false;

		next = t->next;
		for (const struct request *o = *c->o.requests; o; o = o->next)
			wanted |= request_waits_for(t, o);
		if (!wanted)
			task_free(t);
	}
	private_copy_name(r, copy);
	if (c->o.private_copies && r->key[0] && faccessat(c->dir, copy, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		entry_remove(c, copy);
	r->key[0] = '\0';
	tasks_start(c);
}

void cache_hold(struct request *r, struct cache *c, const char *key)
{
	(void)c;
	memcpy(r->key, key, sizeof(r->key));
	r->stage = REQUEST_ENDED;
}

void cache_synced(struct cache *c)
{
	struct entry *v = NULL;
	size_t n = entries_list(c, &v);

	c->synced = true;
	for (size_t i = 0; i < n; i++)
		if (!v[i].in_use && text_starts(v[i].name, "run-"))
			entry_remove(c, v[i].name);
	entries_free(v, n);
	entries_evict(c, 0);
}

void cache_set_budget(struct cache *c, int64_t bytes)
{
	c->budget = bytes;
	entries_evict(c, 0);
}

/* ---- life ---- */

/* Directories that an earlier process was making. */
static void cache_remove_stale(struct cache *c)
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
		entry_remove(c, names.v[i]);
}

bool cache_new(struct sd_event *ev, const struct cache_options *o, struct cache **ret, struct err *e)
{
	AUTO(cache) *c = xcalloc(1, sizeof(*c));
	int r = io_mkdirs(o->dir, 0700);

	c->ev = ev;
	c->o = *o;
	c->remover_control = -1;
	c->dir = r < 0 ? -1 : open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dir < 0)
		return err_errno(e, r < 0 ? -r : errno, "could not open the directory '%s'", o->dir);
	c->o.dir = NULL;
	cache_remove_stale(c);
	*ret = STEAL(c);
	return true;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	while (c->tasks)
		task_free(c->tasks);
	if (c->remover) {
		sd_event_source_disable_unref(c->remover_source);
		close(c->remover_control);
		kill(c->remover, SIGKILL);
		waitpid(c->remover, NULL, 0);
	}
	auto_fd_close(&c->dir);
	free(c);
}
