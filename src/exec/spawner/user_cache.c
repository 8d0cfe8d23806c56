/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up users in child processes. Entries expire by age or when a file of the user database changes. */
#include "exec/spawner/user_cache.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/proto/epoll_source.h"
#include "exec/spawner/lookup_process.h"
#include "exec/spawner/reexec_state.h"
#include "exec/worker/orphans.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CACHE_ENTRIES_MAX 4096             /* entries; more are evicted */
#define LOOKUPS_MAX 64              /* concurrent lookup processes */
#define ABSENT_TTL (2 * USEC_SEC) /* of a negative answer */

/* The files of local users. Changes in a directory service are seen after USER_CACHE_TTL. */
static const char *const files[] = {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"};

struct user_files {
	struct {
		dev_t dev;
		ino_t ino;
		off_t size;
		struct timespec mtime, ctime;
	} of[ELEMENTS(files)];
};

struct user_entry {
	struct user_cache *all;
	uid_t uid;
	struct epoll_source pipe;          /* from the lookup process; -1: no lookup is running */
	struct deadline deadline;
	int pidfd;
	size_t got;
	struct lookup_answer *answer; /* owned; NULL: never looked up */
	bool known;
	struct user_files stamp;          /* of the files before the lookup */
	usec_t until;                /* CLOCK_BOOTTIME; the entry expires */
};

static void files_stamp_read(struct user_files *s)
{
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ELEMENTS(files); i++) {
		struct stat st;

		if (stat(files[i], &st) < 0)
			continue;
		s->of[i].dev = st.st_dev;
		s->of[i].ino = st.st_ino;
		s->of[i].size = st.st_size;
		s->of[i].mtime = st.st_mtim;
		s->of[i].ctime = st.st_ctim;
	}
}

/* The starts of one loop iteration share one look at the files. */
static const struct user_files *files_stamp_recent(struct user_cache *us)
{
	if (!us->files)
		us->files = xcalloc(1, sizeof(*us->files));
	if (!us->files_seen)
		files_stamp_read(us->files);
	us->files_seen = true;
	return us->files;
}

static void entry_lookup_stop(struct user_entry *n)
{
	deadline_clear(&n->all->deadlines, &n->deadline);
	if (n->pipe.fd >= 0)
		n->all->asking--;
	epoll_source_close(&n->pipe);
	if (n->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, n->pidfd, SIGKILL, NULL, 0);
		close(n->pidfd);
	}
	n->pidfd = -1;
}

static void cache_entry_free(struct user_entry *n)
{
	entry_lookup_stop(n);
	free(n->answer);
	free(n);
}

void user_cache_done(struct user_cache *us)
{
	struct user_entry *n;

	for (size_t i = 0; (n = map_next(&us->by_uid, &i));)
		cache_entry_free(n);
	map_done(&us->by_uid);
	deadlines_done(&us->deadlines);
	free(us->files);
	us->files = NULL;
}

static struct user_answer entry_answer(const struct user_entry *n)
{
	const struct lookup_answer *a = n->answer;

	if (a->failure < 0)
		return (struct user_answer){.user = &a->user};
	return (struct user_answer){.failure = (enum start_failure)a->failure, .error = a->error};
}

static void entry_set_failure(struct user_entry *n, const char *why)
{
	n->answer->failure = START_TRANSIENT;
	snprintf(n->answer->error, sizeof(n->answer->error), "uid %u could not be looked up: %s",
		(unsigned)n->uid, why);
}

/* The lookup is over: the process has answered or ended, or 'why' is the reason of a failure. */
static void entry_lookup_finish(struct user_entry *n, const char *why)
{
	struct user_cache *us = n->all;
	usec_t now = clock_boot(&clock_system);
	struct user_answer a;

	if (why)
		entry_set_failure(n, why);
	else if (n->got != sizeof(*n->answer) || !lookup_process_answer_valid(n->answer) ||
		 (n->answer->failure < 0 && n->answer->user.uid != n->uid))
		entry_set_failure(n, "the lookup process ended without an answer");
	entry_lookup_stop(n);
	a = entry_answer(n);
	n->known = a.user || a.failure != START_TRANSIENT; /* a transient failure is not cached */
	n->until = now + (a.user ? USER_CACHE_TTL : ABSENT_TTL);
	us->fn(n->uid, &a, us->arg);
}

