/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pages of runs by filter, newest slot first: merges index scans, examining a bounded number
 * of rows.
 */
#include "base/err.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/read/list/list_runs.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <assert.h>
#include <string.h>

#define EXAMINE_MAX 20000 /* rows read for one page; then the page is returned short, with a cursor */
#define CHUNK 256

struct line {
	int64_t id, uid, job, state, kind;
	usec_t slot;
	bool tagged;     /* its job has the tag of the filter */
	bool queued_there; /* in the queue of the filter */
};

/* A descending scan of one index. */
struct source {
	int query;
	int64_t key;     /* job, uid or state */
	usec_t slot;     /* the next chunk starts below this slot ... */
	int64_t tie;     /* ... and id, or kind within a job */
	struct line lines[CHUNK];
	size_t n, at;
	bool end;
};

#define SOURCES_MAX 32
static_assert(SOURCES_MAX >= RUN_STATE_MAX && SOURCES_MAX >= RUN_JOBS_MAX, "a source for each state or job");

struct merge {
	const struct run_filter *f;
	int64_t owners[SOURCES_MAX]; /* owner numbers of the owner name in the filter */
	size_t owners_n;
	int64_t jobs[SOURCES_MAX];   /* the runs must belong to one of these */
	size_t jobs_n;
	bool tags;              /* too many jobs have the tag for one scan per job: each row is checked instead */
	bool none;              /* no job or no owner matches */
	struct source *sources; /* owned */
	size_t n;
	struct set ids;
	int64_t last, examined_id;
	size_t examined;
	bool more;
};

static bool list_contains(const int64_t *v, size_t n, int64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == id)
			return true;
	return false;
}

/* Reads up to 'max' numbers into v; *ret_more: there are more. */
static bool read_ids(struct query *q, int64_t *v, size_t max, size_t *ret_n, bool *ret_more)
{
	size_t n = 0;

	*ret_more = false;
	while (query_row(q)) {
		*ret_more = n == max;
		if (*ret_more)
			break;
		v[n++] = query_get_int(q);
	}
	*ret_n = n;
	return !q->failed;
}

/* A daemon of a single user keeps no table of owners; the number is then taken from the jobs. */
static bool find_owners(struct store *s, struct merge *m, struct err *e)
{
	AUTO_QUERY named = query_start(s->db, Q_OWNERS_NAMED, e);
	AUTO_QUERY only = {};
	bool more;

	query_text(&named, m->f->owner);
	query_int(&named, SOURCES_MAX);
	if (!read_ids(&named, m->owners, SOURCES_MAX, &m->owners_n, &more))
		return false;
	if (m->owners_n > 0)
		return true;
	only = query_start(s->db, Q_OWNER_OF_JOBS, e);
	query_text(&only, m->f->owner);
	return read_ids(&only, m->owners, SOURCES_MAX, &m->owners_n, &more);
}

/* The jobs with the tag, if there are at most SOURCES_MAX. */
static bool find_tagged(struct store *s, struct merge *m, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TAG_JOBS, e);
	bool more;

	query_text(&q, m->f->tag_key);
	query_text(&q, m->f->tag_value);
	query_int(&q, SOURCES_MAX + 1);
	if (!read_ids(&q, m->jobs, SOURCES_MAX, &m->jobs_n, &more))
		return false;
	m->none = m->jobs_n == 0;
	m->tags = more;
	if (more)
		m->jobs_n = 0;
	return true;
}

/* Resolves names into the numbers that the indexes use. */
static bool resolve_names(struct store *s, struct merge *m, struct err *e)
{
	const struct run_filter *f = m->f;

	if (f->job)
		m->jobs[m->jobs_n++] = f->job;
	for (size_t i = 0; i < f->jobs_n && m->jobs_n < SOURCES_MAX; i++)
		if (!list_contains(m->jobs, m->jobs_n, f->jobs[i]))
			m->jobs[m->jobs_n++] = f->jobs[i];
	m->tags = f->tag_key && m->jobs_n > 0;
	if (f->tag_key && !m->tags && !find_tagged(s, m, e))
		return false;
	if (f->owner && !find_owners(s, m, e))
		return false;
	m->none |= f->owner && m->owners_n == 0;
	return true;
}

