/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame to a worker: the order is admitted, its owner looked up, his secrets read, the process launched. */
#include "exec/spawner/start_queue.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/spawner/admission.h"
#include "exec/worker/worker.h"
#include <string.h>

#define WAITING_MAX 4096

struct start {
	struct frame_start frame;
	struct payload payload; /* owned */
	int in, artifact;       /* owned; -1: none */
	struct starts *all;     /* borrowed */
	struct user *owner;     /* owned; of one whose secrets are being read */
	struct secrets_reading *reading; /* owned; NULL: not so */
	struct start *next;
};

static void start_free(struct start *s)
{
	payload_done(&s->payload);
	auto_fd_close(&s->in);
	auto_fd_close(&s->artifact);
	secrets_reading_free(s->reading);
	free(s->owner);
	free(s);
}

static void tell(struct worker *w)
{
	w->asked = true;
	worker_post(w, 0);
}

static void refuse(struct starts *st, const struct start *s, enum start_failure why, const char *error)
{
	tell(workers_refuse(st->workers, &s->frame, why, error));
}

/* The lease is looked at last: who the owner is, and his secrets, may have taken long. */
static void launch(struct starts *st, const struct start *s, const struct user *owner, struct secrets *secrets, struct cgroup *group)
{
	if (workers_lease_over(st->workers)) {
		refuse(st, s, START_LEASE, "the lease of this node is over");
		return;
	}
	tell(workers_start(st->workers, &(struct worker_start){.frame = &s->frame, .payload = &s->payload, .user = owner,
		.in = s->in, .artifact = s->artifact, .secrets = secrets, .group = group && group->dir >= 0 ? group : NULL}));
}

static void wait_for_it(struct starts *st, struct start *s /* moved */)
{
	s->next = NULL;
	*st->last = s;
	st->last = &s->next;
	st->n++;
}

static struct start *take(struct starts *st, struct start **at)
{
	struct start *s = *at;

	*at = s->next;
	if (!*at)
		st->last = at;
	st->n--;
	return s;
}

static void on_secrets(struct secrets *secrets, struct cgroup *group, const char *error, void *arg)
{
	struct start *s = arg, **at = &s->all->first;
	struct starts *st = s->all;

	while (*at != s)
		at = &(*at)->next;
	take(st, at);
	if (secrets)
		launch(st, s, s->owner, secrets, group);
	else
		refuse(st, s, START_SECRET, error);
	start_free(s);
}

/* Who the owner is, is known. */
static void go(struct starts *st, struct start *s /* moved */, const struct user_answer *a)
{
	const struct order *o = &s->payload.order;
	enum start_failure why;
	struct err e = {};

	if (!a->user) {
		refuse(st, s, a->failure, a->error);
	} else if (!admit_user(o, a->user, &why, &e)) {
		refuse(st, s, why, e.msg);
	} else if (o->secrets.n && s->frame.part == 0) {
		s->owner = xcalloc(1, sizeof(*s->owner));
		*s->owner = *a->user;
		if (secrets_read(&st->readers, o, s->owner, on_secrets, s, &s->reading, &e)) {
			wait_for_it(st, s);
			return;
		}
		refuse(st, s, START_TRANSIENT, e.msg);
	} else {
		launch(st, s, a->user, NULL, NULL);
	}
	start_free(s);
}

static void on_known(uid_t uid, const struct user_answer *a, void *arg)
{
	struct starts *st = arg;

	for (struct start **at = &st->first; *at;)
		if ((uid_t)(*at)->payload.order.uid != uid || (*at)->reading)
			at = &(*at)->next;
		else
			go(st, take(st, at), a);
	open_files_known(&st->files, uid, a);
}

void starts_init(struct starts *st, const struct starts_options *o)
{
	*st = (struct starts){.workers = o->workers, .admission = o->admission,
		.users = {.ep = o->ep, .workers = o->workers, .fn = on_known, .arg = st,
			.pam = admission_asks_pam(o->admission)},
		.readers = {.ep = o->ep, .workers = o->workers},
		.files = {.workers = o->workers, .admission = o->admission, .users = &st->users}};
	st->last = &st->first;
}

void starts_done(struct starts *st)
{
	starts_drop(st);
	open_files_done(&st->files);
	users_done(&st->users);
	secrets_readers_done(&st->readers);
}

static void decide(struct starts *st, struct start *s /* moved */)
{
	struct user_answer a = {.user = admission_self(st->admission)};

	if (!a.user && !users_ask(&st->users, (uid_t)s->payload.order.uid, &a)) {
		wait_for_it(st, s);
		return;
	}
	go(st, s, &a);
}

void starts_add(struct starts *st, const struct start_parts *parts)
{
	struct start *s = xcalloc(1, sizeof(*s));
	enum start_failure why;
	struct err e = {};

	*s = (struct start){.frame = *parts->frame, .payload = *parts->payload, .in = parts->in,
		.artifact = parts->artifact, .all = st};
	*parts->payload = (struct payload){};
	if (!admit_order(st->admission, &s->frame, &s->payload, s->in, &why, &e)) {
		refuse(st, s, why, e.msg);
		start_free(s);
	} else if (st->n >= WAITING_MAX) {
		refuse(st, s, START_TRANSIENT, "too many starts wait for the user database, or for secrets");
		start_free(s);
	} else {
		decide(st, s);
	}
}

bool starts_has(const struct starts *st, int64_t run, int64_t fence)
{
	for (const struct start *s = st->first; s; s = s->next)
		if (s->frame.run == run && s->frame.fence == fence)
			return true;
	return false;
}

void starts_cancel(struct starts *st, int64_t run, int64_t fence)
{
	for (struct start **at = &st->first; *at; at = &(*at)->next)
		if ((*at)->frame.run == run && (*at)->frame.fence == fence) {
			struct start *s = take(st, at);

			refuse(st, s, START_ERROR, "cancelled before it was started");
			start_free(s);
			return;
		}
}

void starts_drop(struct starts *st)
{
	while (st->first)
		start_free(take(st, &st->first));
}

void starts_refuse(struct starts *st, enum start_failure reason, const char *why)
{
	while (st->first) {
		struct start *s = take(st, &st->first);

		refuse(st, s, reason, why);
		start_free(s);
	}
}
