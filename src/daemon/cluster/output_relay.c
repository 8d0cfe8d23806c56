/* SPDX-License-Identifier: Apache-2.0 */
/* The reading side of a relay: requests output, takes part after part, and renews the request while it reads. */
#include "daemon/cluster/output_relay.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "daemon/cluster/output_relay_serve.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/op.h"
#include "store/read/list/list_relays.h"
#include "store/relay_part.h"
#include "store/store.h"
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-event.h>

#define TTL (15 * USEC_SEC)         /* a request that is not renewed is removed after this time */
#define KEEP (5 * USEC_SEC)         /* interval of renewals */
#define ANSWER_MAX (5 * USEC_SEC)   /* the serving node must send the next part within this time */
#define TICK USEC_SEC               /* interval of checks while there are readers */

struct output_relay {
	struct output_relays *all;
	int64_t id;
	struct output_relay_request w;        /* ran_on: owned */
	char *name;                 /* owned: name of the serving node; NULL: unknown */
	void (*on_change)(void *arg);
	void *arg;
	enum output_relay_state state;
	struct err why;
	bool added;                 /* the request has a row in the store */
	uint64_t added_at;          /* number of the first poll that sees the row */
	bool busy;                  /* an operation is in flight */
	bool unfollow;              /* the end of following is to be sent */
	bool left;                  /* the reader is gone */
	int64_t ready;              /* parts in the store that were not taken */
	int64_t number;             /* of the last part that was taken */
	bool last, alive, seen;
	struct buf data;            /* content of the last part */
	size_t at;                  /* bytes of it that were read */
	int64_t total, dropped;
	usec_t kept, heard;         /* boottime */
};

struct output_relays {
	struct output_relays_options o;
	sd_event_source *timer;
	struct output_relay_serve *serve;
	struct map reading;         /* by id, owned */
	size_t n;
	uint64_t looks;
	bool looking, again, stopped;
};

static usec_t relay_boottime(void)
{
	return clock_boot(&clock_system);
}

static bool emptied(const struct output_relay *r)
{
	return r->at >= r->data.len;
}

static void relay_destroy(struct output_relay *r)
{
	free((char *)r->w.ran_on);
	free(r->name);
	buf_done(&r->data);
	free(r);
}

static void relay_lose(struct output_relay *r, const struct err *why)
{
	r->why = *why;
	r->state = RELAY_LOST;
}

static void relay_lose_node(struct output_relay *r, const char *what)
{
	struct err e = {};

	err_set(&e, ERR_BUSY, "node '%s', which has the output of run %" PRId64 ", %s", r->name ? r->name : "unknown", r->w.run, what);
	relay_lose(r, &e);
}

/* ---- one operation at a time ---- */

static void on_relay_op(struct op *op, void *arg);

static void relay_submit(struct output_relay *r, enum relay_verb verb)
{
	struct op *op = op_new(verb == RELAY_ASK ? OP_RELAY_ADD : OP_RELAY, on_relay_op, r);

	op_fill(output_relay_op(op), .verb = verb, .id = r->id, .node = r->all->o.node_id, .ttl = TTL, .follow = r->w.follow,
		.run = r->w.run, .attempt = r->w.attempt, .from = r->w.from, .tail = r->w.tail);
	if (verb == RELAY_ASK)
		output_relay_op(op)->ran_on = xstrdup(r->w.ran_on);
	if (verb == RELAY_KEEP) {
		output_relay_op(op)->changed = r->unfollow;
		r->unfollow = false;
		r->kept = relay_boottime();
	}
	r->busy = true;
	store_thread_submit(r->all->o.store, op);
}

static void relay_forget(struct output_relay *r)
{
	struct op *op;

	map_take(&r->all->reading, r->id);
	r->all->n--;
	if (r->added && !r->last && !r->all->stopped) {
		op = op_new(OP_RELAY, NULL, NULL);
		op_fill(output_relay_op(op), .verb = RELAY_DROP, .id = r->id, .node = r->all->o.node_id);
		store_thread_submit(r->all->o.store, op);
	}
	relay_destroy(r);
}

static void relay_step(struct output_relay *r)
{
	if (r->busy)
		return;
	if (r->left)
		relay_forget(r);
	else if (!r->added || r->last || r->state == RELAY_LOST || r->all->stopped)
		return;
	else if (r->unfollow)
		relay_submit(r, RELAY_KEEP);
	else if (r->ready > 0 && emptied(r))
		relay_submit(r, RELAY_TAKE);
	else if (relay_boottime() - r->kept > KEEP)
		relay_submit(r, RELAY_KEEP);
}

