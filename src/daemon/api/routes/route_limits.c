/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for limits of queues or owners. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/policy.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/schedule/dispatcher.h"
#include "store/limit.h"
#include "store/ops/limits.h"
#include "store/ops/op.h"
#include "store/read/list/list_limits.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <stdio.h>
#include <string.h>

/* A read of one limit, or of all limits of a scope. */
struct limit_query {
	struct store_read q;
	enum limit_scope scope;
	char *ref;       /* owned: from the path; NULL: all */
	char *key;       /* owned, result: key in the store */
	bool counts;     /* the counts of all users are shown */
	int status;      /* of the response */
	struct op *op;   /* owned: submitted when the key is known; NULL: none */
};

static void free_limit_query(struct store_read *q)
{
	struct limit_query *lq = (struct limit_query *)q;

	op_free(lq->op);
	free(lq->ref);
	free(lq->key);
	free(lq);
}

/* ---- names ---- */

static bool find_key(struct store *s, struct limit_query *lq, struct err *e)
{
	int64_t number;

	if (!lq->ref || lq->key)
		return true;
	if (lq->scope == LIMIT_QUEUE) {
		lq->key = xstrdup(lq->ref);
		return true;
	}
	if (!user_lookup_owner(s, lq->ref, &number, e))
		return false;
	lq->key = xprintf("%lld", (long long)number);
	return true;
}

/* ---- showing ---- */

static json_t *rate_to_json(const struct rate *r)
{
	char text[RATE_TEXT_MAX];

	return r->n ? json_string(policy_rate_print(r, text)) : json_null();
}

static json_t *limit_to_json(const struct limit *l, const struct limit_query *lq)
{
	json_t *o = json_pack("{s:o, s:o, s:I, s:I, s:I}", "max_running",
		l->running ? json_integer(l->running) : json_null(), "rate", rate_to_json(&l->rate),
		"active", (json_int_t)l->active, "queued", (json_int_t)l->queued, "jobs",
		(json_int_t)l->jobs);
	AUTO_TEXT name = NULL;
	int64_t uid = 0;

	if (lq->scope == LIMIT_QUEUE && !lq->counts) {
		json_object_set_new(o, "active", json_null());
		json_object_set_new(o, "queued", json_null());
		json_object_set_new(o, "jobs", json_null());
	}
	if (lq->scope == LIMIT_QUEUE) {
		json_object_set_new(o, "name", json_value_text(l->key));
		json_object_set_new(o, "weight", json_integer(l->weight));
		return o;
	}
	text_parse_int(l->key, 0, INT64_MAX, &uid);
	user_lookup_name(owner_uid(uid), true, &name, NULL);
	json_object_set_new(o, "name", json_value_text(name));
	json_object_set_new(o, "uid", json_integer(owner_uid(uid)));
	return o;
}

static void write_one(struct buf *out, json_t *o /* moved */)
{
	json_value_write(o, out);
	json_decref(o);
}

/* All users see the queues; of the owners, a user sees only itself. */
static bool visible(const struct limit_query *lq, const char *key)
{
	char own[24];

	if (lq->scope == LIMIT_QUEUE || lq->q.scope < 0)
		return true;
	snprintf(own, sizeof(own), "%lld", (long long)lq->q.scope);
	return strcmp(own, key) == 0;
}

static bool read_limits_shown(struct store *s, struct store_read *q, struct err *e)
{
	struct limit_query *lq = (struct limit_query *)q;
	AUTO_DONE(limit_list) all = {};
	bool any = false;

	if (!find_key(s, lq, e) || !list_limits_read(s, lq->scope, lq->key, &all, e))
		return false;
	if (lq->key) {
		write_one(&q->out, limit_to_json(&all.v[0], lq));
		buf_char(&q->out, '\n');
		return true;
	}
	buf_str(&q->out, lq->scope == LIMIT_QUEUE ? "{\"queues\":[" : "{\"owners\":[");
	for (size_t i = 0; i < all.n; i++) {
		if (!visible(lq, all.v[i].key))
			continue;
		if (any)
			buf_char(&q->out, ',');
		any = true;
		write_one(&q->out, limit_to_json(&all.v[i], lq));
	}
	buf_str(&q->out, "]}\n");
	return true;
}

