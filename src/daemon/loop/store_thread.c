/* SPDX-License-Identifier: Apache-2.0 */
/* Queues operations for the store threads; delivers their results on the loop. */
#include "daemon/loop/store_thread.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/loop/store_queues.h"
#include "daemon/loop/store_thread_private.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

void store_thread_signal(struct store_thread *t)
{
	eventfd_write(t->done_fd, 1);
}

void store_ops_fail(struct op **ops, size_t n, const struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		ops[i]->ok = false;
		ops[i]->err = *e;
	}
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
		store_thread_signal(t);
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

	store_set_yield(t->writer, store_writer_gives_way, t);
	r = pthread_create(&t->writer_thread, NULL, store_writer_main, t);
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
		store_ops_fail(&op, 1, why);
		op_queue_push(&t->done, op);
		n++;
	}
	pthread_mutex_unlock(&t->lock);
	if (n > 0)
		store_thread_signal(t);
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
