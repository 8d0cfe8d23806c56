/* SPDX-License-Identifier: Apache-2.0 */
/* Logs committed events; limits the rate of records of refused requests. */
#include "daemon/api/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/event_op.h"
#include "store/ops/op.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#define BURST 20                     /* refusals of one user that are recorded without delay */
#define REFILL (6 * USEC_SEC)        /* then one more refusal is recorded per this time */
/* suppressed refusals are recorded in one summary row after this time */
#define SUMMARY_AFTER USEC_MIN
/* number of similar events of one commit that are logged one by one; more are logged as one line */
#define ALIKE 8

/* Refusals of one user. */
struct refusal_count {
	int64_t uid;
	int64_t tokens;
	usec_t refilled;   /* CLOCK_BOOTTIME */
	int64_t left_out;  /* suppressed since the last summary */
	struct act last;   /* the newest of these */
	const char *code;  /* static: error code of the newest */
};

struct audit_watch {
	struct audit *audit;
	void (*fn)(void *arg);
	void *arg;
	LIST_ENTRY(audit_watch) list;
};

struct audit {
	struct sd_event *ev;
	const struct clock *clock;
	struct store_thread *store; /* NULL: not set yet, or removed */
	struct map refusal_counts;         /* by uid, owned */
	sd_event_source *timer;     /* for the summaries; NULL: nothing was suppressed */
	LIST_HEAD(, audit_watch) watches;
};

struct audit *audit_new(struct sd_event *ev, const struct clock *clock)
{
	struct audit *a = xcalloc(1, sizeof(*a));

	a->ev = sd_event_ref(ev);
	a->clock = clock;
	return a;
}

void audit_free(struct audit *a)
{
	struct refusal_count *t;

	if (!a)
		return;
	assert(LIST_EMPTY(&a->watches));
	for (size_t i = 0; (t = map_next(&a->refusal_counts, &i));)
		free(t);
	map_done(&a->refusal_counts);
	sd_event_source_disable_unref(a->timer);
	sd_event_unref(a->ev);
	free(a);
}

/* ---- the log ---- */

static void write_actor(struct buf *b, const struct event *ev)
{
	if (ev->uid < 0) {
		buf_str(b, "the daemon");
		return;
	}
	if (ev->who)
		buf_printf(b, "'%s' (uid %" PRId64 ")", ev->who, ev->uid);
	else
		buf_printf(b, "uid %" PRId64, ev->uid);
	if (ev->origin)
		buf_printf(b, " from %s", ev->origin);
}

/*
 * The audit trail has every submission. A line for each would exceed the rate of the journal, which then drops other lines, too.
 */
static enum log_level level_of(const struct event *ev)
{
	return ev->what == EVENT_JOB_ADD && strcmp(ev->result, "ok") == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

static void log_one(const struct event *ev)
{
	AUTO_DONE(buf) b = {};

	if (!log_wants(level_of(ev)))
		return;
	buf_printf(&b, "audit: %s by ", event_what_name(ev->what));
	write_actor(&b, ev);
	if (ev->object)
		buf_printf(&b, " on '%s'", ev->object);
	buf_printf(&b, ": %s", ev->result);
	if (ev->detail)
		buf_printf(&b, " (%s)", ev->detail);
	log_line(level_of(ev), &(struct log_about){.job = ev->job, .run = ev->run}, "%s", b.data);
}

static bool is_alike(const struct event *a, const struct event *b)
{
	return a->what == b->what && a->uid == b->uid && text_equal(a->origin, b->origin) &&
	       text_equal(a->result, b->result);
}

static void log_many(const struct event *first, const struct event *last, size_t n)
{
	AUTO_DONE(buf) b = {};

	if (!log_wants(level_of(first)))
		return;
	buf_printf(&b, "audit: %s by ", event_what_name(first->what));
	write_actor(&b, first);
	buf_printf(&b, ": %s, %zu times, jobs %" PRId64 " to %" PRId64, first->result, n,
		first->job, last->job);
	log_line(level_of(first), NULL, "%s", b.data);
}

void audit_wake_followers(struct audit *a)
{
	struct audit_watch *w, *next;

	for (w = LIST_FIRST(&a->watches); w; w = next) {
		next = LIST_NEXT(w, list);
		w->fn(w->arg);
	}
}

void audit_committed(struct audit *a, const struct event_list *l)
{
	for (size_t i = 0, j; i < l->n; i = j) {
		for (j = i + 1; j < l->n && is_alike(l->v[i], l->v[j]); j++)
			;
		if (j - i > ALIKE)
			log_many(l->v[i], l->v[j - 1], j - i);
		else
			for (size_t k = i; k < j; k++)
				log_one(l->v[k]);
	}
	audit_wake_followers(a);
}

struct audit_watch *audit_watch_new(struct audit *a, void (*fn)(void *arg), void *arg)
{
	struct audit_watch *w;

