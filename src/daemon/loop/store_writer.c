/* SPDX-License-Identifier: Apache-2.0 */
/* Collects waiting operations into batches and commits them, on the writer thread. */
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "daemon/loop/store_thread_private.h"
#include "daemon/metrics/metrics.h"
#include "store/events.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <stdio.h>
#include <time.h>

/* Operations in a transaction, which bounds how long it holds the write lock. */
#define BATCH_MAX 4096

/*
 * Under load, operations without a waiting client ("patient") are delayed by up to this time, so
 * that one commit serves several of them. A single operation after a pause is committed at once.
 */
#define LINGER (2 * USEC_MSEC)

/*
 * After a failed batch the store is tested with an empty batch, once or twice this time later
 * (random).
 */
#define PROBE_PAUSE (500 * USEC_MSEC)

static usec_t clock_read(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (usec_t)ts.tv_sec * USEC_SEC + ts.tv_nsec / 1000;
}

static usec_t monotonic_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/*
 * The thread for leases sends no probes: renewals are repeated anyway and must not wait behind a
 * probe.
 */
static bool probes(const struct store_thread *t)
{
	return t->fails_since && !t->o.lease;
}

static bool ready_to_go(const struct store_thread *t)
{
	usec_t now = monotonic_now();

	return t->waiting.first ? t->urgent > 0 || now - t->last_commit >= LINGER
				: probes(t) && now >= t->probe_at;
}

static void wait_for_ops(struct store_thread *t)
{
	usec_t until = t->waiting.first ? t->last_commit + LINGER : t->probe_at;
	struct timespec at = {until / USEC_SEC, until % USEC_SEC * 1000};

	if (t->waiting.first || probes(t))
		pthread_cond_timedwait(&t->write_wanted, &t->lock, &at);
	else
		pthread_cond_wait(&t->write_wanted, &t->lock);
}

/*
 * Takes the operations of the next batch. A bulk occupies the writer for a long time: it is a batch of its own, and the other
 * operations that wait are committed before it, at most once per bulk. So a due run waits for one bulk and not for several;
 * on SQLite a bulk in progress gives way to it (store_writer_gives_way()).
 */
static size_t take_waiting(struct store_thread *t, struct op **batch)
{
	struct op_queue bulks, others;
	bool bulk_turn, bulks_left;
	size_t n = 0;

	op_queue_init(&bulks);
	op_queue_init(&others);
	for (struct op *op; (op = op_queue_pop(&t->waiting));)
		op_queue_push(op->kind == OP_JOB_BULK ? &bulks : &others, op);
	bulk_turn = bulks.n && (t->bulk_turn || !others.n);
	while (n < (bulk_turn ? 1 : BATCH_MAX) && (bulk_turn ? bulks.n : others.n)) {
		batch[n] = op_queue_pop(bulk_turn ? &bulks : &others);
		t->urgent -= !batch[n++]->patient;
	}
	bulks_left = bulks.n > 0;
	for (struct op *op; (op = op_queue_pop(&others)) || (op = op_queue_pop(&bulks));)
		op_queue_push(&t->waiting, op);
	t->bulk_turn = bulks_left && !bulk_turn;
	t->claims = bulk_turn ? t->claims : 0; /* more operations than one batch has are rare */
	return n;
}

/* store_yield_fn, on the writer thread. */
bool store_writer_gives_way(void *arg)
{
	struct store_thread *t = arg;
	bool wanted;

	pthread_mutex_lock(&t->lock);
	wanted = t->claims > 0;
	pthread_mutex_unlock(&t->lock);
	return wanted && bulk_credit_spend(&t->bulk_credit, clock_read(CLOCK_THREAD_CPUTIME_ID));
}

/* A bulk that gave way is the next bulk, after the other operations that wait. */
static void bulk_return(struct store_thread *t, struct op *op)
{
	pthread_mutex_lock(&t->lock);
	op_queue_push_first(&t->waiting, op);
	t->urgent += !op->patient;
	t->bulk_turn = false;
	pthread_mutex_unlock(&t->lock);
}

/*
 * Waits for operations and takes them. The batch may be empty, to test the store. False: the thread
 * must end.
 */
static bool take_batch(struct store_thread *t, struct op **batch, size_t *ret_n)
{
	size_t n;

	pthread_mutex_lock(&t->lock);
	t->in_batch = 0;
	t->last_commit = monotonic_now();
	while (!t->stopping && !ready_to_go(t))
		wait_for_ops(t);
	n = take_waiting(t, batch);
	t->in_batch = n;
	*ret_n = n;
	n += !t->stopping;
	pthread_mutex_unlock(&t->lock);
	return n > 0;
}

