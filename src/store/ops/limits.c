/* SPDX-License-Identifier: Apache-2.0 */
/* Changes queues or the limits of owners. */
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
#include "store/limit.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op_private.h"
#include "store/read/list/list_limits.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool limit_queue_check(struct store *s, const char *queue, struct err *refusal, struct err *e)
{
	AUTO_QUERY q = {};

	if (!queue || strcmp(queue, QUEUE_DEFAULT) == 0)
		return true;
	q = query_start(s->db, s->db->writing ? Q_QUEUE_USE : Q_QUEUE_SEEN, e);
	query_text(&q, queue);
	if (query_row(&q))
		return true;
	return !q.failed && list_limits_no_queue(s, queue, ERR_INVALID, refusal, e);
}

bool limit_queue_prefetch(struct store *s, const char *queue, struct err *e)
{
	AUTO_QUERY q = {};

	if (!queue || strcmp(queue, QUEUE_DEFAULT) == 0)
		return true;
	q = query_start(s->db, Q_QUEUE_USE, e);
	query_text(&q, queue);
	return query_prefetch(&q);
}

/* ---- set ---- */

static bool limit_lock(struct store *s, const struct op_limit *o, struct limit *ret, bool *ret_there, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMIT_LOCK, e);

	query_text(&q, limit_scope_names[o->scope]);
	query_text(&q, o->key);
	*ret = (struct limit){.weight = LIMIT_WEIGHT};
	*ret_there = query_row(&q);
	if (*ret_there)
		*ret = list_limits_row(&q);
	free(STEAL(ret->key));
	return !q.failed;
}

static bool limit_write(struct store *s, const struct op_limit *o, const struct limit *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMIT_PUT, e);

	query_text(&q, limit_scope_names[o->scope]);
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

	query_text(&q, limit_scope_names[o->scope]);
	query_text(&q, o->key);
	return query_finish(&q);
}

static bool refuse_missing(struct store *s, struct op *op, struct err *e)
{
	const struct op_limit *o = limit_op(op);

	op->ok = false;
	if (o->scope == LIMIT_QUEUE)
		return list_limits_no_queue(s, o->key, ERR_NOT_FOUND, &op->err, e);
	return op_refuse(op, ERR_NOT_FOUND, "the owner with uid %s has no limits; 'jobctl limit list' shows the owners that have",
		o->key);
}

/* Adds the audit event of the change. */
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
	/* a new rate starts with a full bucket */
	return limit_write(s, o, &l, e) && (!o->rate_given || limit_row_drop(s, Q_BUCKET_DROP, o, e));
}

bool limit_set_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!limit_set(s, ops[i], e))
			return false;
	return true;
}

/* ---- remove ---- */

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
		return op_refuse(op, ERR_CONFLICT, "jobs without a queue use the queue '%s'; it cannot be removed", queue);
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

void limit_reset(struct op *op)
{
	limit_op(op)->created = false;
}
