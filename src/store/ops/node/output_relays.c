/* SPDX-License-Identifier: Apache-2.0 */
/* Passes run output between nodes through rows in the store, a few parts at a time. */
#include "store/ops/node/output_relays.h"
#include "base/err.h"
#include "base/text.h"
#include "store/ops/op_private.h"
#include "store/relay_part.h"
#include "store/store_private.h"
#include "store/tx.h"

/* Notifies only the node at the other end. */
static bool relay_notify(struct store *s, const char *node, struct err *e)
{
	AUTO_QUERY q = {};

	if (!node)
		return true;
	q = query_start(s->db, Q_RELAY_TELL, e);
	query_text(&q, node);
	return query_finish(&q);
}

/* ---- request ---- */

static bool find_holder(struct store *s, struct op_relay *r, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_HOLDER, e);

	query_text(&q, r->ran_on);
	if (query_row(&q)) {
		r->name = query_get_copy(&q);
		r->holder = query_get_copy(&q);
	}
	return !q.failed;
}

static bool read_load(struct store *s, const char *holder, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_LOAD, e);

	query_text(&q, holder);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

static bool relay_insert(struct store *s, const struct op_relay *r, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_ADD, e);

	query_int(&q, r->id);
	query_text(&q, r->node);
	query_text(&q, r->holder);
	query_int(&q, r->run);
	query_int(&q, r->attempt);
	query_int(&q, r->from);
	query_int(&q, r->tail);
	query_int(&q, r->follow);
	query_int(&q, r->ttl);
	return query_finish(&q);
}

static bool relay_request(struct store *s, struct op *op, struct err *e)
{
	struct op_relay *r = output_relay_op(op);
	int64_t load = 0;

	if (!find_holder(s, r, e))
		return false;
	r->gone = !r->holder;
	if (r->gone || text_equal(r->holder, r->node))
		return true;
	if (!read_load(s, r->holder, &load, e))
		return false;
	if (load >= RELAYS_MAX)
		return op_refuse(op, ERR_BUSY, "node '%s' already serves the output of %d runs; try again", r->name, RELAYS_MAX);
	return relay_insert(s, r, e) && relay_notify(s, r->holder, e);
}

/* ---- the holder ---- */

static bool put_part(struct store *s, const struct op_relay *r, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_PART_PUT, e);

	query_int(&q, r->id);
	query_int(&q, r->part.number);
	query_int(&q, r->part.at);
	query_int(&q, r->part.total);
	query_int(&q, r->part.dropped);
	query_int(&q, r->part.last);
	query_text(&q, r->part.note);
	query_text(&q, r->part.data ? r->part.data : "");
	return query_finish(&q);
}

/*
 * Takes no lock: if the reader ends the relay at this moment, the part is deleted by
 * output_relays_prune().
 */
static bool relay_put(struct store *s, struct op *op, struct err *e)
{
	struct op_relay *r = output_relay_op(op);
	AUTO_TEXT reader = NULL;
	AUTO_QUERY q = query_start(s->db, Q_RELAY_READER, e);

	query_int(&q, r->id);
	query_text(&q, r->node);
	r->gone = !query_row(&q);
	if (q.failed || r->gone)
		return !q.failed;
	reader = query_get_copy(&q);
	return put_part(s, r, e) && relay_notify(s, reader, e);
}

/* ---- the reader ---- */

static bool drop_parts(struct store *s, int64_t id, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_PARTS_DROP, e);

	query_int(&q, id);
	return query_finish(&q);
}

static bool relay_drop(struct store *s, struct op *op, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_DROP, e);
	AUTO_TEXT holder = NULL;

	query_int(&q, output_relay_op(op)->id);
	output_relay_op(op)->gone = !query_row(&q);
	if (q.failed || output_relay_op(op)->gone)
		return !q.failed;
	holder = query_get_copy(&q);
	return drop_parts(s, output_relay_op(op)->id, e) && relay_notify(s, holder, e);
}

static bool relay_keep(struct store *s, struct op *op, struct err *e)
{
	struct op_relay *r = output_relay_op(op);
	AUTO_QUERY q = query_start(s->db, Q_RELAY_KEEP, e);
	AUTO_TEXT holder = NULL;

	query_int(&q, r->id);
	query_int(&q, r->follow);
	query_int(&q, r->ttl);
	r->gone = !query_row(&q);
	if (q.failed || r->gone)
		return !q.failed;
	holder = query_get_copy(&q);
	return !r->changed || relay_notify(s, holder, e);
}

static bool take_part(struct store *s, int64_t id, struct relay_part *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAY_PART_TAKE, e);

	query_int(&q, id);
	if (query_row(&q)) {
		ret->number = query_get_int(&q);
		ret->at = query_get_int(&q);
		ret->total = query_get_int(&q);
		ret->dropped = query_get_int(&q);
		ret->last = query_get_int(&q);
		ret->note = query_get_copy(&q);
		ret->data = query_get_copy(&q);
	}
	return !q.failed;
}

/* The relay ends with its last part. */
static bool relay_take(struct store *s, struct op *op, struct err *e)
{
	struct op_relay *r = output_relay_op(op);
	AUTO_QUERY q = {};
	AUTO_TEXT holder = NULL;

	if (!take_part(s, r->id, &r->part, e))
		return false;
	if (r->part.number == 0)
		return true;
	if (r->part.last)
		return relay_drop(s, op, e);
	q = query_start(s->db, Q_RELAY_TAKEN, e);
	query_int(&q, r->id);
	query_int(&q, r->part.number);
	query_int(&q, r->ttl);
	r->gone = !query_row(&q);
	if (q.failed || r->gone)
		return !q.failed;
	holder = query_get_copy(&q);
	return relay_notify(s, holder, e);
}

bool output_relay_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	static bool (*const verbs[])(struct store *s, struct op *op, struct err *e) = {
		[RELAY_ASK] = relay_request, [RELAY_PUT] = relay_put, [RELAY_KEEP] = relay_keep, [RELAY_TAKE] = relay_take, [RELAY_DROP] = relay_drop,
	};

	for (size_t i = 0; i < n; i++)
		if (!verbs[output_relay_op(ops[i])->verb](s, ops[i], e))
			return false;
	return true;
}

bool output_relays_prune(struct store *s, struct err *e)
{
	AUTO_QUERY relays = query_start(s->db, Q_RELAYS_PRUNE, e);
	AUTO_QUERY parts = {};

	if (!query_finish(&relays))
		return false;
	parts = query_start(s->db, Q_RELAY_PARTS_PRUNE, e);
	return query_finish(&parts);
}

void output_relay_op_reset(struct op *op)
{
	struct op_relay *r = output_relay_op(op);

	free(STEAL(r->holder));
	free(STEAL(r->name));
	r->gone = false;
	if (r->verb == RELAY_TAKE)
		relay_part_done(&r->part);
}

void output_relay_op_free(struct op *op)
{
	free(output_relay_op(op)->ran_on);
	relay_part_done(&output_relay_op(op)->part);
}
