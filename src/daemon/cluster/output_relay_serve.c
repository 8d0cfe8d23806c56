/* SPDX-License-Identifier: Apache-2.0 */
/* The serving side of a relay: writes output to the store in parts, with a window and a rate limit. */
#include "daemon/cluster/output_relay_serve.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "daemon/loop/output_watch.h"
#include "daemon/loop/store_thread.h"
#include "exec/proto/output_file.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/op.h"
#include "store/read/list/list_relays.h"
#include "store/relay_part.h"
#include "store/store.h"
#include <errno.h>
#include <inttypes.h>
#include <systemd/sd-event.h>

#define PART_MAX (192 * 1024)          /* bytes of a part */
#define RATE (4 * 1024 * 1024)         /* bytes per second, for all requests together */
#define BURST (16 * 1024 * 1024)       /* bytes that may be sent at once after an idle time */
#define PAUSE (50 * USEC_MSEC)         /* delay before a short part of followed output, to gather more */
#define RETRY USEC_SEC

struct served {
	struct output_relay_serve *all;
	int64_t id, run, attempt, from, tail;
	bool follow;
	struct output_follower follower;
	bool watches_file;        /* the watch is on the file; else on the directory, until the file exists */
	int fd;                   /* negative: the file does not exist yet */
	bool begun;               /* the first part was made, 'offset' is final */
	int64_t offset, end;      /* end -1: the output is followed */
	int64_t number, taken;    /* the last part written, and the last part taken by the reader */
	usec_t not_before;        /* boottime of the next part */
	struct relay_part part;   /* read from the file, not yet written to the store; number 0: none */
	int64_t part_end;         /* offset after that part */
	bool giving, done, gone, listed;
};

struct output_relay_serve {
	struct store_thread *store;
	const char *node_id;
	int dir;
	sd_event *ev;
	sd_event_source *timer;
	usec_t armed;             /* boottime; USEC_NEVER: not armed */
	struct output_watch *watch; /* created for the first request that follows */
	struct map served;        /* by id, owned */
	int64_t budget;           /* bytes; negative after a part that exceeded it */
	usec_t refilled;
	bool stopped;
};

static usec_t serve_boottime(void)
{
	return clock_boot(&clock_system);
}

static void serve_timer_set(struct output_relay_serve *s, usec_t delay)
{
	if (s->stopped || serve_boottime() + delay >= s->armed)
		return;
	s->armed = serve_boottime() + delay;
	sd_event_source_set_time_relative(s->timer, (uint64_t)delay);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void served_free(struct served *v)
{
	output_watch_unfollow(&v->follower);
	relay_part_done(&v->part);
	if (v->fd >= 0)
		close(v->fd);
	free(v);
}

/* A part in flight keeps the request until its result arrives. */
static void served_forget(struct served *v)
{
	v->gone = true;
	if (v->giving)
		return;
	map_take(&v->all->served, v->id);
	served_free(v);
}

/* ---- the bytes ---- */

/* The list of followers must not change during the callback, so the work is done by the timer. */
static void on_served_output(struct output_follower *f)
{
	serve_timer_set(((struct served *)((char *)f - offsetof(struct served, follower)))->all, 0);
}

static bool watches(const struct served *v)
{
	return v->follower.watch && v->watches_file == (v->fd >= 0);
}

static bool served_watch(struct served *v, struct err *e)
{
	struct output_relay_serve *s = v->all;

	if (!s->watch && !output_watch_new(s->ev, s->dir, &s->watch, e))
		return false;
	if (!output_watch_follow(s->watch, &v->follower, v->fd, e))
		return false;
	v->watches_file = v->fd >= 0;
	return true;
}

static bool served_stat(struct served *v, struct output_file_extent *ret, struct err *e)
{
	if (v->fd < 0)
		v->fd = output_file_open(v->all->dir, v->run, v->attempt);
	if (v->fd < 0 && v->fd != -ENOENT)
		return err_errno(e, -v->fd, "could not open the output of run %" PRId64, v->run);
	if (v->fd >= 0 && !output_file_stat(v->fd, ret, e))
		return false;
	if (!v->begun) {
		v->offset = v->from;
		if (v->tail >= 0 && ret->total - v->tail > v->offset)
			v->offset = ret->total - v->tail;
	}
	if (!v->follow && v->end < 0)
		v->end = ret->total;
	return true;
}

static void make_part(struct served *v, const struct output_file_extent *at, const char *data, size_t n, const char *note)
{
	AUTO_DONE(buf) text = {};

	buf_base64(&text, data, n);
	v->part = (struct relay_part){.number = v->number + 1, .at = v->offset, .total = at->total, .dropped = at->gap_to - at->gap_from,
		.last = note || (v->end >= 0 && v->offset + (int64_t)n >= v->end), .note = note ? xstrdup(note) : NULL, .data = buf_steal(&text)};
	v->part_end = v->offset + (int64_t)n;
	v->all->budget -= (int64_t)n;
	v->begun = true;
}

/* Returns how long to wait until the rate limit allows a part. */
static usec_t wait_for_budget(struct output_relay_serve *s)
{
	usec_t now = serve_boottime(), spent = now - s->refilled;

	if (spent > 60 * USEC_SEC)
		spent = 60 * USEC_SEC;
	s->budget += spent * RATE / USEC_SEC;
	if (s->budget > BURST)
		s->budget = BURST;
	s->refilled = now;
	return s->budget > 0 ? 0 : (1 - s->budget) * USEC_SEC / RATE + 1;
}

/* Makes the next part if there is output. The first part is made even if it is empty, because it carries the total size. */
static bool served_read_part(struct served *v, struct err *e)
{
	AUTO_DONE(buf) data = {};
	struct output_file_extent at = {};
	size_t n = 0, max = PART_MAX;

	if (!served_stat(v, &at, e))
		return false;
	if (wait_for_budget(v->all) > 0)
		max = 0;
	else if (v->end >= 0 && v->end - v->offset < PART_MAX)
		max = v->end > v->offset ? (size_t)(v->end - v->offset) : 0;
	if (max > 0 && v->fd >= 0 && !output_file_read(v->fd, v->offset, buf_room(&data, max), max, &v->offset, &n, e))
		return false;
	if (n > 0 || !v->begun || v->end >= 0)
		make_part(v, &at, data.data, n, NULL);
	return true;
}

/* Output written between a read and the start of the watch is found by a second read. */
static void served_prepare(struct served *v)
{
	struct err e = {};

	while (!v->part.number) {
		if (!served_read_part(v, &e))
			break;
		if (v->part.number || watches(v))
			return;
		if (!served_watch(v, &e))
			break;
	}
	if (!v->part.number)
		make_part(v, &(struct output_file_extent){}, NULL, 0, e.msg);
}

/* ---- writing parts to the store ---- */

static void served_pump(struct served *v);

static void on_given(struct op *op, void *arg)
{
	struct served *v = arg;
	struct output_relay_serve *s = v->all;

	v->giving = false;
	if (!op->ok) {
		/* the part may have been stored: repeat exactly the same one */
		v->part = output_relay_op(op)->part;
		output_relay_op(op)->part = (struct relay_part){};
		v->not_before = serve_boottime() + RETRY;
	} else {
		v->number = output_relay_op(op)->part.number;
		v->done = output_relay_op(op)->part.last;
		if (v->end < 0 && v->part_end - v->offset < PART_MAX)
			v->not_before = serve_boottime() + PAUSE;
		v->offset = v->part_end;
	}
	if (v->gone || (op->ok && output_relay_op(op)->gone))
		served_forget(v);
	else if (!s->stopped)
		served_pump(v);
	op_free(op);
}

static void give(struct served *v)
{
	struct op *op = op_new(OP_RELAY_ADD, on_given, v);

	op_fill(output_relay_op(op), .verb = RELAY_PUT, .id = v->id, .node = v->all->node_id, .part = v->part);
	v->part = (struct relay_part){};
	v->giving = true;
	store_thread_submit(v->all->store, op);
}

static void served_pump(struct served *v)
{
	usec_t now = serve_boottime(), wait = v->begun ? wait_for_budget(v->all) : 0;

	if (v->giving || v->done || v->number - v->taken >= RELAY_WINDOW)
		return;
	if (v->not_before > now && v->not_before - now > wait)
		wait = v->not_before - now;
	if (wait > 0) {
		serve_timer_set(v->all, wait);
		return;
	}
	if (!v->part.number)
		served_prepare(v);
	if (v->part.number)
		give(v);
}

static int on_serve_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct output_relay_serve *s = arg;
	struct served *v;

	(void)source;
	(void)usec;
	s->armed = USEC_NEVER;
	for (size_t i = 0; (v = map_next(&s->served, &i));)
		if (!v->gone)
			served_pump(v);
	return 0;
}

