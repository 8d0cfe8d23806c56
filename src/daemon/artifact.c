/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache. artifacts/KEY has the tree and its size; it gets that name when it is complete and on the disk. What begins
 * with a dot is being made or being removed. Fetching, unpacking and removing are done on threads, one per task;
 * which task runs and what goes is decided on the loop.
 */
#include "daemon/artifact.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "daemon/artifact_fetch.h"
#include "daemon/artifact_unpack.h"
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <time.h>

#define FETCHES_MAX 8           /* at a time */
#define FETCHES_OF_OWNER_MAX 4  /* of these */
#define STOP_PATIENCE (3 * USEC_SEC)

enum task_stage { TASK_WAITING, TASK_RUNNING, TASK_DONE };

struct task {
	struct artifacts *all;       /* borrowed */
	bool (*run)(struct task *t); /* on its thread */
	char key[ARTIFACT_KEY_MAX];  /* of a fetch; empty: something is removed */
	char *url, *sha256;          /* owned */
	struct strv names;           /* to be removed */
	uint32_t uid;
	struct artifacts_options o;  /* as they were when it began */
	pthread_t thread;
	_Atomic enum task_stage stage;
	bool ok;
	struct err why;
	struct task *next;
};

struct artifacts {
	struct artifacts_options o;
	int dir, wake;               /* owned */
	sd_event_source *source;
	atomic_bool stop;
	struct task *tasks;
};

char *artifact_key(const char *url, const char *sha256, char out[ARTIFACT_KEY_MAX])
{
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, url, strlen(url));
	sha256_end(&s, sum);
	snprintf(out, ARTIFACT_KEY_MAX, "%.64s-%.16s", sha256, sha256_hex(sum, hex));
	return out;
}

/* ---- on a thread ---- */

