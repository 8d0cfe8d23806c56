/* SPDX-License-Identifier: Apache-2.0 */
/* Queues the runs of jobs that run after other jobs. */
#include "store/ops/run/chains.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/chain.h"
#include "store/ops/run/runs.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

struct child {
	const struct chain_end *end;
	struct run_new run;
	char *queue, *spec; /* owned */
	struct chain_start start;
	bool all;           /* its other links must hold, too */
	bool due;
};
struct children {
	struct child *v;
	size_t n;
};

static void children_done(struct children *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].queue);
		free(c->v[i].spec);
		free(c->v[i].start.params);
	}
	free(c->v);
}

static bool link_holds(const char *text, enum run_state state, int64_t exit_code)
{
	struct chain_link l;

	return text && chain_link_parse(text, &l, NULL) && chain_link_holds(&l, state, exit_code);
}

/* The rows of the children are locked from here on. */
static bool children_read(struct store *s, const struct chain_end *v, size_t n, usec_t now, struct children *ret, struct err *e)
{
	AUTO_DONE(map) by_run = {};
	AUTO_SET set = {};
	AUTO_QUERY q = query_start(s->db, Q_CHAIN_CHILDREN, e);

	for (size_t i = 0; i < n; i++) {
		map_put(&by_run, v[i].run, (void *)&v[i]);
		set_item(&set);
		set_int(&set, "run", v[i].run);
		set_int(&set, "job", v[i].job);
	}
	set_bind(&q, &set);
	while (query_row(&q)) {
		struct child c = {.end = map_get(&by_run, query_get_int(&q))};

		c.run = (struct run_new){.kind = RUN_KIND_CHAIN, .state = RUN_QUEUED, .now = now};
		c.run.job = query_get_int(&q);
		c.run.uid = query_get_int(&q);
		c.run.revision = query_get_int(&q);
		c.run.priority = query_get_int(&q);
		c.queue = query_get_copy(&q);
		c.spec = query_get_copy(&q);
		c.all = query_get_int(&q) == CHAIN_ALL_OF;
		c.due = c.end && link_holds(query_get_text(&q), c.end->state, c.end->exit_code);
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = c;
	}
	return !q.failed;
}

/*
 * Whether every link of the child is satisfied by a run of its parent with this slot. The row of
 * the child is locked, so of two parents that end at the same time the second sees the first.
 */
static bool links_hold(struct store *s, int64_t child, usec_t slot, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_CHAIN_PARENTS, e);
	AUTO_TEXT link = NULL;
	bool held = true;

	*ret = true;
	query_int(&q, child);
	query_int(&q, slot);
	while (query_row(&q)) { /* ordered by link; a parent can have several runs of the slot */
		const char *text = query_get_text(&q);
		enum run_state state;

		if (!text_equal(link, text)) {
			*ret &= held;
			held = false;
			free(link);
			link = xstrdup(text);
		}
		state = (enum run_state)query_get_int(&q);
		held |= link_holds(link, state, query_get_int(&q));
	}
	*ret &= held;
	return !q.failed;
}

static bool child_decide(struct store *s, struct child *c, usec_t now, struct err *e)
{
	if (!c->due)
		return true;
	if (c->all && !links_hold(s, c->run.job, c->end->slot, &c->due, e))
		return false;
	c->start.due_at = now;
	if (c->due && c->end->op->chain)
		c->due = c->end->op->chain(c->end->op, c->spec, now, &c->start);
	c->run.queue = c->queue;
	c->run.slot = c->end->slot;
	c->run.due_at = c->start.due_at;
	c->run.policy = c->start.policy;
	c->run.params = c->start.params;
	return true;
}

bool chains_fire(struct store *s, const struct chain_end *v, size_t n, usec_t now, struct err *e)
{
	AUTO_DONE(children) all = {};
	AUTO_SET runs = {};
	size_t due = 0;
	int64_t *ids;
	bool ok;

	if (n == 0 || !children_read(s, v, n, now, &all, e))
		return n == 0;
	for (size_t i = 0; i < all.n; i++) {
		if (!child_decide(s, &all.v[i], now, e))
			return false;
		due += all.v[i].due;
	}
	ids = xcalloc(due + 1, sizeof(*ids));
	ok = row_ids_take(s, Q_RUN_IDS, due, ids, e);
	for (size_t i = 0; ok && i < all.n; i++)
		if (all.v[i].due) {
			all.v[i].run.id = ids[--due];
			runs_describe(&runs, &all.v[i].run);
		}
	free(ids);
	return ok && runs_insert(s, &runs, NULL, e);
}