static void note_health(struct store_thread *t, bool ok, const struct err *e)
{
	bool away = !ok && (e->kind == ERR_BUSY || e->kind == ERR_UNREACHABLE);

	pthread_mutex_lock(&t->lock);
	if (ok)
		t->answered = clock_boot(t->o.clock);
	if (!away)
		t->fails_since = 0;
	else if (!t->fails_since)
		t->fails_since = clock_boot(t->o.clock);
	if (away) {
		snprintf(t->why, sizeof(t->why), "%s", e->msg);
		t->probe_at = monotonic_now() + PROBE_PAUSE + io_random_upto(PROBE_PAUSE);
	}
	pthread_mutex_unlock(&t->lock);
}

static void events_join(struct event_list *to, struct event_list *from)
{
	if (to->n == 0) {
		event_list_done(to);
		*to = *from;
	} else {
		for (size_t i = 0; i < from->n; i++)
			event_list_add(to, from->v[i]);
		free(from->v);
	}
	*from = (struct event_list){};
}

static void return_batch(struct store_thread *t, struct op **batch, size_t n,
	const struct batch_wake *wake, const struct err *fatal)
{
	struct event_list events;

	event_take_written(t->writer, &events);
	pthread_mutex_lock(&t->lock);
	events_join(&t->events, &events);
	for (size_t i = 0; i < n; i++)
		op_queue_push(&t->done, batch[i]);
	if (wake)
		t->wake = *wake; /* otherwise the previous times still apply */
	t->woken = true;
	if (fatal && !t->fatal) {
		t->fatal = true;
		t->fatal_err = *fatal;
	}
	pthread_mutex_unlock(&t->lock);
	store_thread_signal(t);
}

static size_t batch_operation(struct op *const *batch, size_t n)
{
	if (n == 0)
		return METRIC_OP_NONE;
	for (size_t i = 1; i < n; i++)
		if (batch[i]->kind != batch[0]->kind)
			return METRIC_OP_MIXED;
	return batch[0]->kind;
}

/* SQLite has no round trips. */
static void count_round_trips(struct store_thread *t, struct op *const *batch, size_t n, int64_t trips)
{
	if (trips == 0)
		return;
	metrics_add(t->o.metrics, METRIC_STORE_BATCHES, batch_operation(batch, n), 0, 1);
	metrics_add(t->o.metrics, METRIC_STORE_ROUND_TRIPS, batch_operation(batch, n), 0, trips);
}

static void count_batch(struct store_thread *t, size_t n, bool ok, usec_t took)
{
	metrics_add(t->o.metrics, METRIC_STORE_COMMITS, ok ? METRIC_OK : METRIC_FAILED, 0, 1);
	metrics_observe(t->o.metrics, METRIC_STORE_SECONDS, 0, took);
	metrics_observe(t->o.metrics, METRIC_STORE_BATCH, 0, (int64_t)n);
}

void *store_writer_main(void *arg)
{
	struct store_thread *t = arg;
	struct op **batch = xcalloc(BATCH_MAX, sizeof(struct op *));
	struct err fatal = {};
	size_t n;

	while (take_batch(t, batch, &n)) {
		struct batch_wake wake = BATCH_WAKE_NEVER;
		struct err e = {};
		usec_t from = monotonic_now();
		int64_t trips = store_round_trips(t->writer);
		bool ok;

		bulk_credit_begin(&t->bulk_credit, from, clock_read(CLOCK_THREAD_CPUTIME_ID));
		ok = fatal.kind == ERR_NONE && batch_apply(t->writer, batch, n, &wake, &e);
		if (!ok && fatal.kind == ERR_NONE && store_gave_way(t->writer)) {
			bulk_return(t, batch[0]);
			continue;
		}
		count_batch(t, n, ok, monotonic_now() - from);
		count_round_trips(t, batch, n, store_round_trips(t->writer) - trips);
		if (!ok && (e.kind == ERR_UNCERTAIN || e.kind == ERR_REFUSED))
			fatal = e;
		note_health(t, ok, &e);
		if (fatal.kind != ERR_NONE)
			store_ops_fail(batch, n, &fatal); /* no further write after one with an unknown result */
		return_batch(
			t, batch, n, ok ? &wake : NULL, fatal.kind != ERR_NONE ? &fatal : NULL);
	}
	free(batch);
	return NULL;
}