static bool make_tree(struct task *t, int dir, int64_t *ret_bytes)
{
	const struct artifacts *a = t->all;
	AUTO_FD file = openat(dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO_TEXT name = artifact_file_name(t->url);
	AUTO_FD tree = -1;

	if (file < 0 || mkdirat(dir, "tree", 0700) < 0 ||
		(tree = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(&t->why, errno, "could not write to the cache of artifacts");
	if (!artifact_fetch(&(struct artifact_source){.url = t->url, .sha256 = t->sha256, .limit = t->o.limit,
			.timeout = t->o.timeout, .public_only = t->o.public_only, .stop = &a->stop}, file, &t->why))
		return false;
	if (lseek(file, 0, SEEK_SET) < 0)
		return err_errno(&t->why, errno, "could not read the cache of artifacts");
	if (!artifact_unpack(&(struct artifact_parcel){.file = file, .tree = tree, .name = name, .limit = t->o.limit,
			.stop = &a->stop}, ret_bytes, &t->why))
		return err_wrap(&t->why, "the artifact '%.*s'", (int)strcspn(t->url, "?#"), t->url);
	unlinkat(dir, "file", 0);
	return true;
}

static bool finish(struct task *t, int dir, const char *name, int64_t bytes)
{
	AUTO_FD size = openat(dir, "size", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO_TEXT text = xprintf("%" PRId64 "\n", bytes);

	if (size < 0 || io_write_all(size, text, strlen(text)) < 0 || syncfs(dir) < 0 ||
		renameat(t->all->dir, name, t->all->dir, t->key) < 0 || fsync(t->all->dir) < 0)
		return err_errno(&t->why, errno, "could not write to the cache of artifacts");
	return true;
}

static bool run_fetch(struct task *t)
{
	char id[RANDOM_ID_LEN + 1];
	AUTO_TEXT name = NULL;
	AUTO_FD dir = -1;
	int64_t bytes = 0;

	io_random_id(id);
	name = xprintf(".new-%s", id);
	if (mkdirat(t->all->dir, name, 0700) < 0 ||
		(dir = openat(t->all->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(&t->why, errno, "could not write to the cache of artifacts");
	if (make_tree(t, dir, &bytes) && finish(t, dir, name, bytes))
		return true;
	artifact_remove(t->all->dir, name);
	return false;
}

static bool run_remove(struct task *t)
{
	for (size_t i = 0; i < t->names.n && !atomic_load(&t->all->stop); i++) {
		int r = artifact_remove(t->all->dir, t->names.v[i]);

		if (r < 0)
			err_errno(&t->why, -r, "could not remove '%s' from the cache of artifacts", t->names.v[i]);
	}
	return t->why.kind == ERR_NONE;
}

static void *task_main(void *arg)
{
	struct task *t = arg;
	struct artifacts *a = t->all;
	uint64_t one = 1;

	t->ok = t->run(t);
	atomic_store(&t->stage, TASK_DONE);
	if (write(a->wake, &one, sizeof(one)) < 0)
		return NULL; /* the counter is full: somebody is being woken */
	return NULL;
}

/* ---- tasks, on the loop ---- */

static void task_free(struct task *t)
{
	free(t->url);
	free(t->sha256);
	strv_done(&t->names);
	free(t);
}

static struct task *task_add(struct artifacts *a, bool (*run)(struct task *t))
{
	struct task *t = xcalloc(1, sizeof(*t)), **last = &a->tasks;

	t->all = a;
	t->run = run;
	while (*last) /* in the order they came */
		last = &(*last)->next;
	*last = t;
	return t;
}

static void task_start(struct task *t)
{
	int r;

	t->o = t->all->o;
	atomic_store(&t->stage, TASK_RUNNING);
	r = pthread_create(&t->thread, NULL, task_main, t);
	if (r == 0)
		return;
	atomic_store(&t->stage, TASK_WAITING); /* until another one ends, or is asked for */
	log_warning("could not start a thread for artifacts: %s", strerror(r));
}

static bool may_start(const struct artifacts *a, const struct task *t)
{
	size_t all = 0, of_owner = 0;

	for (const struct task *o = a->tasks; o; o = o->next)
		if (atomic_load(&o->stage) == TASK_RUNNING && o->key[0]) {
			all++;
			of_owner += o->uid == t->uid;
		}
	return !t->key[0] || (all < FETCHES_MAX && of_owner < FETCHES_OF_OWNER_MAX);
}

static void start_waiting(struct artifacts *a)
{
	for (struct task *t = a->tasks; t; t = t->next)
		if (atomic_load(&t->stage) == TASK_WAITING && may_start(a, t))
			task_start(t);
}

/* ---- what goes when there is no room ---- */

struct entry {
	char *name; /* owned */
	int64_t bytes;
	usec_t used;
};

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static bool entry_read(int dir, const char *name, struct entry *ret)
{
	AUTO_TEXT path = xprintf("%s/size", name);
	AUTO_FD fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_DONE(buf) text = {};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || io_read_all(fd, &text, 64) < 0 || !text.len)
		return false;
	text.data[strcspn(text.data, "\n")] = '\0';
	*ret = (struct entry){.used = (usec_t)st.st_mtim.tv_sec * USEC_SEC + st.st_mtim.tv_nsec / 1000};
	return parse_int(text.data, 0, INT64_MAX, &ret->bytes);
}

/* Complete ones into *ret, names with a dot into 'dotted', if wanted. */
static size_t list(const struct artifacts *a, struct entry **ret, struct strv *dotted)
{
	int fd = openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	size_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	while (d && (entry = readdir(d))) {
		struct entry found;

		if (entry->d_name[0] == '.') {
			if (dotted && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				strv_add(dotted, entry->d_name);
			continue;
		}
		if (!entry_read(a->dir, entry->d_name, &found))
			found = (struct entry){}; /* not of ours, or damaged: the first to go */
		found.name = xstrdup(entry->d_name);
		*ret = xrealloc(*ret, (n + 1) * sizeof(**ret));
		(*ret)[n++] = found;
	}
	if (d)
		closedir(d);
	return n;
}

/* A name with a dot is nobody's any more; the rest is done in peace. */
static void set_aside(struct artifacts *a, const char *name, struct strv *ret)
{
	char id[RANDOM_ID_LEN + 1];
	AUTO_TEXT old = NULL;

	io_random_id(id);
	old = xprintf(".old-%s", id);
	if (renameat(a->dir, name, a->dir, old) == 0)
		strv_add(ret, old);
	else
		log_warning("could not remove the artifact '%s': %s", name, strerror(errno));
}

static void remove_later(struct artifacts *a, struct strv *names /* moved */)
{
	if (names->n == 0)
		return;
	task_add(a, run_remove)->names = *names;
	*names = (struct strv){};
	start_waiting(a);
}

static void keep_budget(struct artifacts *a)
{
	struct entry *v = NULL;
	AUTO_DONE(strv) going = {};
	size_t n = list(a, &v, NULL);
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].bytes;
	if (n > 0)
		qsort(v, n, sizeof(*v), by_use);
	for (size_t i = 0; i < n; i++) {
		if (sum > a->o.budget && !a->o.in_use(v[i].name, a->o.arg)) {
			sum -= v[i].bytes;
			set_aside(a, v[i].name, &going);
		}
		free(v[i].name);
	}
	free(v);
	remove_later(a, &going);
}

/* ---- asking ---- */

static int tree_open(const struct artifacts *a, const char *key)
{
	AUTO_TEXT path = xprintf("%s/tree", key);
	AUTO_TEXT size = xprintf("%s/size", key);
	int fd = openat(a->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		utimensat(a->dir, size, NULL, AT_SYMLINK_NOFOLLOW); /* those used last stay longest */
	return fd;
}

int artifacts_get(struct artifacts *a, const char *url, const char *sha256, uint32_t uid)
{
	char key[ARTIFACT_KEY_MAX];
	int fd = tree_open(a, artifact_key(url, sha256, key));
	struct task *t;

	if (fd >= 0)
		return fd;
	for (t = a->tasks; t; t = t->next)
		if (strcmp(t->key, key) == 0)
			return -1;
	t = task_add(a, run_fetch);
	memcpy(t->key, key, sizeof(key));
	t->url = xstrdup(url);
	t->sha256 = xstrdup(sha256);
	t->uid = uid;
	start_waiting(a);
	return -1;
}

static void task_ended(struct artifacts *a, struct task *t)
{
	pthread_join(t->thread, NULL);
	if (!t->key[0] && !t->ok)
		log_warning("%s", t->why.msg);
	if (t->key[0])
		a->o.on_done(t->key, t->ok ? NULL : &t->why, a->o.arg);
	if (t->key[0] && t->ok)
		keep_budget(a); /* after those who waited for it have it */
	task_free(t);
}

static int on_wake(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct artifacts *a = arg;
	uint64_t n;

	(void)source;
	(void)events;
	if (read(fd, &n, sizeof(n)) < 0)
		return 0;
	for (struct task **at = &a->tasks, *t; (t = *at);) {
		if (atomic_load(&t->stage) != TASK_DONE) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		task_ended(a, t);
		at = &a->tasks; /* whoever heard of it may have asked for another one */
	}
	start_waiting(a);
	return 0;
}

/* ---- life ---- */

void artifacts_set_limits(struct artifacts *a, int64_t limit, int64_t budget, usec_t timeout)
{
	a->o.limit = limit;
	a->o.budget = budget;
	a->o.timeout = timeout;
	keep_budget(a);
}

static bool open_directory(struct artifacts *a, const char *state_dir, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/" ARTIFACT_DIRECTORY, state_dir);
	int r = io_mkdirs(path, 0700);

	if (r == 0)
		a->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->dir < 0)
		return err_errno(e, r < 0 ? -r : errno, "could not open the directory '%s'", path);
	return true;
}

bool artifacts_new(struct sd_event *ev, const struct artifacts_options *o, struct artifacts **ret, struct err *e)
{
	AUTO(artifacts) *a = xcalloc(1, sizeof(*a));
	AUTO_DONE(strv) left = {};
	struct entry *v = NULL;
	int r;

	a->o = *o;
	a->o.state_dir = NULL;
	a->dir = a->wake = -1;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) /* before there is a thread */
		return err_set(e, ERR_INTERNAL, "could not start libcurl");
	if (!open_directory(a, o->state_dir, e))
		return false;
	a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = a->wake < 0 ? -errno : sd_event_add_io(ev, &a->source, a->wake, EPOLLIN, on_wake, a);
	if (r < 0)
		return err_errno(e, -r, "could not prepare for artifacts");
	for (size_t n = list(a, &v, &left); n > 0;)
		free(v[--n].name);
	free(v);
	remove_later(a, &left); /* of an earlier life */
	*ret = STEAL(a);
	return true;
}

/* False: a thread hangs in the kernel, on a file system that is gone perhaps. It is left behind with what it uses. */
static bool tasks_end(struct artifacts *a)
{
	usec_t until = clock_boot(&clock_system) + STOP_PATIENCE;

	for (struct task *t; (t = a->tasks);) {
		if (atomic_load(&t->stage) == TASK_RUNNING) {
			if (clock_boot(&clock_system) > until)
				return false;
			nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
			continue;
		}
		if (atomic_load(&t->stage) == TASK_DONE)
			pthread_join(t->thread, NULL);
		a->tasks = t->next;
		task_free(t);
	}
	return true;
}

void artifacts_free(struct artifacts *a)
{
	if (!a)
		return;
	sd_event_source_disable_unref(a->source);
	atomic_store(&a->stop, true);
	if (!tasks_end(a))
		return;
	if (a->dir >= 0)
		close(a->dir);
	if (a->wake >= 0)
		close(a->wake);
	free(a);
	curl_global_cleanup();
}
