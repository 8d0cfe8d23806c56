/* SPDX-License-Identifier: Apache-2.0 */
/* Queues operations for the store threads; delivers their results on the loop. */
#include "daemon/loop/store_thread.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/loop/bulk_credit.h"
#include "daemon/loop/store_queues.h"
#include "daemon/metrics/metrics.h"
#include "store/events.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
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

/* A reading thread with its own connection. */
struct reader {
	struct store_thread *t;
	struct store *store; /* NULL: opened for the first task */
	pthread_t thread;
	bool runs, works;
	pthread_cond_t wanted;
	struct fair_queue tasks; /* guarded by the lock of 't' */
};

struct store_thread {
	struct store_thread_options o;
	struct store *writer;
	pthread_t writer_thread;
	bool writer_runs;
	struct reader short_reads, long_reads;
	int done_fd;
	sd_event_source *done_source;

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t write_wanted;
	bool stopping;
	struct op_queue waiting, done;
	struct task_queue reads_done;
	bool bulk_turn;          /* the next batch is a bulk */
	size_t claims;           /* waiting operations that start due runs */
	struct bulk_credit bulk_credit; /* of the writer thread */
	size_t in_batch, urgent; /* urgent: waiting operations that are not patient */
	usec_t last_commit;
	/* monotonic: time of the next empty batch while fails_since is set */
	usec_t probe_at;
	usec_t fails_since;      /* boottime of the first failed batch; 0: the last one succeeded */
	usec_t answered;         /* boottime of the last successful batch */
	char why[512];           /* error of the last failed batch */
	struct batch_wake wake;
	struct event_list events; /* committed and not delivered yet */
	bool woken, fatal;
	struct err fatal_err;
};

static void signal_loop(struct store_thread *t)
{
	eventfd_write(t->done_fd, 1);
}

static void fail_all(struct op **ops, size_t n, const struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		ops[i]->ok = false;
		ops[i]->err = *e;
	}
}

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
 * on SQLite a bulk in progress gives way to it (bulk_gives_way()).
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
static bool bulk_gives_way(void *arg)
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
	signal_loop(t);
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

static void *write_batches(void *arg)
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
			fail_all(batch, n, &fatal); /* no further write after one with an unknown result */
		return_batch(
			t, batch, n, ok ? &wake : NULL, fatal.kind != ERR_NONE ? &fatal : NULL);
	}
	free(batch);
	return NULL;
}

static bool open_reader(struct reader *r, struct err *e)
{
	struct store_options o = {.where = r->t->o.where, .read_only = true};

	return r->store || store_open(&o, &r->store, e);
}

static void *serve_reads(void *arg)
{
	struct reader *r = arg;
	struct store_thread *t = r->t;

	for (;;) {
		struct read_task *task;
		struct err e = {};

		pthread_mutex_lock(&t->lock);
		while (!fair_queue_ready(&r->tasks) && !t->stopping)
			pthread_cond_wait(&r->wanted, &t->lock);
		task = (struct read_task *)fair_queue_pop(&r->tasks, t->stopping);
		r->works = task != NULL;
		pthread_mutex_unlock(&t->lock);
		if (!task)
			return NULL;
		if (!open_reader(r, &e))
			log_warning("could not open another connection to the store: %s", e.msg);
		task->work(r->store, task);
		pthread_mutex_lock(&t->lock);
		fair_queue_charge(&t->short_reads.tasks, task->item.key, (int64_t)task->charge);
		task_queue_push(&t->reads_done, task);
		r->works = false;
		pthread_mutex_unlock(&t->lock);
		signal_loop(t);
	}
}

static void reader_init(struct reader *r, struct store_thread *t)
{
	r->t = t;
	pthread_cond_init(&r->wanted, NULL);
}

static bool reader_start(struct reader *r, const char *name, struct err *e)
{
	int error;

	if (r->runs)
		return true;
	error = pthread_create(&r->thread, NULL, serve_reads, r);
	if (error)
		return err_errno(e, error, "could not start a reader thread");
	r->runs = true;
	pthread_setname_np(r->thread, name); /* shown by ps and gdb */
	return true;
}

/* After 'stopping' was set. Queued tasks are completed first. */
static void reader_join(struct reader *r)
{
	if (r->runs)
		pthread_join(r->thread, NULL);
}

static void reader_done(struct reader *r)
{
	store_free(r->store);
	fair_queue_done(&r->tasks);
	pthread_cond_destroy(&r->wanted);
}

static void reader_submit(struct reader *r, struct read_task *task)
{
	pthread_mutex_lock(&r->t->lock);
	fair_queue_push(&r->tasks, &task->item);
	pthread_mutex_unlock(&r->t->lock);
	pthread_cond_signal(&r->wanted); /* without the lock, which the woken thread needs */
}

static void report_busy(const struct store_thread *t)
{
	if (t->o.on_busy)
		t->o.on_busy(t->o.arg);
}