static void answer_limits(struct request *r, struct store_read *q)
{
	request_answer_text(r, ((struct limit_query *)q)->status, &q->out);
}

static void start_limit_read(struct request *r, enum limit_scope scope, const char *ref)
{
	struct limit_query *lq = xcalloc(1, sizeof(*lq));
	struct err e = {};

	lq->scope = scope;
	lq->counts = request_sees_all(r);
	lq->ref = xstrdup(ref);
	lq->status = 200;
	lq->q.run = read_limits_shown;
	lq->q.then = answer_limits;
	lq->q.free = free_limit_query;
	if (scope == LIMIT_OWNER && ref && client_user_is(r, ref))
		lq->key = xprintf("%lld", (long long)request_owner(r));
	if (scope == LIMIT_QUEUE || !ref || lq->key || request_sees_all(r)) {
		store_read_start(r, &lq->q);
		return;
	}
	/* for other owners the response does not depend on whether they exist */
	err_set(&e, ERR_NOT_FOUND, "the owner '%.64s' has no limits of its own", ref);
	request_answer_err(r, &e);
	free_limit_query(&lq->q);
}

void route_queue_list(struct request *r)
{
	start_limit_read(r, LIMIT_QUEUE, NULL);
}

void route_queue_get(struct request *r)
{
	start_limit_read(r, LIMIT_QUEUE, r->params[0]);
}

void route_owner_list(struct request *r)
{
	start_limit_read(r, LIMIT_OWNER, NULL);
}

void route_owner_get(struct request *r)
{
	start_limit_read(r, LIMIT_OWNER, r->params[0]);
}

/* ---- changing ---- */

/* The context of an operation; lives until on_done(). */
struct limit_ctx {
	struct ticket *ticket;
	struct dispatcher *dispatcher;
	char *key;       /* owned: the op borrows it */
	char *ref;       /* owned */
};

static void limit_ctx_free(struct limit_ctx *c)
{
	free(c->key);
	free(c->ref);
	free(c);
}

static void answer_limit_changed(struct request *r, struct limit_ctx *c, const struct op *op)
{
	struct limit_query *lq;

	if (op->kind == OP_LIMIT_RM) {
		request_answer_json(r, 200,
			json_pack("{s:o, s:b}", "name", json_value_text(c->ref), "removed", true));
		return;
	}
	lq = xcalloc(1, sizeof(*lq));
	lq->scope = limit_op(op)->scope;
	lq->counts = request_sees_all(r);
	lq->ref = xstrdup(c->ref);
	lq->key = STEAL(c->key);
	lq->status = limit_op(op)->created ? 201 : 200;
	lq->q.run = read_limits_shown;
	lq->q.then = answer_limits;
	lq->q.free = free_limit_query;
	store_read_start(r, &lq->q);
}

static void on_limit_changed(struct op *op, void *arg)
{
	struct limit_ctx *c = arg;
	struct request *r = request_ticket_redeem(c->ticket);

	if (r && !op->ok)
		request_answer_err(r, &op->err);
	else if (r)
		answer_limit_changed(r, c, op);
	op_free(op);
	limit_ctx_free(c);
}

static void submit_limit(struct request *r, struct op *op /* moved */, const char *ref,
	const char *key)
{
	struct limit_ctx *c = xcalloc(1, sizeof(*c));

	*c = (struct limit_ctx){
		.key = xstrdup(key), .ref = xstrdup(ref), .dispatcher = r->context->dispatcher};
	c->ticket = request_ticket(r, true);
	limit_op(op)->key = c->key;
	limit_op(op)->now = request_now(r);
	request_act(r, op);
	op->on_done = on_limit_changed;
	op->arg = c;
	store_thread_submit(r->context->store, op);
}

static bool find_limit_key(struct store *s, struct store_read *q, struct err *e)
{
	return find_key(s, (struct limit_query *)q, e);
}