static void on_lookup_answer(struct epoll_source *s, uint32_t events)
{
	struct user_entry *n = CONTAINER_OF(s, struct user_entry, pipe);
	ssize_t r;

	(void)events;
	if (s->fd < 0)
		return;
	r = read(s->fd, (char *)n->answer + n->got, sizeof(*n->answer) - n->got);
	if (r > 0)
		n->got += (size_t)r;
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r <= 0 || n->got == sizeof(*n->answer))
		entry_lookup_finish(n, NULL);
}

static int entry_lookup_start(struct user_entry *n)
{
	char number[16];
	pid_t pid;
	int r;

	snprintf(number, sizeof(number), "%u", (unsigned)n->uid);
	if (!n->answer)
		n->answer = xcalloc(1, sizeof(*n->answer));
	n->got = 0;
	n->known = false;
	files_stamp_read(&n->stamp);
	if (n->all->asking >= LOOKUPS_MAX)
		return -EAGAIN;
	r = lookup_process_start(&(struct lookup_request){.whom = number, .pam = n->all->pam}, &pid,
		&n->pipe.fd);
	if (r < 0)
		return r;
	n->all->asking++;
	orphans_add_helper(n->all->workers, pid);
	n->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (n->pidfd < 0 || epoll_source_watch(n->all->ep, &n->pipe, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	deadline_set(&n->all->deadlines, &n->deadline, clock_boot(&clock_system) + LOOKUP_TIMEOUT);
	return 0;
}

/* Entries with a running lookup are kept: a start waits for them. */
static void cache_evict(struct user_cache *us, usec_t now)
{
	struct user_entry *n;

	for (size_t i = 0; (n = map_next(&us->by_uid, &i));)
		if (n->pipe.fd < 0 && (n->until <= now || us->by_uid.used >= CACHE_ENTRIES_MAX)) {
			map_take(&us->by_uid, n->uid);
			cache_entry_free(n);
			i = 0;
		}
}

static struct user_entry *cache_entry_get(struct user_cache *us, uid_t uid, usec_t now)
{
	struct user_entry *n = map_get(&us->by_uid, uid);

	if (n)
		return n;
	if (us->by_uid.used >= CACHE_ENTRIES_MAX)
		cache_evict(us, now);
	n = xcalloc(1, sizeof(*n));
	*n = (struct user_entry){.all = us, .uid = uid, .pipe = {-1, on_lookup_answer}, .pidfd = -1};
	map_put(&us->by_uid, uid, n);
	return n;
}

bool user_cache_get(struct user_cache *us, uid_t uid, struct user_answer *ret)
{
	usec_t now = clock_boot(&clock_system);
	struct user_entry *n = cache_entry_get(us, uid, now);
	int r;

	if (n->pipe.fd >= 0)
		return false;
	if (n->known && now < n->until && memcmp(files_stamp_recent(us), &n->stamp, sizeof(n->stamp)) == 0) {
		*ret = entry_answer(n);
		return true;
	}
	r = entry_lookup_start(n);
	if (r == 0)
		return false;
	entry_set_failure(n, strerror(-r));
	entry_lookup_stop(n);
	*ret = entry_answer(n);
	return true;
}

usec_t user_cache_next_timeout(const struct user_cache *us)
{
	return deadlines_next(&us->deadlines);
}

void user_cache_timeouts(struct user_cache *us, usec_t now)
{
	struct deadline *d;

	us->files_seen = false;
	while ((d = deadlines_take(&us->deadlines, now)))
		entry_lookup_finish(CONTAINER_OF(d, struct user_entry, deadline),
			"the user database did not answer in time");
}
