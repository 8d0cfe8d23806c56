/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's work: reaps dead nodes, assigns segments to live ones. */
#include "store/ops/node/leader.h"
#include "base/err.h"
#include "base/text.h"
#include "core/decide/spread.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

/* A live or dead node. */
struct member {
	char *id, *name; /* owned */
	bool draining;
};
struct members {
	struct member *v;
	size_t n;
};

static void members_done(struct members *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].id);
		free(m->v[i].name);
	}
	free(m->v);
}

static struct member *members_add(struct members *m)
{
	if ((m->n & (m->n - 1)) == 0)
		m->v = xrealloc(m->v, (m->n ? m->n * 2 : 1) * sizeof(*m->v));
	m->v[m->n] = (struct member){};
	return &m->v[m->n++];
}

/* The queries of each OP_LEAD. On a server they take one round trip. */
struct lead_reads {
	struct query hold, look, live, segments;
};

static void lead_reads_done(struct lead_reads *r)
{
	query_done(&r->hold);
	query_done(&r->look);
	query_done(&r->live);
	query_done(&r->segments);
}

/*
 * 'hold' checks that this engine leads under this term, and locks the leader lease until the
 * commit. 'look' finds dead nodes and runs of closed nodes, without locks.
 */
static bool lead_reads_send(struct store *s, const struct op_lead *l, struct lead_reads *r, struct err *e)
{
	r->hold = query_start(s->db, Q_LEADER_HOLD, e);
	query_text(&r->hold, l->node);
	query_int(&r->hold, l->term);
	r->look = query_start(s->db, Q_LEADER_LOOK, e);
	query_text(&r->look, l->node);
	query_int(&r->look, l->unguarded_wait);
	query_int(&r->look, l->away_before);
	r->live = query_start(s->db, Q_NODES_LIVE, e);
	r->segments = query_start(s->db, Q_SEGMENTS_ALL, e);
	return query_ahead(&r->hold) && query_ahead(&r->look) && query_ahead(&r->live) && query_ahead(&r->segments);
}

/* ---- dead nodes ---- */

static bool read_dead(struct store *s, const struct op_lead *l, struct members *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_DEAD, e);

	query_text(&q, l->node);
	query_int(&q, l->unguarded_wait);
	while (query_row(&q)) {
		struct member *m = members_add(ret);

		m->id = query_get_copy(&q);
		m->name = query_get_copy(&q);
	}
	return !q.failed;
}

static bool node_mark_lost(struct store *s, const char *id, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_LOST, e);

	query_text(&q, id);
	query_int(&q, now);
	return query_finish(&q);
}

/*
 * Subtracts active runs from the counters of the dead node; active_run_count() adds them to this
 * node's.
 */
static bool move_count(struct store *s, const char *from, const struct set *counts, struct err *e)
{
	AUTO_QUERY q = {};

	if (counts->n == 0)
		return true;
	q = query_start(s->db, Q_COUNTERS_ADD, e);
	query_text(&q, from);
	set_bind(&q, (struct set *)counts);
	return query_finish(&q);
}

static void describe_count(struct set *set, int64_t uid, const char *queue)
{
	set_item(set);
	set_int(set, "what", COUNT_ACTIVE);
	set_int(set, "state", uid);
	set_text(set, "queue", queue);
	set_int(set, "n", -1);
}

/* Reads id, uid and queue of a run, and counts the run as active on this node. */
static void active_run_count(struct store *s, struct query *q, struct set *ids, int64_t *ret_uid, char **ret_queue)
{
	set_id(ids, query_get_int(q));
	*ret_uid = query_get_int(q);
	*ret_queue = query_get_copy(q);
	counter_change(s, COUNT_ACTIVE, *ret_uid, *ret_queue, 1);
}

static bool active_run_uncount(struct store *s, const char *node, int64_t uid, const char *queue, struct err *e)
{
	AUTO_SET one = {};

	describe_count(&one, uid, queue);
	return move_count(s, node, &one, e);
}

static bool dead_node_runs_take(struct store *s, struct op_lead *l, const struct member *dead, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_RUNS, e);
	AUTO_SET ids = {};

	query_text(&q, dead->id);
	while (query_row(&q)) {
		AUTO_TEXT queue = NULL;
		int64_t uid;

		active_run_count(s, &q, &ids, &uid, &queue);
		if (!active_run_uncount(s, dead->name, uid, queue, e))
			return false;
	}
	return !q.failed && claim_take_over(s, l->node, &ids, &l->lost, e);
}

/* Takes the runs of nodes that left and did not come back in time. */
static bool left_runs_take(struct store *s, struct op_lead *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_AWAY, e);
	AUTO_SET ids = {};

	query_int(&q, l->away_before);
	while (query_row(&q)) {
		AUTO_TEXT queue = NULL;
		AUTO_TEXT name = NULL;
		int64_t uid;

		active_run_count(s, &q, &ids, &uid, &queue);
		name = query_get_copy(&q);
		if (!active_run_uncount(s, name, uid, queue, e))
			return false;
	}
	return !q.failed && claim_take_over(s, l->node, &ids, &l->lost, e);
}