/* Everything that is ready for the loop, moved out of the shared lists at once. */
struct results {
	struct op_queue ops;
	struct task_queue reads;
	struct batch_wake wake;
	struct event_list events;
	bool woken, fatal;
	struct err fatal_err;
};

static void results_take(struct store_thread *t, struct results *h)
{
	struct read_task *task;
	struct op *op;

	op_queue_init(&h->ops);
	task_queue_init(&h->reads);
	pthread_mutex_lock(&t->lock);
	while ((op = op_queue_pop(&t->done)))
		op_queue_push(&h->ops, op);
	while ((task = task_queue_pop(&t->reads_done)))
		task_queue_push(&h->reads, task);
	h->events = t->events;
	t->events = (struct event_list){};
	h->wake = t->wake;
	h->woken = t->woken;
	h->fatal = t->fatal;
	h->fatal_err = t->fatal_err;
	t->woken = false;
	pthread_mutex_unlock(&t->lock);
}

static void deliver_results(struct store_thread *t)
{
	struct results h;
	struct read_task *task;
	struct op *op;

	results_take(t, &h);
	if (h.events.n > 0 && t->o.on_events)
		t->o.on_events(&h.events, t->o.arg);
	event_list_done(&h.events);
	while ((op = op_queue_pop(&h.ops))) {
		if (t->o.on_op)
			t->o.on_op(op, t->o.arg);
		if (op->on_done)
			op->on_done(op, op->arg);
		else
			op_free(op);
	}
	while ((task = task_queue_pop(&h.reads)))
		task->done(task);
	if (t->o.on_delivered)
		t->o.on_delivered(t->o.arg);
	if (h.fatal && t->o.on_fatal)
		t->o.on_fatal(&h.fatal_err, t->o.arg);
	else if (h.woken && t->o.on_wake)
		t->o.on_wake(&h.wake, t->o.arg);
}

/* The source is edge-triggered: each write is an event, so the counter need not be read. */
static int on_results(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	(void)source;
	(void)fd;
	(void)events;
	deliver_results(arg);
	return 0;
}

static bool start_threads(struct store_thread *t, struct err *e)
{
	int r;

	store_set_yield(t->writer, bulk_gives_way, t);
	r = pthread_create(&t->writer_thread, NULL, write_batches, t);
	if (r)
		return err_errno(e, r, "could not start the store thread");
	t->writer_runs = true;
	/* shown by ps and gdb */
	pthread_setname_np(t->writer_thread, t->o.writer_only ? "leases" : "writer");
	return t->o.writer_only || reader_start(&t->short_reads, "reader", e);
}

bool store_thread_start(struct sd_event *ev, const struct store_thread_options *o,
	struct store_thread **ret, struct err *e)
{
	AUTO(store_thread) *t = xcalloc(1, sizeof(*t));
	pthread_condattr_t monotonic;
	int r;

	t->o = *o;
	t->wake = BATCH_WAKE_NEVER;
	op_queue_init(&t->waiting);
	op_queue_init(&t->done);
	reader_init(&t->short_reads, t);
	reader_init(&t->long_reads, t);
	task_queue_init(&t->reads_done);
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->write_wanted, &monotonic);
	pthread_condattr_destroy(&monotonic);
	t->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->done_fd < 0)
		return err_errno(e, errno, "could not make an eventfd");
	r = sd_event_add_io(ev, &t->done_source, t->done_fd, EPOLLIN | EPOLLET, on_results, t);
	if (r < 0)
		return err_errno(e, -r, "could not watch the store thread");
	if (!store_open(&(struct store_options){.where = o->where,
				.machine = o->machine,
				.takeover = o->takeover,
				.no_checkpoint = o->no_checkpoint,
				.note_all = o->note_all,
				.lease = o->lease},
		    &t->writer, e) ||
		(!o->writer_only && !open_reader(&t->short_reads, e)) || !start_threads(t, e))
		return false;
	*ret = STEAL(t);
	return true;
}

void store_thread_leave(struct store_thread *t)
{
	if (t && t->writer)
		store_leave(t->writer);
	if (t && t->short_reads.store)
		store_leave(t->short_reads.store);
}

/*
 * The operation of a client's request. Its route must complete the request, even if the client has
 * disconnected.
 */
static bool has_waiting_client(const struct op *op)
{
	return (op->act.what != EVENT_NONE && !op->patient) || op->kind == OP_OWNER;
}

/* At shutdown only requests of clients get their callback, which frees their memory. */
static void discard_op(struct op *op)
{
	if (op->on_done && has_waiting_client(op))
		op->on_done(op, op->arg);
	else
		op_free(op);
}

