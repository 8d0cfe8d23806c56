/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of runs, newest slot first: one index per filter, several states merged, a bounded number examined. */
#include "base/text.h"
#include "store/private.h"

#define EXAMINE_MAX 20000 /* lines looked at for one page; then it is given out short, with a cursor */
#define CHUNK 256

struct line {
	int64_t id, uid, job, state, kind;
	usec_t slot;
};

/* One walk down an index. */
struct source {
	int query;
	int64_t key;     /* job, uid or state */
	usec_t slot;     /* where the next chunk begins: below this slot ... */
	int64_t tie;     /* ... and id, or kind within a job */
	struct line lines[CHUNK];
	size_t n, at;
	bool end;
};

struct merge {
	const struct run_filter *f;
	struct source *sources; /* owned */
	size_t n;
	struct set ids;
	int64_t last, examined_id;
	size_t examined;
	bool more;
};

/* Every state but 'succeeded' has an index of its own. */
static size_t choose(const struct run_filter *f, struct source *sources)
{
	size_t n = 0;

	if (f->dead) {
		sources[0] = (struct source){.query = Q_RUN_PAGE_DEAD};
		return 1;
	}
	if (f->job) {
		sources[0] = (struct source){.query = Q_RUN_PAGE_JOB, .key = f->job};
		return 1;
	}
	if (f->states && !(f->states & 1u << RUN_SUCCEEDED)) {
		for (int state = 0; state < RUN_STATE_MAX; state++)
			if (f->states & 1u << state)
				sources[n++] = (struct source){.query = Q_RUN_PAGE_STATE, .key = state};
		return n;
	}
	sources[0] = (struct source){.query = f->uid >= 0 ? Q_RUN_PAGE_UID : Q_RUN_PAGE, .key = f->uid};
	return 1;
}

static bool find_place(struct store *s, struct merge *m, struct err *e)
{
	usec_t slot = m->f->slot_until ? m->f->slot_until : USEC_NEVER;
	int64_t id = -1, kind = -1;

	if (m->f->before) {
		AUTO_QUERY q = query_start(s->db, Q_RUN_PLACE, e);

		query_int(&q, m->f->before);
		if (query_row(&q)) {
			slot = query_get_int(&q);
			kind = query_get_int(&q);
			if (m->f->dead)
				slot = query_get_int(&q);
			id = m->f->before;
		} else if (q.failed) {
			return false;
		}
		if (id < 0 || (m->f->dead && slot == 0)) {
			return err_field(e, "cursor", "the run at the cursor is gone; begin with the first page");
		}
	}
	for (size_t i = 0; i < m->n; i++) {
		m->sources[i].slot = slot;
		m->sources[i].tie = m->sources[i].query == Q_RUN_PAGE_JOB ? kind : id;
	}
	return true;
}

static bool fill(struct store *s, const struct run_filter *f, struct source *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, c->query, e);
	size_t want = f->limit + 1 < CHUNK ? f->limit + 1 : CHUNK;

	if (c->query != Q_RUN_PAGE && c->query != Q_RUN_PAGE_DEAD)
		query_int(&q, c->key);
	query_int(&q, f->slot_since ? f->slot_since : INT64_MIN);
	query_int(&q, c->slot);
	query_int(&q, c->tie);
	query_int(&q, (int64_t)want);
	c->n = c->at = 0;
	while (c->n < want && query_row(&q)) {
		struct line *l = &c->lines[c->n++];

		l->id = query_get_int(&q);
		l->uid = query_get_int(&q);
		l->job = query_get_int(&q);
		l->state = query_get_int(&q);
		l->slot = query_get_int(&q);
		l->kind = query_get_int(&q);
		c->slot = l->slot;
		c->tie = c->query == Q_RUN_PAGE_JOB ? l->kind : l->id;
	}
	c->end = c->n < want;
	return !q.failed;
}

/* The source whose next line is the newest; NULL: all are at their end. */
static bool newest(struct store *s, struct merge *m, struct source **ret, struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; i < m->n; i++) {
		struct source *c = &m->sources[i];
		const struct line *l, *best;

		if (c->at == c->n && !c->end && !fill(s, m->f, c, e))
			return false;
		if (c->at == c->n)
			continue;
		l = &c->lines[c->at];
		best = *ret ? &(*ret)->lines[(*ret)->at] : NULL;
		if (!best || l->slot > best->slot || (l->slot == best->slot && l->id > best->id))
			*ret = c;
	}
	return true;
}

static bool fits(const struct run_filter *f, const struct line *l)
{
	return (f->uid < 0 || l->uid == f->uid) && (!f->job || l->job == f->job) &&
	       (!f->states || (l->state >= 0 && l->state < RUN_STATE_MAX && f->states & 1u << l->state));
}

static bool walk(struct store *s, struct merge *m, struct err *e)
{
	struct source *c = NULL;

	if (!find_place(s, m, e))
		return false;
	while (m->examined < EXAMINE_MAX) {
		const struct line *l;

		if (!newest(s, m, &c, e))
			return false;
		if (!c)
			return true;
		l = &c->lines[c->at++];
		if (fits(m->f, l)) {
			m->more = m->ids.n == m->f->limit;
			if (m->more)
				return true;
			set_id(&m->ids, m->last = l->id);
		}
		m->examined++;
		m->examined_id = l->id;
	}
	m->more = true;
	m->last = m->examined_id;
	return true;
}

bool store_run_list(struct store *s, const struct run_filter *f, struct run_list *ret, struct err *e)
{
	struct merge m = {.f = f, .sources = xcalloc(RUN_STATE_MAX, sizeof(*m.sources))};
	AUTO_DONE(run_list) found = {};
	AUTO_TX tx = {};
	bool ok;

	m.n = choose(f, m.sources);
	ok = tx_begin(&tx, s, false, e) && walk(s, &m, e) &&
	     (m.ids.n == 0 || runs_read(s, set_json(&m.ids), &found, e)) && tx_commit(&tx, e);
	set_done(&m.ids);
	free(m.sources);
	if (!ok)
		return false;
	found.next = m.more ? m.last : 0;
	*ret = found;
	found = (struct run_list){};
	return true;
}
