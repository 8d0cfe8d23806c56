/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame to a worker: the order is admitted, its owner looked up, the process launched. */
#include "exec/starts.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/admit.h"
#include "exec/worker.h"
#include <string.h>

#define WAITING_MAX 4096

struct start {
	struct frame_start frame;
	struct payload payload; /* owned */
	int in, artifact;       /* owned; -1: none */
	struct start *next;
};

static void start_free(struct start *s)
{
	payload_done(&s->payload);
	auto_fd_close(&s->in);
	auto_fd_close(&s->artifact);
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

/* Who the owner is, is known. */
static void go(struct starts *st, const struct start *s, const struct user_answer *a)
{
	enum start_failure why;
	struct err e = {};

	if (!a->user)
		refuse(st, s, a->failure, a->error);
	else if (!admit_user(&s->payload.order, a->user, &why, &e))
		refuse(st, s, why, e.msg);
	else
		tell(workers_start(st->workers, &(struct worker_start){.frame = &s->frame, .payload = &s->payload,
			.user = a->user, .in = s->in, .artifact = s->artifact}));
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

static void on_known(uid_t uid, const struct user_answer *a, void *arg)
{
	struct starts *st = arg;

	for (struct start **at = &st->first; *at;) {
		struct start *s;

		if ((uid_t)(*at)->payload.order.uid != uid) {
			at = &(*at)->next;
			continue;
		}
		s = take(st, at);
		go(st, s, a);
		start_free(s);
	}
}

void starts_init(struct starts *st, const struct starts_options *o)
{
	*st = (struct starts){.workers = o->workers, .admission = o->admission,
		.users = {.ep = o->ep, .workers = o->workers, .fn = on_known, .arg = st,
			.pam = admission_asks_pam(o->admission)}};
	st->last = &st->first;
}

void starts_done(struct starts *st)
{
	starts_drop(st);
	users_done(&st->users);
}

static void decide(struct starts *st, struct start *s /* moved */)
{
	struct user_answer a = {.user = admission_self(st->admission)};

	if (!a.user && !users_ask(&st->users, (uid_t)s->payload.order.uid, &a)) {
		*st->last = s;
		st->last = &s->next;
		st->n++;
		return;
	}
	go(st, s, &a);
	start_free(s);
}

void starts_add(struct starts *st, const struct start_parts *parts)
{
	struct start *s = xcalloc(1, sizeof(*s));
	enum start_failure why;
	struct err e = {};

	*s = (struct start){.frame = *parts->frame, .payload = *parts->payload, .in = parts->in,
		.artifact = parts->artifact};
	*parts->payload = (struct payload){};
	if (!admit_order(st->admission, &s->frame, &s->payload, &why, &e)) {
		refuse(st, s, why, e.msg);
		start_free(s);
	} else if (st->n >= WAITING_MAX) {
		refuse(st, s, START_TRANSIENT, "too many starts wait for the user database");
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

void starts_refuse(struct starts *st, const char *why)
{
	while (st->first) {
		struct start *s = take(st, &st->first);

		refuse(st, s, START_TRANSIENT, why);
		start_free(s);
	}
}
