/* SPDX-License-Identifier: Apache-2.0 */
/* Registers engines; a new one takes over the runs of earlier engines of its node name. */
#include "store/ops/node/nodes.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "store/events.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

#define OLDER_AGE USEC_MIN /* a writer of an earlier version that wrote nothing for longer is ignored */
#define LEASE_FOREVER (100 * 366 * USEC_DAY) /* the lease of a node that does not renew it */

static bool insert_node(struct store *s, const struct op_node_open *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_INSERT, e);

	query_text(&q, o->node);
	query_text(&q, o->name);
	query_text(&q, o->spawner);
	query_text(&q, o->host ? o->host : "");
	query_int(&q, o->now);
	query_int(&q, o->ttl ? o->ttl : LEASE_FOREVER);
	query_int(&q, !o->ttl ? LEASE_FOREVER : o->run_ttl > o->ttl ? o->run_ttl : o->ttl);
	query_text(&q, o->labels ? o->labels : "");
	query_int(&q, o->barred);
	query_text(&q, o->boot ? o->boot : "");
	query_text(&q, o->machine ? o->machine : "");
	return query_finish(&q);
}

/*
 * Locks the rows of earlier engines of this name. A claim of theirs that is in progress is
 * committed first, so its runs are seen below.
 */
static bool await_others(struct store *s, const char *name, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_NAMED, e);

	query_text(&q, name);
	return query_finish(&q);
}

/*
 * Finds a live node of this name on another machine: the two would take each other's runs. A
 * machine that was rebooted is not regarded as another one.
 */
static bool lives_elsewhere(struct store *s, const struct op_node_open *o, char **ret_host, struct err *e)
{
	AUTO_QUERY q = {};

	*ret_host = NULL;
	if (!o->boot)
		return true;
	q = query_start(s->db, Q_NODE_ELSEWHERE, e);
	query_text(&q, o->name);
	query_text(&q, o->boot);
	query_text(&q, o->machine ? o->machine : "");
	query_int(&q, o->uptime);
	if (query_row(&q))
		*ret_host = query_get_copy(&q);
	return !q.failed;
}

static bool strv_contains(const struct strv *v, const char *s)
{
	for (size_t i = 0; v && i < v->n; i++)
		if (text_equal(v->v[i], s))
			return true;
	return false;
}

/*
 * Finds a daemon of this name that does not use the file lock (an older version, or one that
 * reached the file by a path that evades it): the file is in use, its lease has not ended, and its
 * spawner is neither ours nor that of a daemon that has ended.
 */
static bool has_rival(struct store *s, const struct op_node_open *o, bool *ret, struct err *e)
{
	AUTO_QUERY q = {};

	*ret = false;
	if (!o->in_use || !o->boot)
		return true;
	q = query_start(s->db, Q_NODE_RIVALS, e);
	query_text(&q, o->name);
	query_text(&q, o->node);
	query_text(&q, o->boot);
	while (query_row(&q)) {
		const char *spawner = query_get_text(&q);

		*ret = *ret || (!text_equal(spawner, o->spawner) && !strv_contains(o->past_spawners, spawner));
	}
	return !q.failed;
}

static bool read_given_up(struct store *s, const struct op_node_open *o, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_CLOSED, e);

	query_text(&q, o->node);
	*ret = query_row(&q);
	return !q.failed;
}

static bool older_engines_close(struct store *s, const struct op_node_open *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_DISPLACE, e);

	query_text(&q, o->name);
	query_text(&q, o->node);
	query_int(&q, o->now);
	return query_finish(&q);
}

/*
 * Takes over segments, and frees the leader lease, of earlier engines of this name. They are
 * closed, so their leases need not end first.
 */
static bool segments_inherit(struct store *s, const struct op_node_open *o, struct err *e)
{
	AUTO_QUERY segments = query_start(s->db, Q_SEGMENTS_INHERIT, e);
	AUTO_QUERY leader = query_start(s->db, Q_LEADER_VACATE, e);

	query_text(&segments, o->name);
	query_text(&segments, o->node);
	query_text(&leader, o->name);
	query_text(&leader, o->node);
	return query_finish(&segments) && query_finish(&leader);
}

static bool plain_query_run(struct store *s, int query, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query, e);

	return query_finish(&q);
}

static bool read_meta(struct store *s, const char *key, char **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_GET, e);

	query_text(&q, key);
	*ret = query_row(&q) ? query_get_copy(&q) : NULL;
	return !q.failed;
}

static bool put_meta(struct store *s, const char *key, const char *value, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_PUT, e);

	query_text(&q, key);
	query_text(&q, value);
	return query_finish(&q);
}

/* Leases in a SQLite file use the time since boot: those of an earlier boot are void. */
static bool void_leases(struct store *s, const struct op_node_open *o, struct err *e)
{
	AUTO_TEXT was = NULL;

	if (!o->boot || s->db->ops->reconnects)
		return true;
	if (!read_meta(s, "lease_boot", &was, e))
		return false;
	return text_equal(was, o->boot) || (plain_query_run(s, Q_LEASES_VOID, e) && plain_query_run(s, Q_LEADER_VOID, e) &&
						   put_meta(s, "lease_boot", o->boot, e));
}

static bool read_last_seen(struct store *s, usec_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LAST_SEEN, e);

	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

/*
 * Reads the active runs of earlier engines, separated by whether our spawner has their processes.
 */