static void on_limit_key_found(struct request *r, struct store_read *q)
{
	struct limit_query *lq = (struct limit_query *)q;

	submit_limit(r, STEAL(lq->op), lq->ref, lq->key);
}

/* The key of a queue is its name. The key of an owner must be looked up, which may block. */
static void start_limit_change(struct request *r, enum limit_scope scope, struct op *op /* moved */)
{
	struct limit_query *lq;

	limit_op(op)->scope = scope;
	if (scope == LIMIT_QUEUE) {
		submit_limit(r, op, r->params[0], r->params[0]);
		return;
	}
	lq = xcalloc(1, sizeof(*lq));
	lq->scope = scope;
	lq->counts = request_sees_all(r);
	lq->ref = xstrdup(r->params[0]);
	lq->op = op;
	lq->q.run = find_limit_key;
	lq->q.then = on_limit_key_found;
	lq->q.free = free_limit_query;
	store_read_start(r, &lq->q);
}

/* ---- the body of a PUT ---- */

static bool read_limit_number(const json_t *v, const char *name, int64_t min, int64_t max,
	int64_t *ret, struct err *e)
{
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return err_field(e, name, "'%s' must be a whole number from %lld to %lld", name,
			(long long)min, (long long)max);
	*ret = json_integer_value(v);
	return true;
}

static bool read_limit_member(struct op_limit *l, enum limit_scope scope, const char *name,
	const json_t *v, struct err *e)
{
	if (strcmp(name, "max_running") == 0) {
		l->running_given = true;
		return json_is_null(v) ||
		       read_limit_number(v, name, 1, LIMIT_RUNNING_MAX, &l->running, e);
	}
	if (strcmp(name, "rate") == 0) {
		l->rate_given = true;
		if (json_is_null(v))
			return true;
		return json_is_string(v)
			       ? policy_rate_parse(json_string_value(v), &l->rate, e)
			       : err_field(e, name, "'rate' must be a string like 10/1m, or null");
	}
	if (strcmp(name, "weight") == 0 && scope == LIMIT_QUEUE) {
		l->weight_given = true;
		return read_limit_number(v, name, 1, LIMIT_WEIGHT_MAX, &l->weight, e);
	}
	return err_field(e, name, "unknown member '%.60s'", name);
}

static bool read_limit_body(const struct request *r, enum limit_scope scope, struct op_limit *l,
	struct err *e)
{
	const char *name;
	json_t *o, *v;
	bool ok = true;

	if (r->body.len == 0)
		return true;
	o = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	if (!o)
		return false;
	if (!json_is_object(o))
		ok = err_set(e, ERR_INVALID, "the body must be a JSON object");
	json_object_foreach(o, name, v)
		ok = ok && read_limit_member(l, scope, name, v, e);
	json_decref(o);
	return ok;
}

static void start_limit_put(struct request *r, enum limit_scope scope)
{
	const struct query_value *wanted_new = request_query(r, "new");
	struct op *op = op_new(OP_LIMIT_SET, NULL, NULL);
	struct err e = {};

	if ((scope == LIMIT_QUEUE && !job_name_check(r->params[0], &e)) ||
		!read_limit_body(r, scope, limit_op(op), &e)) {
		op_free(op);
		request_answer_err(r, &e);
		return;
	}
	if (wanted_new && wanted_new->given)
		limit_op(op)->be = wanted_new->number ? LIMIT_BE_NEW : LIMIT_BE_THERE;
	start_limit_change(r, scope, op);
}

void route_queue_put(struct request *r)
{
	start_limit_put(r, LIMIT_QUEUE);
}

void route_owner_put(struct request *r)
{
	start_limit_put(r, LIMIT_OWNER);
}

void route_queue_remove(struct request *r)
{
	start_limit_change(r, LIMIT_QUEUE, op_new(OP_LIMIT_RM, NULL, NULL));
}

void route_owner_remove(struct request *r)
{
	start_limit_change(r, LIMIT_OWNER, op_new(OP_LIMIT_RM, NULL, NULL));
}
