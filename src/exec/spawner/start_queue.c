/* SPDX-License-Identifier: Apache-2.0 */
/* Admits start requests, waits for their inputs, launches workers. */
#include "exec/spawner/start_queue.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/spawner/admission.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <string.h>

#define WAITING_MAX 4096

struct start {
	struct frame_start frame;
	struct payload payload; /* owned */
	int in, artifact;       /* owned; -1: none */
	struct start_queue *all;     /* borrowed */
	struct user *owner;     /* owned; set while secrets are being read */
	struct secret_reader *reading; /* owned; set while secrets are being read */
	struct start *next;
};

static void queued_start_free(struct start *s)
{
	payload_done(&s->payload);
	auto_fd_close(&s->in);
	auto_fd_close(&s->artifact);
	secret_reader_free(s->reading);
	free(s->owner);
	free(s);
}

static void worker_post_result(struct worker *w)
{
	w->asked = true;
	worker_report_queue(w, 0);
}

static void queued_start_refuse(struct start_queue *st, const struct start *s,
	enum start_failure why, const char *error)
{
	worker_post_result(worker_start_refuse(st->workers, &s->frame, why, error));
}

/* The lease is checked last, because user lookup and secrets may have taken seconds. */
static void queued_start_launch(struct start_queue *st, const struct start *s,
	const struct user *owner, struct secrets *secrets, struct cgroup *group)
{
	if (workers_lease_over(st->workers)) {
		queued_start_refuse(st, s, START_LEASE, "the lease of this node has expired");
		return;
	}
	worker_post_result(worker_start(st->workers, &(struct worker_start){.frame = &s->frame, .payload = &s->payload, .user = owner,
		.in = s->in, .artifact = s->artifact, .secrets = secrets, .group = group && group->dir >= 0 ? group : NULL}));
}

static void start_enqueue(struct start_queue *st, struct start *s /* moved */)
{
	s->next = NULL;
	*st->last = s;
	st->last = &s->next;
	st->n++;
}

static struct start *start_dequeue(struct start_queue *st, struct start **at)
{
	struct start *s = *at;

	*at = s->next;
	if (!*at)
		st->last = at;
	st->n--;
	return s;
}

static void on_secrets_read(struct secrets *secrets, struct cgroup *group, const char *error,
	void *arg)
{
	struct start *s = arg, **at = &s->all->first;
	struct start_queue *st = s->all;

	while (*at != s)
		at = &(*at)->next;
	start_dequeue(st, at);
	if (secrets)
		queued_start_launch(st, s, s->owner, secrets, group);
	else
		queued_start_refuse(st, s, START_SECRET, error);
	queued_start_free(s);
}

/* The user lookup is complete. */
static void start_with_user(struct start_queue *st, struct start *s /* moved */,
	const struct user_answer *a)
{
	const struct exec_spec *o = &s->payload.spec;
	enum start_failure why;
	struct err e = {};

	if (!a->user) {
		queued_start_refuse(st, s, a->failure, a->error);
	} else if (!admission_check_user(o, a->user, &why, &e)) {
		queued_start_refuse(st, s, why, e.msg);
	} else if (o->secrets.n && s->frame.part == 0) {
		s->owner = xcalloc(1, sizeof(*s->owner));
		*s->owner = *a->user;
		if (secret_reader_start(&st->readers, o, s->owner, on_secrets_read, s, &s->reading, &e)) {
			start_enqueue(st, s);
			return;
		}
		queued_start_refuse(st, s, START_TRANSIENT, e.msg);
	} else {
		queued_start_launch(st, s, a->user, NULL, NULL);
	}
	queued_start_free(s);
}

static void on_user_found(uid_t uid, const struct user_answer *a, void *arg)
{
	struct start_queue *st = arg;

	for (struct start **at = &st->first; *at;)
		if ((uid_t)(*at)->payload.spec.uid != uid || (*at)->reading)
			at = &(*at)->next;
		else
			start_with_user(st, start_dequeue(st, at), a);
	open_files_user_found(&st->files, uid, a);
}

void start_queue_init(struct start_queue *st, const struct start_queue_options *o)
{
	*st = (struct start_queue){.workers = o->workers, .admission = o->admission,
		.users = {.ep = o->ep, .workers = o->workers, .fn = on_user_found, .arg = st,
			.pam = admission_uses_pam(o->admission)},
		.readers = {.ep = o->ep, .workers = o->workers},
		.files = {.workers = o->workers, .admission = o->admission, .users = &st->users}};
	st->last = &st->first;
}

void start_queue_done(struct start_queue *st)
{
	start_queue_drop(st);
	open_files_done(&st->files);
	user_cache_done(&st->users);
	secret_readers_done(&st->readers);
}

static void start_lookup_user(struct start_queue *st, struct start *s /* moved */)
{
	struct user_answer a = {.user = admission_self(st->admission)};

	if (!a.user && !user_cache_get(&st->users, (uid_t)s->payload.spec.uid, &a)) {
		start_enqueue(st, s);
		return;
	}
	start_with_user(st, s, &a);
}

void start_queue_add(struct start_queue *st, const struct start_request *parts)
{
	struct start *s = xcalloc(1, sizeof(*s));
	enum start_failure why;
	struct err e = {};

	*s = (struct start){.frame = *parts->frame, .payload = *parts->payload, .in = parts->in,
		.artifact = parts->artifact, .all = st};
	*parts->payload = (struct payload){};
	if (!admission_check_order(st->admission, &s->frame, &s->payload, s->in, &why, &e)) {
		queued_start_refuse(st, s, why, e.msg);
		queued_start_free(s);
	} else if (st->n >= WAITING_MAX) {
		queued_start_refuse(st, s, START_TRANSIENT,
			"too many starts wait for user lookups or secrets");
		queued_start_free(s);
	} else {
		start_lookup_user(st, s);
	}
}

bool start_queue_has(const struct start_queue *st, int64_t run, int64_t fence)
{
	for (const struct start *s = st->first; s; s = s->next)
		if (s->frame.run == run && s->frame.fence == fence)
			return true;
	return false;
}

void start_queue_cancel(struct start_queue *st, int64_t run, int64_t fence)
{
	for (struct start **at = &st->first; *at; at = &(*at)->next)
		if ((*at)->frame.run == run && (*at)->frame.fence == fence) {
			struct start *s = start_dequeue(st, at);

			queued_start_refuse(st, s, START_ERROR, "cancelled before it was started");
			queued_start_free(s);
			return;
		}
}

void start_queue_drop(struct start_queue *st)
{
	while (st->first)
		queued_start_free(start_dequeue(st, &st->first));
}

void start_queue_refuse(struct start_queue *st, enum start_failure reason, const char *why)
{
	while (st->first) {
		struct start *s = start_dequeue(st, &st->first);

		queued_start_refuse(st, s, reason, why);
		queued_start_free(s);
	}
}
