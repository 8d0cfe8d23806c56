/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the newest starts and ends of runs in a ring that all event streams read. */
#include "daemon/api/run_feed.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/run.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "store/read/list/list_moves.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#define ITEMS 4096                     /* kept for slow and returning clients */
#define STEP 256                       /* runs of this node per read */
#define ALIKE 256                      /* newest items that are compared with a new one */
#define LINGER USEC_MIN                /* items are kept so long after the last reader has left */
#define RETRY_AFTER (500 * USEC_MSEC)

struct run_feed_reader {
	struct run_feed *feed; /* NULL: there is no feed */
	int64_t next;          /* number of the next item */
	void (*fn)(void *arg);
	void *arg;
	LIST_ENTRY(run_feed_reader) list;
};

struct run_feed {
	struct run_feed_options o;
	struct run_watch *watch;           /* NULL: no reader */
	struct run_feed_item items[ITEMS]; /* item number n is at n % ITEMS */
	int64_t first, next;               /* numbers of the items: from 'first' to before 'next' */
	int64_t moved[ITEMS];              /* runs of this node that are not read yet */
	size_t n_moved;
	bool overflow;                     /* there were more */
	struct move_place place;
	struct move_read *reading;         /* NULL: no read in progress */
	bool again, stopped;
	sd_event_source *timer;            /* retries a failed read, or ends the feed without readers */
	LIST_HEAD(, run_feed_reader) readers;
};

/* ---- items ---- */

static struct run_feed_item *item_at(struct run_feed *f, int64_t number)
{
	return &f->items[number % ITEMS];
}

static void drop_first(struct run_feed *f)
{
	free(item_at(f, f->first)->data);
	*item_at(f, f->first++) = (struct run_feed_item){};
}

/* The watch and the store may both report a run; a read after its end finds the end twice. */
static bool is_known(struct run_feed *f, const struct run_feed_item *n)
{
	for (int64_t i = f->next; i > f->first && i > f->next - ALIKE;) {
		const struct run_feed_item *old = item_at(f, --i);

		if (old->run == n->run && old->kind == n->kind && text_equal(old->data, n->data))
			return n->run != 0;
	}
	return false;
}

static void take_item(struct run_feed *f, struct run_feed_item *n /* contents moved */)
{
	if (is_known(f, n)) {
		free(n->data);
		return;
	}
	if (f->next - f->first == ITEMS)
		drop_first(f);
	*item_at(f, f->next++) = *n;
}

static void wake_readers(struct run_feed *f)
{
	struct run_feed_reader *r, *next;

	for (r = LIST_FIRST(&f->readers); r; r = next) {
		next = LIST_NEXT(r, list);
		r->fn(r->arg);
	}
}

/* ---- the reader's thread ---- */

struct move_read {
	struct read_task task;
	struct run_feed *feed;
	char *node;
	int64_t moved[STEP];
	size_t n_moved;
	struct move_place place;
	struct run_feed_item *items; /* owned */
	size_t n;
	bool ok, missed;
};

static void add_item(struct move_read *r, const struct run_feed_item *n)
{
	r->items = xgrow(r->items, r->n, sizeof(*r->items));
	r->items[r->n++] = *n;
}

static void add_run(struct move_read *m, const struct run *r)
{
	bool final = run_state_final(r->state);
	char detail[200] = "";
	AUTO_DONE(buf) data = {};
	json_t *o;

	if (!final && r->state != RUN_RUNNING)
		return;
	if (r->reason)
		snprintf(detail, sizeof(detail), "%s", r->reason);
	else if (r->term_signal)
		snprintf(detail, sizeof(detail), "signal %" PRId64, r->term_signal);
	else if (r->exit_code > 0)
		snprintf(detail, sizeof(detail), "exit code %" PRId64, r->exit_code);
	o = row_json_event(&(struct event){.at = final ? r->ended_at : r->started_at,
		.uid = -1,
		.owner = r->uid,
		.what = final ? EVENT_RUN_END : EVENT_RUN_START,
		.job = r->job,
		.run = r->id,
		.object = r->job_name,
		.node = r->node,
		.result = (char *)run_state_name(r->state),
		.detail = detail[0] ? detail : NULL});
	json_value_write(o, &data);
	json_decref(o);
	add_item(m, &(struct run_feed_item){.kind = final ? RUN_FEED_END : RUN_FEED_START,
		.owner = r->uid,
		.job = r->job,
		.run = r->id,
		.data = xstrdup(data.data)});
}

static void work_moves(struct store *s, struct read_task *task)
{
	struct move_read *m = (struct move_read *)task;
	AUTO_DONE(run_list) runs = {};
	struct err e = {};

	m->ok = list_moves_read(s, m->node, &m->place, m->moved, m->n_moved, &runs, &m->missed, &e);
	if (!m->ok)
		log_debug("could not read the runs that started and ended: %s", e.msg);
	for (size_t i = 0; i < runs.n; i++)
		add_run(m, runs.v[i]);
}

/* ---- the loop ---- */

static void start_move_read(struct run_feed *f);

static int on_feed_timer(sd_event_source *src, uint64_t when, void *arg)
{
	struct run_feed *f = arg;

	(void)src;
	(void)when;
	f->timer = sd_event_source_disable_unref(f->timer);
	if (!LIST_EMPTY(&f->readers)) {
		start_move_read(f);
		return 0;
	}
	run_watch_free(STEAL(f->watch));
	while (f->first < f->next)
		drop_first(f);
	f->first = ++f->next; /* a client that returns later is told that it has missed items */
	f->n_moved = 0;
	f->overflow = false;
	f->place = (struct move_place){};
	return 0;
}

