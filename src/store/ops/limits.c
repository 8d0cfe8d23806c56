/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and the limits of owners: made, changed, removed, and shown with what they hold. */
#include "store/ops/limits.h"
#include "base/edit_distance.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const scopes[LIMIT_SCOPE_MAX] = {[LIMIT_QUEUE] = "queue", [LIMIT_OWNER] = "owner"};

void limit_list_done(struct limit_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].key);
	free(l->v);
	*l = (struct limit_list){};
}

static struct limit row_limit(struct query *q)
{
	struct limit l = {};

	l.key = query_get_copy(q);
	l.running = query_get_int(q);
	l.weight = query_get_int(q);
	l.rate.n = query_get_int(q);
	l.rate.per = query_get_int(q);
	l.rate.burst = query_get_int(q);
	return l;
}

/* ---- which there are ---- */

static bool limits_read_all(struct store *s, enum limit_scope scope, struct limit_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMITS_ALL, e);

	query_text(&q, scopes[scope]);
	while (query_row(&q)) {
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = row_limit(&q);
	}
	return !q.failed;
}

/* "no queue 'nihgt'; did you mean 'night'? ..." */
static bool no_such_queue(struct store *s, const char *name, enum err_kind kind, struct err *refusal, struct err *e)
{
	AUTO_DONE(limit_list) all = {};
	AUTO_DONE(strv) names = {};
	const char *near;

	if (!limits_read_all(s, LIMIT_QUEUE, &all, e))
		return false;
	for (size_t i = 0; i < all.n; i++)
		strv_add(&names, all.v[i].key);
	near = edit_distance_nearest(name, &names);
	if (near)
		err_set(refusal, kind, "no queue '%.128s'; did you mean '%s'? 'jobctl queue add %.128s' makes a new one",
			name, near, name);
	else
		err_set(refusal, kind, "no queue '%.128s'; make it with 'jobctl queue add %.128s', or see 'jobctl queue list'",
			name, name);
	snprintf(refusal->field, sizeof(refusal->field), "queue");
	return true;
}

bool limit_queue_check(struct store *s, const char *queue, struct err *refusal, struct err *e)
{
	AUTO_QUERY q = {};

	if (!queue || strcmp(queue, QUEUE_DEFAULT) == 0)
		return true;
	q = query_start(s->db, s->db->writing ? Q_QUEUE_USE : Q_QUEUE_SEEN, e);
	query_text(&q, queue);
	if (query_row(&q))
		return true;
	return !q.failed && no_such_queue(s, queue, ERR_INVALID, refusal, e);
}

/* ---- making and changing ---- */

static bool limit_lock(struct store *s, const struct op_limit *o, struct limit *ret, bool *ret_there, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMIT_LOCK, e);

	query_text(&q, scopes[o->scope]);
	query_text(&q, o->key);
	*ret = (struct limit){.weight = LIMIT_WEIGHT};
	*ret_there = query_row(&q);
	if (*ret_there)
		*ret = row_limit(&q);
	free(STEAL(ret->key));
	return !q.failed;
}

static bool limit_write(struct store *s, const struct op_limit *o, const struct limit *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMIT_PUT, e);

	query_text(&q, scopes[o->scope]);
	query_text(&q, o->key);
	query_int(&q, l->running);
	query_int(&q, l->weight);
	query_int(&q, l->rate.n);
	query_int(&q, l->rate.per);
	query_int(&q, l->rate.burst);
	return query_finish(&q);
}

static bool limit_row_drop(struct store *s, int query, const struct op_limit *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query, e);

	query_text(&q, scopes[o->scope]);
	query_text(&q, o->key);
	return query_finish(&q);
}

static bool refuse_missing(struct store *s, struct op *op, struct err *e)
{
	const struct op_limit *o = limit_op(op);

	op->ok = false;
	if (o->scope == LIMIT_QUEUE)
		return no_such_queue(s, o->key, ERR_NOT_FOUND, &op->err, e);
	return op_refuse(op, ERR_NOT_FOUND, "the owner with uid %s has no limits of his own; 'jobctl limit list' shows who has",
		o->key);
}