static bool nodes_reap(struct store *s, struct op_lead *l, struct err *e)
{
	AUTO_DONE(members) dead = {};

	if (!read_dead(s, l, &dead, e))
		return false;
	for (size_t i = 0; i < dead.n; i++) {
		if (!node_mark_lost(s, dead.v[i].id, l->now, e) || !dead_node_runs_take(s, l, &dead.v[i], e))
			return false;
		event_add(s, &(struct event_new){.at = l->now, .what = EVENT_NODE_LOST, .object = dead.v[i].name,
			.node = dead.v[i].id});
	}
	l->dead = (int64_t)dead.n;
	return left_runs_take(s, l, e);
}

/* ---- segments ---- */

static bool live_take(struct query *q, struct members *ret)
{
	while (query_row(q)) {
		struct member *m = members_add(ret);

		m->id = query_get_copy(q);
		m->name = query_get_copy(q);
		m->draining = query_get_int(q);
	}
	return !q->failed;
}

static int member_index(const struct member *const *v, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (text_equal(v[i]->id, id))
			return (int)i;
	return SPREAD_UNASSIGNED;
}

static bool holders_take(struct query *q, const struct member *const *v, size_t n, int ret[SEGMENTS])
{
	for (int i = 0; i < SEGMENTS; i++)
		ret[i] = SPREAD_UNASSIGNED;
	while (query_row(q)) {
		int64_t segment = query_get_int(q);

		if (segment >= 0 && segment < SEGMENTS)
			ret[segment] = member_index(v, n, query_get_text(q));
	}
	return !q->failed;
}

/* Drained nodes plan only if all live nodes are drained. */
static size_t planners_choose(const struct members *live, const struct member **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < live->n; i++)
		if (!live->v[i].draining)
			ret[n++] = &live->v[i];
	for (size_t i = 0; n == 0 && i < live->n; i++)
		ret[i] = &live->v[i];
	return n ? n : live->n;
}

static bool spread(struct store *s, struct op_lead *l, const struct members *live, struct query *segments, struct err *e)
{
	const struct member **v = xcalloc(live->n ? live->n : 1, sizeof(*v));
	const char **names = xcalloc(live->n ? live->n : 1, sizeof(*names));
	size_t n = planners_choose(live, v);
	int was[SEGMENTS], next[SEGMENTS];
	AUTO_SET moves = {};
	bool ok = holders_take(segments, v, n, was);

	for (size_t i = 0; i < n; i++)
		names[i] = v[i]->name;
	if (ok && n > 0)
		l->moved = (int64_t)spread_segments(names, n, was, next);
	for (int i = 0; l->moved > 0 && i < SEGMENTS; i++)
		if (next[i] != was[i]) {
			set_item(&moves);
			set_int(&moves, "segment", i);
			set_text(&moves, "node", v[next[i]]->id);
		}
	free(names);
	free(v);
	return ok && (moves.n == 0 || batch_needs_exclusive(s, e)) && set_execute(s, Q_SEGMENTS_PUT, &moves, e);
}

/* ---- the operation ---- */

/* Other nodes check this time to see that the leader works. A single node does not write it. */
bool leader_worked(struct store *s, usec_t at, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LEADER_WORKED, e);

	query_int(&q, at);
	return query_finish(&q);
}

/* Dead nodes may have runs of any job, so the batch must exclude all other writers. */
static bool leader_reap(struct store *s, struct op_lead *l, struct query *look, struct err *e)
{
	bool found = query_row(look);

	return !look->failed && (!found || l->spares || (batch_needs_exclusive(s, e) && nodes_reap(s, l, e)));
}

static bool leader_work(struct store *s, struct op *op, struct err *e)
{
	struct op_lead *l = leader_op(op);
	AUTO_DONE(lead_reads) r = {};
	AUTO_DONE(members) live = {};

	if (!lead_reads_send(s, l, &r, e))
		return false;
	if (!query_row(&r.hold))
		return !r.hold.failed && op_refuse(op, ERR_FENCED, "term %lld has ended: another node leads", (long long)l->term);
	if (!leader_reap(s, l, &r.look, e) || !live_take(&r.live, &live) || !spread(s, l, &live, &r.segments, e))
		return false;
	if (!output_relays_prune(s, e))
		return false;
	l->live = (int64_t)live.n;
	if (live.n > 1 && !leader_worked(s, l->now, e))
		return false;
	if (l->lost.n > 0 || l->dead > 0 || l->moved > 0)
		wakeup_peers(s);
	return true;
}

bool leader_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!leader_work(s, ops[i], e))
			return false;
	return true;
}

void leader_reset(struct op *op)
{
	struct op_lead *l = leader_op(op);

	claim_list_done(&l->lost);
	l->dead = l->live = l->moved = 0;
}