static void set_timer(struct run_feed *f, usec_t after)
{
	int r;

	f->timer = sd_event_source_disable_unref(f->timer);
	r = sd_event_add_time_relative(f->o.ev, &f->timer, CLOCK_MONOTONIC, after, 0, on_feed_timer, f);
	if (r < 0)
		log_warning("could not add the timer of the event streams: %s", strerror(-r));
}

/* The runs are read again after a failure. */
static void put_back(struct run_feed *f, const struct move_read *m)
{
	size_t n = m->n_moved < ITEMS - f->n_moved ? m->n_moved : ITEMS - f->n_moved;

	memcpy(f->moved + f->n_moved, m->moved, n * sizeof(*f->moved));
	f->n_moved += n;
	f->overflow |= n < m->n_moved;
	if (!LIST_EMPTY(&f->readers))
		set_timer(f, RETRY_AFTER);
}

static void moves_done(struct read_task *task)
{
	struct move_read *m = (struct move_read *)task;
	struct run_feed *f = m->feed;

	f->reading = NULL;
	if (m->ok && f->watch) {
		for (size_t i = 0; i < m->n; i++)
			take_item(f, &m->items[i]);
		m->n = 0;
		f->place = m->place;
		if (m->missed || f->overflow)
			take_item(f, &(struct run_feed_item){.kind = RUN_FEED_LOST, .owner = -1});
		f->overflow = false;
		f->again |= m->place.more || f->n_moved > 0;
	} else if (f->watch) {
		put_back(f, m);
		f->again = false;
	}
	while (m->n > 0)
		free(m->items[--m->n].data);
	free(m->items);
	free(m->node);
	free(m);
	if (f->stopped)
		return;
	if (f->again)
		start_move_read(f);
	wake_readers(f);
}

static void start_move_read(struct run_feed *f)
{
	struct move_read *m;

	f->again = f->reading != NULL;
	if (f->again || f->stopped || !f->watch)
		return;
	m = xcalloc(1, sizeof(*m));
	m->task.work = work_moves;
	m->task.done = moves_done;
	m->feed = f;
	m->node = xstrdup(f->o.node_name);
	m->place = f->place;
	m->n_moved = f->n_moved < STEP ? f->n_moved : STEP;
	memcpy(m->moved, f->moved, m->n_moved * sizeof(*m->moved));
	memmove(f->moved, f->moved + m->n_moved, (f->n_moved - m->n_moved) * sizeof(*f->moved));
	f->n_moved -= m->n_moved;
	f->reading = m;
	store_thread_read(f->o.store, &m->task);
}

static void on_run_moved(int64_t job, int64_t run, enum run_state state, void *arg)
{
	struct run_feed *f = arg;

	(void)job;
	if (run == 0 || !(run_state_final(state) || state == RUN_RUNNING))
		return;
	if (f->n_moved < ITEMS)
		f->moved[f->n_moved++] = run;
	else
		f->overflow = true;
	if (!f->timer || LIST_EMPTY(&f->readers))
		start_move_read(f);
}

void run_feed_recheck(struct run_feed *f)
{
	if (f && f->watch)
		start_move_read(f);
}

/* ---- readers ---- */

struct run_feed_reader *run_feed_reader_new(struct run_feed *f, int64_t place, bool *ret_missed,
	void (*fn)(void *arg), void *arg)
{
	struct run_feed_reader *r = xcalloc(1, sizeof(*r));

	*ret_missed = false;
	r->fn = fn;
	r->arg = arg;
	if (!f)
		return r;
	r->feed = f;
	*ret_missed = place != 0 && (place < f->first || place > f->next);
	r->next = place == 0 || *ret_missed ? f->next : place;
	LIST_INSERT_HEAD(&f->readers, r, list);
	f->timer = sd_event_source_disable_unref(f->timer);
	if (!f->watch) {
		f->watch = run_watch_new(f->o.watches, 0, 0, on_run_moved, f);
		start_move_read(f);
	}
	return r;
}

void run_feed_reader_free(struct run_feed_reader *r)
{
	struct run_feed *f = r ? r->feed : NULL;

	if (f) {
		LIST_REMOVE(r, list);
		if (LIST_EMPTY(&f->readers) && !f->stopped)
			set_timer(f, LINGER);
	}
	free(r);
}

bool run_feed_reader_ready(const struct run_feed_reader *r)
{
	return !r->feed || r->feed->place.known;
}

bool run_feed_reader_has_more(const struct run_feed_reader *r)
{
	return r->feed && r->next < r->feed->next;
}

int64_t run_feed_reader_place(const struct run_feed_reader *r)
{
	return r->next;
}

const struct run_feed_item *run_feed_reader_next(struct run_feed_reader *r, int64_t *ret_missed)
{
	struct run_feed *f = r->feed;

	*ret_missed = 0;
	if (!f || r->next >= f->next)
		return NULL;
	if (r->next < f->first) {
		*ret_missed = f->first - r->next;
		r->next = f->first;
	}
	return r->next < f->next ? item_at(f, r->next++) : NULL;
}

/* ---- start and end ---- */

/*
 * The numbers begin with the time, so that a place which another daemon or an earlier one has
 * given out is not a place of this one.
 */
struct run_feed *run_feed_new(const struct run_feed_options *o)
{
	struct run_feed *f = xcalloc(1, sizeof(*f));

	f->o = *o;
	f->first = f->next = clock_now(o->clock);
	return f;
}

void run_feed_stop(struct run_feed *f)
{
	if (!f)
		return;
	f->stopped = true;
	f->timer = sd_event_source_disable_unref(f->timer);
}

void run_feed_free(struct run_feed *f)
{
	if (!f)
		return;
	assert(LIST_EMPTY(&f->readers) && !f->reading);
	run_feed_stop(f);
	run_watch_free(f->watch);
	while (f->first < f->next)
		drop_first(f);
	free(f);
}