/* What changed and who asked for it goes into the audit trail. */
static void limit_event(struct store *s, const struct op *op, const char *detail)
{
	static const enum event_what words[LIMIT_SCOPE_MAX][2] = {
		[LIMIT_QUEUE] = {EVENT_QUEUE_SET, EVENT_QUEUE_REMOVE},
		[LIMIT_OWNER] = {EVENT_LIMIT_SET, EVENT_LIMIT_REMOVE},
	};

	event_add(s, &(struct event_new){.at = limit_op(op)->now, .by = &op->act.by, .owner = -1,
		.object = op->act.object[0] ? op->act.object : limit_op(op)->key,
		.what = words[limit_op(op)->scope][op->kind == OP_LIMIT_RM], .detail = detail});
}

static char *limit_words(const struct limit *l, enum limit_scope scope)
{
	AUTO_TEXT weight = scope == LIMIT_QUEUE ? xprintf(", weight %" PRId64, l->weight) : xstrdup("");
	AUTO_TEXT running = l->running ? xprintf("%" PRId64, l->running) : xstrdup("any number");
	char rate[RATE_TEXT_MAX] = "any";

	if (l->rate.n)
		policy_rate_print(&l->rate, rate);
	return xprintf("running %s%s, rate %s", running, weight, rate);
}

static bool limit_set(struct store *s, struct op *op, struct err *e)
{
	struct op_limit *o = limit_op(op);
	AUTO_TEXT detail = NULL;
	struct limit l;
	bool there;

	if (!limit_lock(s, o, &l, &there, e))
		return false;
	if (there && o->be == LIMIT_BE_NEW)
		return op_refuse(op, ERR_CONFLICT, "there is a queue '%.128s' already; 'jobctl queue set %.128s' changes it",
			o->key, o->key);
	if (!there && o->be == LIMIT_BE_THERE)
		return refuse_missing(s, op, e);
	if (o->running_given)
		l.running = o->running;
	if (o->weight_given)
		l.weight = o->weight;
	if (o->rate_given)
		l.rate = o->rate;
	o->created = !there;
	detail = limit_words(&l, o->scope);
	limit_event(s, op, detail);
	/* Another rate is another bucket: what was spoken for under the old one does not count. */
	return limit_write(s, o, &l, e) && (!o->rate_given || limit_row_drop(s, Q_BUCKET_DROP, o, e));
}

bool limit_set_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!limit_set(s, ops[i], e))
			return false;
	return true;
}

/* ---- removing ---- */

static bool count_in(struct store *s, enum count_what what, int from, int to, const char *queue, int64_t *ret,
	struct err *e)
{
	*ret = 0;
	for (int state = from; state <= to; state++) {
		AUTO_QUERY q = query_start(s->db, Q_COUNTER_IN, e);

		query_int(&q, what);
		query_int(&q, state);
		query_text(&q, queue);
		if (query_row(&q))
			*ret += query_get_int(&q);
		if (q.failed)
			return false;
		*ret += counter_pending_in(s, what, state, queue);
	}
	return true;
}

static bool check_unused(struct store *s, struct op *op, struct err *e)
{
	const char *queue = limit_op(op)->key;
	int64_t jobs, runs;

	if (strcmp(queue, QUEUE_DEFAULT) == 0)
		return op_refuse(op, ERR_CONFLICT, "the queue '%s' is where jobs go that name none; it cannot be removed", queue);
	if (!count_in(s, COUNT_JOBS, JOB_ACTIVE, JOB_SUSPENDED, queue, &jobs, e) ||
	    !count_in(s, COUNT_RUNS, RUN_QUEUED, RUN_RUNNING, queue, &runs, e))
		return false;
	if (jobs == 0 && runs == 0)
		return true;
	return op_refuse(op, ERR_CONFLICT, "the queue '%s' is in use: %" PRId64 " job%s, %" PRId64 " run%s that wait or run; "
		"change or remove those jobs first ('jobctl list' shows them)", queue, jobs, jobs == 1 ? "" : "s", runs,
		runs == 1 ? "" : "s");
}