static bool inherited_runs_read(struct store *s, const struct op_node_open *o, struct set *same, struct set *other,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_HELD, e);

	query_text(&q, o->name);
	query_text(&q, o->node);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		set_id(text_equal(query_get_text(&q), o->spawner) ? same : other, id);
	}
	return !q.failed;
}

static bool node_register(struct store *s, struct op *op, struct err *e)
{
	struct op_node_open *o = node_open_op(op);
	AUTO_SET same = {};
	AUTO_SET other = {};
	AUTO_TEXT host = NULL;

	if (!read_last_seen(s, &o->last_seen, e) || !void_leases(s, o, e) || !await_others(s, o->name, e) ||
	    !lives_elsewhere(s, o, &host, e) || !has_rival(s, o, &o->rival, e))
		return false;
	if (host)
		return op_refuse(op, ERR_CONFLICT, "a node '%s' is alive on another machine ('%s'); if it is not this one before a "
			"boot, give one of them another node-name", o->name, host);
	if (o->rival)
		return op_refuse(op, ERR_CONFLICT, "a daemon of node '%s' with another spawner uses this store and its lease runs; 'jobctl' "
			"reaches it where it was started; stop it first, or start this one with --instance NAME", o->name);
	if (!read_given_up(s, o, &o->given_up, e) || !insert_node(s, o, e) || !older_engines_close(s, o, e) || !segments_inherit(s, o, e) || !inherited_runs_read(s, o, &same, &other, e) ||
	    !claim_take_over(s, o->node, &same, &o->same_spawner, e) ||
	    !claim_take_over(s, o->node, &other, &o->other_spawner, e) || !output_relays_prune(s, e) ||
	    !nodes_others(s, o->node, &o->others, e))
		return false;
	free(s->node_name);
	s->node_name = xstrdup(o->name);
	event_add(s, &(struct event_new){.at = o->now, .what = EVENT_NODE_OPEN, .object = o->name, .node = o->node,
		.detail = o->host});
	return true;
}

bool node_open_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!node_register(s, ops[i], e))
			return false;
	return true;
}

static bool node_unregister(struct store *s, const struct op_node_close *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_CLOSE, e);
	AUTO_SET held = {};

	for (size_t i = 0; i < c->n_held; i++)
		set_id(&held, c->held[i]);
	query_text(&q, c->node);
	query_int(&q, c->now);
	set_bind(&q, &held);
	query_int(&q, c->guarded);
	query_int(&q, c->run_ttl);
	return query_finish(&q);
}

bool node_close_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_QUERY leader = query_start(s->db, Q_LEADER_DROP, e);

		query_text(&leader, node_close_op(ops[i])->node);
		if (!node_unregister(s, node_close_op(ops[i]), e) || !query_finish(&leader) || !output_relays_prune(s, e))
			return false;
		event_add(s, &(struct event_new){.at = node_close_op(ops[i])->now, .what = EVENT_NODE_CLOSE,
			.object = s->node_name, .node = node_close_op(ops[i])->node});
	}
	return true;
}

/* ---- polling ---- */

bool node_hold(struct store *s, const char *node, char **ret_spawner, bool *ret_draining, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_OPEN, e);

	query_text(&q, node);
	if (query_row(&q)) {
		*ret_spawner = query_get_copy(&q);
		*ret_draining = query_get_int(&q);
	}
	return !q.failed;
}

bool nodes_others(struct store *s, const char *node, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_OTHERS, e);

	query_text(&q, node);
	query_int(&q, clock_now(s->clock) - OLDER_AGE);
	if (query_row(&q)) {
		s->others = *ret = query_get_int(&q);
		s->older = query_get_int(&q) > 0;
		s->events_numbered = query_get_int(&q) > 0 && !s->db->no_xids;
	}
	return !q.failed;
}

static bool read_segments(struct store *s, const char *node, uint64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_SEGMENTS_OF, e);
	uint64_t mask = 0;

	query_text(&q, node);
	while (query_row(&q))
		mask |= UINT64_C(1) << (query_get_int(&q) & (SEGMENTS - 1));
	*ret = mask;
	return !q.failed;
}

static bool read_to_end(struct store *s, const char *node, struct run_changes *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_TO_END, e);

	query_text(&q, node);
	while (query_row(&q)) {
		struct run_change r = {};

		r.run = query_get_int(&q);
		r.job = query_get_int(&q);
		r.fence = query_get_int(&q);
		r.state = (enum run_state)query_get_int(&q);
		if ((ret->n & (ret->n - 1)) == 0)
			ret->v = xrealloc(ret->v, (ret->n ? ret->n * 2 : 1) * sizeof(*ret->v));
		ret->v[ret->n++] = r;
	}
	return !q.failed;
}

/* The batch reads the times of the next slot and the next run by itself. */
bool node_poll_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_node_poll *l = node_poll_op(ops[i]);

		if (!read_segments(s, l->node, &l->segments, e) || !nodes_others(s, l->node, &l->others, e) ||
		    !read_to_end(s, l->node, &l->to_end, e))
			return false;
		s->segments = (int64_t)l->segments;
	}
	return true;
}

void node_open_reset(struct op *op)
{
	struct op_node_open *o = node_open_op(op);

	claim_list_done(&o->same_spawner);
	claim_list_done(&o->other_spawner);
	o->last_seen = 0;
	o->others = 0;
}

void node_close_free(struct op *op)
{
	free(node_close_op(op)->held);
}

void node_poll_reset(struct op *op)
{
	run_changes_done(&node_poll_op(op)->to_end);
}
