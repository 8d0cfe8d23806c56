/* SPDX-License-Identifier: Apache-2.0 */
/* Reads queues and the limits of owners, with their use. */
#include "store/read/list/list_limits.h"
#include "base/edit_distance.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/limit.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <stdio.h>
#include <string.h>

const char *const limit_scope_names[LIMIT_SCOPE_MAX] = {[LIMIT_QUEUE] = "queue", [LIMIT_OWNER] = "owner"};

void limit_list_done(struct limit_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].key);
	free(l->v);
	*l = (struct limit_list){};
}

struct limit list_limits_row(struct query *q)
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

static bool limits_read_all(struct store *s, enum limit_scope scope, struct limit_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMITS_ALL, e);

	query_text(&q, limit_scope_names[scope]);
	while (query_row(&q)) {
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = list_limits_row(&q);
	}
	return !q.failed;
}

bool list_limits_no_queue(struct store *s, const char *name, enum err_kind kind, struct err *refusal, struct err *e)
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

/* Removes all entries but the one with this key. */
static bool limit_keep_one(struct store *s, enum limit_scope scope, const char *key, struct limit_list *l, struct err *e)
{
	struct limit *found = limit_find(l, key), first;

	if (!found && scope == LIMIT_QUEUE)
		return list_limits_no_queue(s, key, ERR_NOT_FOUND, e, e) && false;
	if (!found)
		return err_set(e, ERR_NOT_FOUND, "the owner with uid %s has no limits", key);
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