static bool limit_remove(struct store *s, struct op *op, struct err *e)
{
	struct op_limit *o = limit_op(op);
	struct limit l;
	bool there;

	if (!limit_lock(s, o, &l, &there, e))
		return false;
	if (!there)
		return refuse_missing(s, op, e);
	if (o->scope == LIMIT_QUEUE && !check_unused(s, op, e))
		return false;
	if (!op->ok)
		return true;
	limit_event(s, op, NULL);
	return limit_row_drop(s, Q_LIMIT_DROP, o, e) && limit_row_drop(s, Q_BUCKET_DROP, o, e);
}

bool limit_remove_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!limit_remove(s, ops[i], e))
			return false;
	return true;
}

/* ---- showing ---- */

static struct limit *limit_find(struct limit_list *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].key, key) == 0)
			return &l->v[i];
	return NULL;
}

static bool count_runs(struct store *s, struct limit_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_IN, e);

	query_int(&q, COUNT_RUNS);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);
		struct limit *in = limit_find(l, query_get_text(&q));
		int64_t n = query_get_int(&q);

		if (in && state == RUN_QUEUED)
			in->queued += n;
		else if (in && (state == RUN_CLAIMED || state == RUN_RUNNING))
			in->active += n;
	}
	return !q.failed;
}

static bool count_jobs(struct store *s, struct limit_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_IN, e);

	query_int(&q, COUNT_JOBS);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);
		struct limit *in = limit_find(l, query_get_text(&q));

		if (in && state < JOB_FINISHED)
			in->jobs += query_get_int(&q);
	}
	return !q.failed;
}

static bool read_counter(struct store *s, enum count_what what, int64_t state, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTER_GET, e);

	query_int(&q, what);
	query_int(&q, state);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

static bool count_owner(struct store *s, struct limit *l, struct err *e)
{
	AUTO_QUERY q = {};
	int64_t uid = 0;

	text_parse_int(l->key, 0, INT64_MAX, &uid);
	if (!read_counter(s, COUNT_OWNER, uid, &l->jobs, e) || !read_counter(s, COUNT_ACTIVE, uid, &l->active, e))
		return false;
	q = query_start(s->db, Q_OWNER_QUEUED, e);
	query_int(&q, uid);
	query_int(&q, LIMIT_QUEUED_MAX);
	if (query_row(&q))
		l->queued = query_get_int(&q);
	return !q.failed;
}

static bool count_held(struct store *s, enum limit_scope scope, struct limit_list *l, struct err *e)
{
	if (scope == LIMIT_QUEUE)
		return count_runs(s, l, e) && count_jobs(s, l, e);
	for (size_t i = 0; i < l->n; i++)
		if (!count_owner(s, &l->v[i], e))
			return false;
	return true;
}

/* Leaves only the one with this key. */
static bool limit_keep_one(struct store *s, enum limit_scope scope, const char *key, struct limit_list *l, struct err *e)
{
	struct limit *found = limit_find(l, key), first;

	if (!found && scope == LIMIT_QUEUE)
		return no_such_queue(s, key, ERR_NOT_FOUND, e, e) && false;
	if (!found)
		return err_set(e, ERR_NOT_FOUND, "the owner with uid %s has no limits of his own", key);
	first = l->v[0];
	l->v[0] = *found;
	*found = first;
	while (l->n > 1)
		free(l->v[--l->n].key);
	return true;
}

bool list_limits_read(struct store *s, enum limit_scope scope, const char *key, struct limit_list *ret, struct err *e)
{
	AUTO_DONE(limit_list) l = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !limits_read_all(s, scope, &l, e) || (key && !limit_keep_one(s, scope, key, &l, e)) ||
	    !count_held(s, scope, &l, e) || !tx_commit(&tx, e))
		return false;
	*ret = l;
	l = (struct limit_list){};
	return true;
}

void limit_reset(struct op *op)
{
	limit_op(op)->created = false;
}