static void on_asked(struct output_relay *r, struct op_relay *o)
{
	struct err e = {};

	r->name = STEAL(o->name);
	if (o->gone && r->name) {
		relay_lose_node(r, "is not there; try again when it is back");
	} else if (o->gone) {
		err_set(&e, ERR_NOT_FOUND, "the node that ran run %" PRId64 " is not known any more, and its output with it", r->w.run);
		relay_lose(r, &e);
	} else if (text_equal(o->holder, r->all->o.node_id)) {
		r->state = RELAY_HERE;
	} else {
		r->added = r->alive = true;
		r->added_at = r->all->looks + 1;
		r->kept = r->heard = relay_boottime();
	}
}

static void taken(struct output_relay *r, struct op_relay *o)
{
	const struct relay_part *p = &o->part;
	struct err e = {};

	r->ready = r->ready > 0 ? r->ready - 1 : 0;
	if (p->number == 0 || p->number <= r->number) {
		r->ready = p->number ? r->ready : 0;
		return;
	}
	buf_clear(&r->data);
	r->at = 0;
	if (p->number != r->number + 1 || !buf_base64_decode(p->data, strlen(p->data), &r->data)) {
		relay_lose_node(r, "was not understood; try again");
		return;
	}
	r->number = p->number;
	r->last = p->last;
	r->heard = r->kept = relay_boottime();
	r->total = p->total;
	r->dropped = p->dropped;
	r->state = RELAY_FLOWS;
	if (p->note) {
		err_set(&e, ERR_BUSY, "node '%s': %s", r->name ? r->name : "unknown", p->note);
		relay_lose(r, &e);
	}
}

static void failed(struct output_relay *r, const struct op *op)
{
	if (output_relay_op(op)->verb == RELAY_ASK)
		relay_lose(r, &op->err);
	if (output_relay_op(op)->verb == RELAY_KEEP && output_relay_op(op)->changed)
		r->unfollow = true;
	r->ready = 0; /* the next poll tells how many parts there are */
}

static void on_relay_op(struct op *op, void *arg)
{
	struct output_relay *r = arg;
	bool tell = !r->left && (!op->ok || output_relay_op(op)->verb != RELAY_KEEP);

	r->busy = false;
	if (!op->ok)
		failed(r, op);
	else if (output_relay_op(op)->verb == RELAY_ASK)
		on_asked(r, output_relay_op(op));
	else if (output_relay_op(op)->verb == RELAY_TAKE)
		taken(r, output_relay_op(op));
	if (r->left || op->ok)
		relay_step(r);
	op_free(op);
	if (tell)
		r->on_change(r->arg);
}

/* ---- polling ---- */

struct listing {
	struct read_task task;
	struct output_relays *all;
	struct relay_list list;
	struct err err;
	bool ok;
};

static void read_relay_list(struct store *s, struct read_task *task)
{
	struct listing *l = (struct listing *)task;

	l->ok = s && list_relays_of_node(s, l->all->o.node_id, &l->list, &l->err);
}

/* Returns true if the relay has just been lost. */
static bool relay_check(struct output_relay *r, uint64_t look)
{
	bool known = r->seen || r->added_at > look;

	r->seen = false;
	if (!r->added || r->last || r->left || r->state == RELAY_LOST || r->busy)
		return false;
	if (!known)
		relay_lose_node(r, "was asked for it in vain; try again");
	else if (!r->alive && r->ready == 0 && emptied(r))
		relay_lose_node(r, "is not there any more; try again when it is back");
	return r->state == RELAY_LOST;
}

static void take_list(struct output_relays *all, const struct listing *l)
{
	struct output_relay *r;

	for (size_t i = 0; i < l->list.n; i++) {
		const struct relay_view *v = &l->list.v[i];

		r = v->serves ? NULL : map_get(&all->reading, v->id);
		if (!r)
			continue;
		r->seen = true;
		r->ready = v->ready;
		r->alive = v->alive;
	}
	for (size_t i = 0; (r = map_next(&all->reading, &i));) {
		if (relay_check(r, all->looks))
			r->on_change(r->arg);
		else
			relay_step(r);
	}
	output_relay_serve_list(all->serve, &l->list);
}

static void on_listed(struct read_task *task)
{
	struct listing *l = (struct listing *)task;
	struct output_relays *all = l->all;

	all->looking = false;
	if (l->ok && !all->stopped)
		take_list(all, l);
	relay_list_done(&l->list);
	free(l);
	if (all->again)
		output_relays_recheck(all);
}

void output_relays_recheck(struct output_relays *all)
{
	struct listing *l;

	all->again = all->looking;
	if (all->looking || all->stopped || (all->n == 0 && !all->o.has_peers(all->o.arg)))
		return;
	l = xcalloc(1, sizeof(*l));
	l->task = (struct read_task){.work = read_relay_list, .done = on_listed};
	l->all = all;
	all->looking = true;
	all->looks++;
	store_thread_read(all->o.store, &l->task);
}