/* ---- requests ---- */

static struct served *served_new(struct output_relay_serve *s, const struct relay_view *w)
{
	struct served *v = xcalloc(1, sizeof(*v));

	*v = (struct served){.all = s, .id = w->id, .run = w->run, .attempt = w->attempt, .from = w->from, .tail = w->tail, .fd = -1, .end = -1,
		.number = w->taken, .follower = {.on_change = on_served_output, .run = w->run, .attempt = w->attempt}};
	map_put(&s->served, v->id, v);
	return v;
}

void output_relay_serve_list(struct output_relay_serve *s, const struct relay_list *l)
{
	struct served *v;

	for (size_t i = 0; i < l->n; i++) {
		const struct relay_view *w = &l->v[i];

		if (!w->serves || s->stopped)
			continue;
		v = map_get(&s->served, w->id);
		if (!v)
			v = served_new(s, w);
		if (!w->follow && v->follow)
			v->not_before = 0;
		v->listed = true;
		v->follow = w->follow;
		v->taken = w->taken;
	}
	for (size_t i = 0; (v = map_next(&s->served, &i));) {
		bool wanted = v->listed && !v->gone;

		v->listed = false;
		if (wanted)
			served_pump(v);
		else
			served_forget(v);
	}
}

bool output_relay_serve_new(struct sd_event *ev, struct store_thread *store, const char *node_id, int output_dir,
	struct output_relay_serve **ret, struct err *e)
{
	AUTO(output_relay_serve) *s = xcalloc(1, sizeof(*s));
	int r;

	*s = (struct output_relay_serve){.store = store, .node_id = node_id, .dir = output_dir, .ev = ev, .armed = USEC_NEVER,
		.budget = BURST, .refilled = serve_boottime()};
	r = sd_event_add_time_relative(ev, &s->timer, CLOCK_BOOTTIME, 0, 1, on_serve_timer, s);
	if (r < 0)
		return err_errno(e, -r, "could not make a timer");
	sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	*ret = STEAL(s);
	return true;
}

void output_relay_serve_stop(struct output_relay_serve *s)
{
	s->stopped = true;
}

void output_relay_serve_free(struct output_relay_serve *s)
{
	struct served *v;

	if (!s)
		return;
	for (size_t i = 0; (v = map_next(&s->served, &i));)
		served_free(v);
	map_done(&s->served);
	output_watch_free(s->watch);
	sd_event_source_disable_unref(s->timer);
	free(s);
}