/* Every state but 'succeeded' has an index of its own. */
static size_t choose_run_sources(const struct merge *m, struct source *sources)
{
	const struct run_filter *f = m->f;
	size_t n = 0;

	if (m->none)
		return 0;
	if (f->result_key) {
		sources[0] = (struct source){.query = Q_RUN_PAGE_RESULT};
		return 1;
	}
	if (f->dead) {
		sources[0] = (struct source){.query = Q_RUN_PAGE_DEAD};
		return 1;
	}
	for (n = 0; n < m->jobs_n; n++)
		sources[n] = (struct source){.query = Q_RUN_PAGE_JOB, .key = m->jobs[n]};
	for (size_t i = 0; i < m->owners_n && m->jobs_n == 0; i++)
		sources[n++] = (struct source){.query = Q_RUN_PAGE_UID, .key = m->owners[i]};
	if (n > 0)
		return n;
	if (f->queue && strcmp(f->queue, "default") != 0) {
		sources[0] = (struct source){.query = Q_RUN_PAGE_QUEUE};
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

static bool seek_run_cursor(struct store *s, struct merge *m, struct err *e)
{
	usec_t slot = m->f->slot_until ? m->f->slot_until : USEC_NEVER;
	int64_t id = -1, kind = -1, job = 0;

	if (m->f->before) {
		AUTO_QUERY q = query_start(s->db, Q_RUN_PLACE, e);

		query_int(&q, m->f->before);
		if (query_row(&q)) {
			slot = query_get_int(&q);
			kind = query_get_int(&q);
			if (m->f->dead)
				slot = query_get_int(&q);
			else
				(void)query_get_int(&q);
			job = query_get_int(&q);
			id = m->f->before;
		} else if (q.failed) {
			return false;
		}
		if (id < 0 || (m->f->dead && slot == 0)) {
			return err_field(e, "cursor", "the run at the cursor is gone; begin with the first page");
		}
	}
	for (size_t i = 0; i < m->n; i++) {
		struct source *c = &m->sources[i];

		c->slot = slot;
		c->tie = id;
		/* In one slot, the job with the highest number comes first, see newer(). */
		if (c->query == Q_RUN_PAGE_JOB)
			c->tie = c->key == job || !job ? kind : c->key < job ? INT32_MAX : -1;
	}
	return true;
}

/* Marks the rows of a chunk whose job has the tag of the filter. */
static bool mark_tagged(struct store *s, const struct run_filter *f, struct source *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TAG_JOBS_OF, e);
	int64_t jobs[CHUNK];
	struct set set = {};
	size_t n = 0;
	bool more, ok;

	for (size_t i = 0; i < c->n; i++)
		if (!list_contains(jobs, n, c->lines[i].job))
			set_id(&set, jobs[n++] = c->lines[i].job);
	query_text(&q, f->tag_key);
	query_text(&q, f->tag_value);
	set_bind(&q, &set);
	ok = read_ids(&q, jobs, CHUNK, &n, &more);
	set_done(&set);
	for (size_t i = 0; i < c->n; i++)
		c->lines[i].tagged = list_contains(jobs, n, c->lines[i].job);
	return ok;
}

static void bind_source_key(struct query *q, const struct run_filter *f, const struct source *c)
{
	if (c->query == Q_RUN_PAGE_RESULT) {
		query_text(q, f->result_key);
		query_text(q, f->result_value);
	} else if (c->query == Q_RUN_PAGE_QUEUE) {
		query_text(q, f->queue);
	} else if (c->query != Q_RUN_PAGE && c->query != Q_RUN_PAGE_DEAD) {
		query_int(q, c->key);
	}
}

static bool read_chunk(struct store *s, const struct run_filter *f, struct source *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, c->query, e);
	size_t want = f->limit + 1 < CHUNK ? f->limit + 1 : CHUNK;

	bind_source_key(&q, f, c);
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
		l->queued_there = !f->queue || text_equal(query_get_text(&q), f->queue);
		c->slot = l->slot;
		c->tie = c->query == Q_RUN_PAGE_JOB ? l->kind : l->id;
	}
	c->end = c->n < want;
	return !q.failed;
}

static bool fill_run_source(struct store *s, const struct merge *m, struct source *c, struct err *e)
{
	return read_chunk(s, m->f, c, e) && (!m->tags || c->n == 0 || mark_tagged(s, m->f, c, e));
}

/*
 * The order of a page. Sources of single jobs use the index by job, slot and kind; all others the
 * index by slot and id.
 */
static bool newer(const struct source *c, const struct line *a, const struct line *b)
{
	if (a->slot != b->slot)
		return a->slot > b->slot;
	return c->query == Q_RUN_PAGE_JOB ? a->job > b->job : a->id > b->id;
}

/* The source with the newest next row; *ret NULL: all sources are at their end. */
static bool newest_source(struct store *s, struct merge *m, struct source **ret, struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; i < m->n; i++) {
		struct source *c = &m->sources[i];
		const struct line *l, *best;

		if (c->at == c->n && !c->end && !fill_run_source(s, m, c, e))
			return false;
		if (c->at == c->n)
			continue;
		l = &c->lines[c->at];
		best = *ret ? &(*ret)->lines[(*ret)->at] : NULL;
		if (!best || newer(c, l, best))
			*ret = c;
	}
	return true;
}

static bool run_row_matches(const struct merge *m, const struct line *l)
{
	const struct run_filter *f = m->f;

	return (f->uid < 0 || l->uid == f->uid) && (m->jobs_n == 0 || list_contains(m->jobs, m->jobs_n, l->job)) &&
	       (m->owners_n == 0 || list_contains(m->owners, m->owners_n, l->uid)) && (!m->tags || l->tagged) &&
	       l->queued_there &&
	       (!f->due_by || l->state != RUN_QUEUED || l->slot <= f->due_by) &&
	       (!f->states || (l->state >= 0 && l->state < RUN_STATE_MAX && f->states & 1u << l->state));
}

static bool collect_runs(struct store *s, struct merge *m, struct err *e)
{
	struct source *c = NULL;

	if (!resolve_names(s, m, e))
		return false;
	m->n = choose_run_sources(m, m->sources);
	if (!seek_run_cursor(s, m, e))
		return false;
	while (m->examined < EXAMINE_MAX) {
		const struct line *l;

		if (!newest_source(s, m, &c, e))
			return false;
		if (!c)
			return true;
		l = &c->lines[c->at++];
		if (run_row_matches(m, l)) {
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

bool list_runs_page(struct store *s, const struct run_filter *f, struct run_list *ret, struct err *e)
{
	struct merge m = {.f = f, .sources = xcalloc(SOURCES_MAX, sizeof(*m.sources))};
	AUTO_DONE(run_list) found = {};
	AUTO_TX tx = {};
	bool ok;

	ok = tx_begin(&tx, s, false, e) && collect_runs(s, &m, e) &&
	     (m.ids.n == 0 || row_runs_read(s, set_json(&m.ids), &found, e)) && tx_commit(&tx, e);
	set_done(&m.ids);
	free(m.sources);
	if (!ok)
		return false;
	found.next = m.more ? m.last : 0;
	*ret = found;
	found = (struct run_list){};
	return true;
}