void store_thread_free(struct store_thread *t)
{
	struct read_task *task;
	struct op *op;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	pthread_cond_broadcast(&t->write_wanted);
	pthread_cond_broadcast(&t->short_reads.wanted);
	pthread_cond_broadcast(&t->long_reads.wanted);
	pthread_mutex_unlock(&t->lock);
	store_thread_leave(t);
	if (t->writer_runs)
		pthread_join(t->writer_thread, NULL);
	reader_join(&t->short_reads);
	reader_join(&t->long_reads);
	while ((op = op_queue_pop(&t->done)))
		discard_op(op);
	while ((op = op_queue_pop(&t->waiting))) /* submitted by these callbacks */
		op_free(op);
	while ((task = task_queue_pop(&t->reads_done)))
		task->done(task);
	reader_done(&t->short_reads);
	reader_done(&t->long_reads);
	sd_event_source_disable_unref(t->done_source);
	if (t->done_fd >= 0)
		close(t->done_fd);
	event_list_done(&t->events);
	store_free(t->writer);
	pthread_cond_destroy(&t->write_wanted);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

bool store_thread_stopping(const struct store_thread *t)
{
	return t->stopping;
}

const char *store_thread_store_id(const struct store_thread *t)
{
	return store_id(t->writer);
}

void store_thread_submit(struct store_thread *t, struct op *op)
{
	bool wakes;

	pthread_mutex_lock(&t->lock);
	/*
	 * a patient operation behind another one does not wake the thread, which waits for LINGER
	 * to pass
	 */
	wakes = !op->patient || !t->waiting.first;
	op_queue_push(&t->waiting, op);
	t->urgent += !op->patient;
	t->claims += op->kind == OP_CLAIM;
	pthread_mutex_unlock(&t->lock);
	if (wakes)
		pthread_cond_signal(&t->write_wanted); /* without the lock, which the woken thread needs */
	report_busy(t);
}

void store_thread_refuse_waiting(struct store_thread *t, const struct err *why)
{
	struct op_queue all;
	struct op *op;
	size_t n = 0;

	op_queue_init(&all);
	pthread_mutex_lock(&t->lock);
	while ((op = op_queue_pop(&t->waiting)))
		op_queue_push(&all, op);
	while ((op = op_queue_pop(&all))) {
		if (!has_waiting_client(op)) {
			op_queue_push(&t->waiting, op);
			continue;
		}
		t->urgent--;
		fail_all(&op, 1, why);
		op_queue_push(&t->done, op);
		n++;
	}
	pthread_mutex_unlock(&t->lock);
	if (n > 0)
		signal_loop(t);
}

void store_thread_health(const struct store_thread *t, struct store_health *ret)
{
	struct store_thread *m = (struct store_thread *)t;
	usec_t writes = store_waits_since(t->writer),
	       reads = t->short_reads.store ? store_waits_since(t->short_reads.store) : 0;

	pthread_mutex_lock(&m->lock);
	*ret = (struct store_health){.busy = t->waiting.n + t->in_batch + t->done.n > 0 ||
					     t->short_reads.works ||
					     fair_queue_ready(&t->short_reads.tasks),
		.waits_since = writes && (!reads || writes < reads) ? writes : reads,
		.answered = t->answered,
		.fails_since = t->fails_since};
	memcpy(ret->why, t->why, sizeof(ret->why));
	pthread_mutex_unlock(&m->lock);
}

void store_thread_expect_term(struct store_thread *t, int64_t term)
{
	store_expect_term(t->writer, term);
}

size_t store_thread_backlog(const struct store_thread *t)
{
	struct store_thread *m = (struct store_thread *)t;
	size_t n;

	pthread_mutex_lock(&m->lock);
	n = m->waiting.n + m->in_batch + m->done.n;
	pthread_mutex_unlock(&m->lock);
	return n;
}

bool store_thread_no_room(const struct store_thread *t)
{
	struct store_thread *m = (struct store_thread *)t;
	bool no_room;

	pthread_mutex_lock(&m->lock);
	no_room = m->wake.no_room;
	pthread_mutex_unlock(&m->lock);
	return no_room;
}

void store_thread_read(struct store_thread *t, struct read_task *task)
{
	reader_submit(&t->short_reads, task);
	report_busy(t);
}

void store_thread_release(struct store_thread *t, int64_t uid, size_t bytes)
{
	pthread_mutex_lock(&t->lock);
	fair_queue_charge(&t->short_reads.tasks, uid, -(int64_t)bytes);
	pthread_cond_signal(&t->short_reads.wanted);
	pthread_mutex_unlock(&t->lock);
}

void store_thread_bound_results(struct store_thread *t, int64_t per_uid, int64_t total)
{
	pthread_mutex_lock(&t->lock);
	t->short_reads.tasks.share.per_owner = per_uid;
	t->short_reads.tasks.share.total = total;
	pthread_cond_signal(&t->short_reads.wanted);
	pthread_mutex_unlock(&t->lock);
}

void store_thread_read_long(struct store_thread *t, struct read_task *task)
{
	struct err e = {};

	if (!reader_start(&t->long_reads, "long reader", &e)) {
		log_warning("%s; requests wait meanwhile", e.msg);
		reader_submit(&t->short_reads, task);
		return;
	}
	reader_submit(&t->long_reads, task);
}