/* A node that does not answer within ANSWER_MAX is not waited for any longer. */
static void check_unresponsive(struct output_relay *r)
{
	bool waits = r->added && !r->last && r->state != RELAY_LOST && emptied(r) && (r->number == 0 || !r->w.follow);

	if (!waits || r->left) {
		r->heard = relay_boottime();
	} else if (relay_boottime() - r->heard > ANSWER_MAX) {
		relay_lose_node(r, "does not answer; try again");
		r->on_change(r->arg);
	}
}

static void tick_timer_set(struct output_relays *all)
{
	sd_event_source_set_time_relative(all->timer, TICK);
	sd_event_source_set_enabled(all->timer, SD_EVENT_ONESHOT);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *arg)
{
	struct output_relays *all = arg;
	struct output_relay *r;

	(void)source;
	(void)usec;
	for (size_t i = 0; (r = map_next(&all->reading, &i));)
		check_unresponsive(r);
	if (all->n > 0 && !all->stopped) {
		all->o.look(all->o.arg);
		tick_timer_set(all);
	}
	return 0;
}

/* ---- readers ---- */

struct output_relay *output_relay_open(struct output_relays *all, const struct output_relay_request *w, void (*on_change)(void *arg), void *arg)
{
	struct output_relay *r = xcalloc(1, sizeof(*r));
	struct err e = {};

	*r = (struct output_relay){.all = all, .w = *w, .on_change = on_change, .arg = arg};
	r->w.ran_on = xstrdup(w->ran_on);
	do {
		io_random(&r->id, sizeof(r->id));
		r->id &= INT64_MAX;
	} while (r->id == 0 || map_get(&all->reading, r->id));
	map_put(&all->reading, r->id, r);
	if (all->n++ == 0)
		tick_timer_set(all);
	if (all->n > RELAYS_MAX) {
		err_set(&e, ERR_BUSY, "the output of %d runs on other nodes is read through this one already; try again", RELAYS_MAX);
		relay_lose(r, &e);
	} else if (!all->stopped) {
		relay_submit(r, RELAY_ASK);
	}
	return r;
}

void output_relay_free(struct output_relay *r)
{
	if (!r)
		return;
	r->left = true;
	relay_step(r);
}

void output_relay_unfollow(struct output_relay *r)
{
	if (!r->w.follow)
		return;
	r->w.follow = false;
	r->unfollow = true;
	relay_step(r);
}

enum output_relay_state output_relay_state(const struct output_relay *r)
{
	return r->state == RELAY_FLOWS && r->last && emptied(r) ? RELAY_DONE : r->state;
}

const struct err *output_relay_error(const struct output_relay *r)
{
	return &r->why;
}

void output_relay_size(const struct output_relay *r, int64_t *ret_total, int64_t *ret_dropped)
{
	*ret_total = r->total;
	*ret_dropped = r->dropped;
}

size_t output_relay_read(struct output_relay *r, char *out, size_t max)
{
	size_t n = r->data.len - r->at;

	if (n > max)
		n = max;
	if (n > 0)
		memcpy(out, r->data.data + r->at, n);
	r->at += n;
	if (n > 0 && emptied(r)) {
		r->heard = relay_boottime();
		relay_step(r);
	}
	return n;
}

/* ---- all relays of a node ---- */

bool output_relays_new(struct sd_event *ev, const struct output_relays_options *o, struct output_relays **ret, struct err *e)
{
	AUTO(output_relays) *all = xcalloc(1, sizeof(*all));
	int r;

	all->o = *o;
	if (!output_relay_serve_new(ev, o->store, o->node_id, o->output_dir, &all->serve, e))
		return false;
	r = sd_event_add_time_relative(ev, &all->timer, CLOCK_BOOTTIME, 0, 1, on_tick, all);
	if (r < 0)
		return err_errno(e, -r, "could not make a timer");
	sd_event_source_set_enabled(all->timer, SD_EVENT_OFF);
	*ret = STEAL(all);
	return true;
}

void output_relays_stop(struct output_relays *all)
{
	all->stopped = true;
	output_relay_serve_stop(all->serve);
}

void output_relays_free(struct output_relays *all)
{
	struct output_relay *r;

	if (!all)
		return;
	for (size_t i = 0; (r = map_next(&all->reading, &i));)
		relay_destroy(r);
	map_done(&all->reading);
	output_relay_serve_free(all->serve);
	sd_event_source_disable_unref(all->timer);
	free(all);
}