	if (!a)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	*w = (struct audit_watch){.audit = a, .fn = fn, .arg = arg};
	LIST_INSERT_HEAD(&a->watches, w, list);
	return w;
}

void audit_watch_free(struct audit_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(w, list);
	free(w);
}

/* ---- refusals ---- */

static void write_event(struct audit *a, const struct act *act, const char *code,
	const char *detail)
{
	struct op *op;

	if (!a->store)
		return;
	op = op_new(OP_EVENT, NULL, NULL);
	op->act = *act;
	op_fill(event_op(op), .result = code, .now = clock_now(a->clock));
	snprintf(event_op(op)->detail, sizeof(event_op(op)->detail), "%s", detail);
	op->patient = true;
	store_thread_submit(a->store, op);
}

static void summarise(struct audit *a, struct refusal_count *t)
{
	struct act act = t->last;
	char detail[200];

	act.what = EVENT_REFUSED_MORE;
	act.object[0] = '\0';
	snprintf(detail, sizeof(detail), "%" PRId64 " more; the last was %s '%s'", t->left_out,
		event_what_name(t->last.what), t->last.object);
	write_event(a, &act, t->code, detail);
	t->left_out = 0;
}

static int on_summary(sd_event_source *source, uint64_t usec, void *arg)
{
	usec_t full = BURST * REFILL;
	struct audit *a = arg;
	struct refusal_count *t;

	(void)source;
	(void)usec;
	for (size_t i = 0; (t = map_next(&a->refusal_counts, &i));) {
		if (t->left_out > 0)
			summarise(a, t);
		if (clock_boot(a->clock) - t->refilled > full)
			free(map_take(&a->refusal_counts, t->uid));
	}
	a->timer = sd_event_source_disable_unref(a->timer);
	return 0;
}

void audit_set_store(struct audit *a, struct store_thread *store)
{
	struct refusal_count *t;

	for (size_t i = 0; !store && (t = map_next(&a->refusal_counts, &i));)
		if (t->left_out > 0)
			summarise(a, t);
	a->store = store;
}

static struct refusal_count *refusal_count_of(struct audit *a, int64_t uid)
{
	struct refusal_count *t = map_get(&a->refusal_counts, uid);
	usec_t now = clock_boot(a->clock);
	int64_t more;

	if (!t) {
		t = xcalloc(1, sizeof(*t));
		*t = (struct refusal_count){.uid = uid, .tokens = BURST, .refilled = now};
		map_put(&a->refusal_counts, uid, t);
	}
	more = (now - t->refilled) / REFILL;
	t->tokens = t->tokens + more > BURST ? BURST : t->tokens + more;
	t->refilled += more * REFILL;
	return t;
}

/* An error of the store itself cannot be recorded in the store. */
static bool worth_a_row(enum err_kind kind)
{
	return kind == ERR_INVALID || kind == ERR_NOT_FOUND || kind == ERR_CONFLICT ||
	       kind == ERR_DENIED || kind == ERR_LIMIT || kind == ERR_TOO_LARGE;
}

/* The message of an invalid request may quote a secret from it, so only the field is recorded. */
static const char *safe_detail(const struct err *why)
{
	return why->kind == ERR_INVALID || why->kind == ERR_TOO_LARGE ? why->field : why->msg;
}

void audit_refused(struct audit *a, const struct act *act, const struct err *why)
{
	const char *code = err_kind_info(why->kind)->code;
	struct refusal_count *t;

	if (act->what == EVENT_NONE || !worth_a_row(why->kind))
		return;
	t = refusal_count_of(a, act->by.uid);
	if (t->tokens > 0) {
		t->tokens--;
		write_event(a, act, code, safe_detail(why));
		return;
	}
	t->left_out++;
	t->last = *act;
	t->code = code;
	if (!a->timer && sd_event_add_time_relative(a->ev, &a->timer, CLOCK_MONOTONIC,
				 SUMMARY_AFTER, USEC_SEC, on_summary, a) < 0)
		a->timer = NULL; /* the next refusal tries again */
}

void audit_refused_op(struct audit *a, const struct op *op)
{
	if (!op->ok && op->kind != OP_EVENT)
		audit_refused(a, &op->act, &op->err);
}
