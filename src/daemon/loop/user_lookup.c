/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up users directly, or on threads that report to the loop. */
#include "daemon/loop/user_lookup.h"
#include "base/text.h"
#include "store/ops/owners.h"
#include "store/store.h"
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define ENTRY_MAX 16384 /* bytes of one entry of the user database */
#define THREADS_MAX 8   /* look-ups at a time; a thread ends when no task waits */

/* The user database did not answer. This is not the same as an unknown user. */
static bool is_outage(int r)
{
	return r != 0 && r != ENOENT && r != ESRCH;
}

bool user_lookup_uid(const char *name, uint32_t *ret_uid, struct err *e)
{
	char text[ENTRY_MAX];
	struct passwd pw, *found = NULL;
	int r = getpwnam_r(name, &pw, text, sizeof(text), &found);

	if (found) {
		*ret_uid = found->pw_uid;
		return true;
	}
	if (is_outage(r))
		return err_set(e, ERR_BUSY, "could not look up user '%.64s', try again: %s", name,
			strerror(r));
	return err_set(e, ERR_NOT_FOUND, "there is no user '%.64s'", name);
}

bool user_lookup_name(uint32_t uid, bool or_number, char **ret, struct err *e)
{
	char text[ENTRY_MAX];
	struct passwd pw, *found = NULL;
	int r = getpwuid_r(uid, &pw, text, sizeof(text), &found);

	if (found) {
		*ret = xstrdup(found->pw_name);
		return true;
	}
	if (or_number) {
		*ret = xprintf("%u", uid);
		return true;
	}
	if (is_outage(r))
		return err_set(
			e, ERR_BUSY, "could not look up uid %u, try again: %s", uid, strerror(r));
	return err_set(e, ERR_DENIED, "uid %u has no name in the user database", uid);
}

bool user_lookup_owner(struct store *s, const char *ref, int64_t *ret, struct err *e)
{
	struct err why = {};
	uint32_t uid;

	if (text_parse_int(ref, 0, INT64_MAX, ret))
		return true;
	if (user_lookup_uid(ref, &uid, &why)) {
		if (!owner_read_number(s, uid, ref, ret, e))
			return false;
		if (*ret < 0)
			*ret = uid;
		return true;
	}
	if (why.kind == ERR_NOT_FOUND && !owner_read_named(s, ref, ret, e))
		return false;
	if (why.kind == ERR_NOT_FOUND && *ret >= 0)
		return true;
	*e = why;
	return false;
}

/* ---- on threads ---- */

struct task_list {
	struct user_lookup_task *first, **last;
};

struct user_lookup {
	pthread_mutex_t lock;       /* guards all members but 'source' */
	size_t threads;
	bool closed;                /* user_lookup_free() was called */
	struct task_list waiting, answered;
	int fd;                     /* eventfd: there are answers */
	sd_event_source *source;    /* used by the loop only */
};

static void task_push(struct task_list *l, struct user_lookup_task *t)
{
	t->next = NULL;
	*l->last = t;
	l->last = &t->next;
}

static struct user_lookup_task *task_pop(struct task_list *l)
{
	struct user_lookup_task *t = l->first;

	if (!t)
		return NULL;
	l->first = t->next;
	if (!l->first)
		l->last = &l->first;
	return t;
}

static void user_lookup_destroy(struct user_lookup *n)
{
	pthread_mutex_destroy(&n->lock);
	close(n->fd);
	free(n);
}

static void perform_lookup(struct user_lookup_task *t)
{
	t->ok = t->by_name ? user_lookup_uid(t->name, &t->uid, &t->err)
			   : user_lookup_name(t->uid, false, &t->name, &t->err);
}

static void *lookup_thread(void *arg)
{
	struct user_lookup *n = arg;
	struct user_lookup_task *t;
	bool last;

	pthread_mutex_lock(&n->lock);
	while ((t = task_pop(&n->waiting))) {
		pthread_mutex_unlock(&n->lock);
		perform_lookup(t);
		pthread_mutex_lock(&n->lock);
		if (n->closed) {
			t->done(t);
		} else {
			task_push(&n->answered, t);
			eventfd_write(n->fd, 1);
		}
	}
	n->threads--;
	last = n->closed && n->threads == 0;
	pthread_mutex_unlock(&n->lock);
	if (last)
		user_lookup_destroy(n);
	return NULL;
}

static struct user_lookup_task *answered_pop(struct user_lookup *n)
{
	struct user_lookup_task *t;

	pthread_mutex_lock(&n->lock);
	t = task_pop(&n->answered);
	pthread_mutex_unlock(&n->lock);
	return t;
}

static int on_answers(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct user_lookup_task *t;
	eventfd_t count;

	(void)source;
	(void)events;
	eventfd_read(fd, &count);
	while ((t = answered_pop(arg)))
		t->done(t);
	return 0;
}

bool user_lookup_new(struct sd_event *ev, struct user_lookup **ret, struct err *e)
{
	AUTO(user_lookup) *n = xcalloc(1, sizeof(*n));
	int r;

	pthread_mutex_init(&n->lock, NULL);
	n->waiting.last = &n->waiting.first;
	n->answered.last = &n->answered.first;
	n->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->fd < 0)
		return err_errno(e, errno, "could not make an eventfd");
	r = sd_event_add_io(ev, &n->source, n->fd, EPOLLIN, on_answers, n);
	if (r < 0)
		return err_errno(e, -r, "could not watch an eventfd");
	*ret = STEAL(n);
	return true;
}

void user_lookup_free(struct user_lookup *n)
{
	struct user_lookup_task *t;
	bool alone;

	if (!n)
		return;
	sd_event_source_disable_unref(n->source);
	pthread_mutex_lock(&n->lock);
	n->closed = true;
	while ((t = task_pop(&n->waiting)) || (t = task_pop(&n->answered)))
		t->done(t);
	alone = n->threads == 0;
	pthread_mutex_unlock(&n->lock);
	if (alone)
		user_lookup_destroy(n);
}

/* Detached, so that the end of the daemon does not wait for a database that does not answer. */
static bool start_thread(struct user_lookup *n)
{
	pthread_attr_t how;
	pthread_t thread;
	bool ok;

	pthread_attr_init(&how);
	pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	ok = pthread_create(&thread, &how, lookup_thread, n) == 0;
	pthread_attr_destroy(&how);
	return ok;
}

void user_lookup_submit(struct user_lookup *n, struct user_lookup_task *t)
{
	pthread_mutex_lock(&n->lock);
	task_push(&n->waiting, t);
	if (n->threads < THREADS_MAX && start_thread(n))
		n->threads++;
	if (n->threads == 0) { /* no thread could be started */
		t = task_pop(&n->waiting);
		err_set(&t->err, ERR_BUSY,
			"could not look up the user of this connection, try again");
		task_push(&n->answered, t);
		eventfd_write(n->fd, 1);
	}
	pthread_mutex_unlock(&n->lock);
}
