/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of jobs by filter, in the order of numbers: scans one index, or one per state, examining a bounded number of rows. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/lists.h"
#include "store/read/list/list_jobs_private.h"
#include "store/read/list/page.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_MAX 1000    /* so many names with the prefix of a pattern are sorted in memory */
#define COLLECT_CHUNK 1000 /* rows read at a time for a search */
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Supports '*' and '?'. The time is at most the product of the two lengths. */
bool list_jobs_glob(const char *glob, const char *name)
{
	const char *star = NULL, *mark = NULL;

	while (*name) {
		if (*glob == '*') {
			star = glob++;
			mark = name;
		} else if (*glob == '?' || *glob == *name) {
			glob++;
			name++;
		} else if (star) {
			glob = star + 1;
			name = ++mark;
		} else {
			return false;
		}
	}
	return glob[strspn(glob, "*")] == '\0';
}

static_assert(Q_JOB_PAGE_DOWN == Q_JOB_PAGE + 1 && Q_JOB_PAGE_UID_DOWN == Q_JOB_PAGE_UID + 1 &&
	Q_JOB_PAGE_OWNER_DOWN == Q_JOB_PAGE_OWNER + 1 && Q_JOB_PAGE_STATE_DOWN == Q_JOB_PAGE_STATE + 1 &&
	Q_JOB_PAGE_QUEUE_DOWN == Q_JOB_PAGE_QUEUE + 1 && Q_JOB_PAGE_CREATED_DOWN == Q_JOB_PAGE_CREATED + 1 &&
	Q_JOB_PAGE_TAG_DOWN == Q_JOB_PAGE_TAG + 1 && Q_JOB_PAGE_TAG_KEY_DOWN == Q_JOB_PAGE_TAG_KEY + 1,
	"the descending query follows the ascending one");

struct page {
	const struct job_filter *f;
	int query;            /* selects the index; the query after it has the other direction */
	unsigned sources;     /* states, for an index that begins with the state; else 0 */
	usec_t at;            /* position of the scan: creation time ... */
	int64_t after;        /* ... and id */
	size_t examined;
	int64_t *ids;         /* owned: of the page */
	size_t n_ids;
	int64_t last;         /* the last of them */
	bool more;            /* at least one more row matches */
};

static void page_add(struct page *p, int64_t id)
{
	p->ids = xgrow(p->ids, p->n_ids, sizeof(*p->ids));
	p->ids[p->n_ids++] = id;
	p->last = id;
}

static unsigned states_wanted(const struct job_filter *f)
{
	return f->states ? f->states & ((1u << JOB_STATE_MAX) - 1) : ((1u << JOB_STATE_MAX) - 1) & ~(1u << JOB_REMOVED);
}

static int choose_job_index(const struct job_filter *f)
{
	if (f->tag_key)
		return f->tag_value ? Q_JOB_PAGE_TAG : Q_JOB_PAGE_TAG_KEY;
	if (f->created_since || f->created_until)
		return Q_JOB_PAGE_CREATED;
	if (f->queue && strcmp(f->queue, "default") != 0)
		return Q_JOB_PAGE_QUEUE;
	if (f->uid >= 0)
		return Q_JOB_PAGE_UID;
	if (f->owner)
		return Q_JOB_PAGE_OWNER;
	return f->states ? Q_JOB_PAGE_STATE : Q_JOB_PAGE;
}

static struct page page_begin(const struct job_filter *f)
{
	struct page p = {.f = f, .query = choose_job_index(f), .after = f->after};

	if (p.query == Q_JOB_PAGE_UID || p.query == Q_JOB_PAGE_STATE)
		p.sources = states_wanted(f);
	if (f->down && !f->after)
		p.after = INT64_MAX;
	return p;
}

static void bind_job_filter(struct query *q, const struct page *p, int state, size_t n)
{
	const struct job_filter *f = p->f;

	switch (p->query) {
	case Q_JOB_PAGE_TAG:
		query_text(q, f->tag_key);
		query_text(q, f->tag_value);
		break;
	case Q_JOB_PAGE_TAG_KEY:
		query_text(q, f->tag_key);
		break;
	case Q_JOB_PAGE_CREATED:
		query_int(q, f->created_since);
		query_int(q, f->created_until ? f->created_until : USEC_NEVER);
		query_int(q, p->at);
		break;
	case Q_JOB_PAGE_QUEUE:
		query_text(q, f->queue);
		break;
	case Q_JOB_PAGE_UID:
		query_int(q, f->uid);
		query_int(q, state);
		break;
	case Q_JOB_PAGE_OWNER:
		query_text(q, f->owner);
		break;
	case Q_JOB_PAGE_STATE:
		query_int(q, state);
		break;
	default:
		break;
	}
	query_int(q, p->after);
	query_int(q, (int64_t)n);
}

/* Whether a row matches the whole filter, except the tag. */
static bool job_row_matches(struct query *q, const struct job_filter *f, struct job_line *l)
{
	int64_t uid, state;
	const char *owner, *name, *queue;

	l->id = query_get_int(q);
	uid = query_get_int(q);
	state = query_get_int(q);
	l->created_at = query_get_int(q);
	owner = query_get_text(q);
	name = query_get_text(q);
	queue = query_get_text(q);
	snprintf(l->name, sizeof(l->name), "%s", name ? name : "");
	return l->id > 0 && state >= 0 && state < JOB_STATE_MAX && states_wanted(f) & 1u << state &&
	       (f->uid < 0 || uid == f->uid) && (!f->owner || text_equal(owner, f->owner)) &&
	       (!f->queue || text_equal(queue, f->queue)) &&
	       (!f->name_glob || (name && list_jobs_glob(f->name_glob, name))) &&
	       l->created_at >= f->created_since && (!f->created_until || l->created_at < f->created_until);
}

void list_jobs_line_read(struct query *q, const struct job_filter *f, struct job_line *ret)
{
	ret->shown = job_row_matches(q, f, ret);
	ret->key = query_get_int(q);
	ret->tie = query_get_int(q);
	ret->segment = query_get_int(q);
	ret->shown &= query_get_int(q) != 0;
}

struct chunk {
	struct chunk_row {
		int64_t id;
		usec_t at;
		bool fits;
	} *v; /* owned */
	size_t n;
};

static void chunk_done(struct chunk *c)
{
	free(c->v);
}

/* Reads up to n rows of one index. */
static bool chunk_read(struct store *s, const struct page *p, int state, size_t n, struct chunk *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, p->query + p->f->down, e);

	bind_job_filter(&q, p, state, n);
	for (size_t i = 0; i < n && query_row(&q); i++) {
		struct job_line l;

		list_jobs_line_read(&q, p->f, &l);
		c->v = xgrow(c->v, c->n, sizeof(*c->v));
		c->v[c->n++] = (struct chunk_row){.id = l.id, .at = l.created_at, .fits = l.shown};
	}
	return !q.failed;
}

static int row_up(const void *a, const void *b)
{
	int64_t x = ((const struct chunk_row *)a)->id, y = ((const struct chunk_row *)b)->id;

	return (x > y) - (x < y);
}

static int row_down(const void *a, const void *b)
{
	return row_up(b, a);
}

/* Reads the next n rows of all sources. */
static bool chunk_merge(struct store *s, const struct page *p, size_t n, struct chunk *c, struct err *e)
{
	if (!p->sources)
		return chunk_read(s, p, 0, n, c, e);
	for (int state = 0; state < JOB_STATE_MAX; state++)
		if (p->sources & 1u << state && !chunk_read(s, p, state, n, c, e))
			return false;
	if (c->n > 0)
		qsort(c->v, c->n, sizeof(*c->v), p->f->down ? row_down : row_up);
	if (c->n > n)
		c->n = n;
	return true;
}

/* Examines the next rows; *ret_end: there are no more. */
static bool scan_job_rows(struct store *s, struct page *p, bool *ret_end, struct err *e)
{
	size_t n = p->examined == 0 || p->f->limit >= 256 ? p->f->limit + 1 : 256;
	AUTO_DONE(chunk) c = {};

	if (!chunk_merge(s, p, n, &c, e))
		return false;
	for (size_t i = 0; i < c.n; i++) {
		if (c.v[i].fits && p->n_ids == p->f->limit) {
			p->more = true;
			break;
		}
		p->examined++;
		p->after = c.v[i].id;
		p->at = c.v[i].at;
		if (c.v[i].fits)
			page_add(p, c.v[i].id);
	}
	*ret_end = p->more || c.n < n;
	return true;
}

static bool seek_job_cursor(struct store *s, struct page *p, struct err *e)
{
	AUTO_QUERY q = {};

	p->at = p->f->down ? USEC_NEVER : -1;
	if (p->query != Q_JOB_PAGE_CREATED || !p->f->after)
		return true;
	q = query_start(s->db, Q_JOB_CREATED_AT, e);
	query_int(&q, p->after);
	if (query_row(&q))
		p->at = query_get_int(&q);
	else if (!q.failed)
		return err_field(e, "cursor", "the job at the cursor is gone; begin with the first page");
	return !q.failed;
}

static bool scan_job_index(struct store *s, struct page *p, int64_t *ret_next, struct err *e)
{
	bool end = false;

	if (!seek_job_cursor(s, p, e))
		return false;
	while (!end && p->examined < JOB_EXAMINE_MAX)
		if (!scan_job_rows(s, p, &end, e))
			return false;
	*ret_next = p->more ? p->last : end ? 0 : p->after;
	return true;
}

/* ---- by name prefix ---- */

static int id_up(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int id_down(const void *a, const void *b)
{
	return id_up(b, a);
}

/*
 * Reads and sorts all names with the prefix of the pattern. *ret_many: there are too many, scan an
 * index instead.
 */
static bool list_by_prefix(struct store *s, struct page *p, int64_t *ret_next, bool *ret_many, struct err *e)
{
	AUTO_TEXT low = xstrndup(p->f->name_glob, list_jobs_prefix(p->f));
	AUTO_TEXT high = xstrdup(low);
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAGE_PREFIX, e);
	int64_t ids[PREFIX_MAX];
	size_t n = 0, seen = 0;

	high[strlen(high) - 1]++; /* names are ASCII, so there is a next character */
	query_text(&q, low);
	query_text(&q, high);
	query_int(&q, PREFIX_MAX + 1);
	while (seen <= PREFIX_MAX && query_row(&q)) {
		struct job_line l;

		list_jobs_line_read(&q, p->f, &l);
		if (l.shown && (p->f->down ? l.id < p->after : l.id > p->after) && n < PREFIX_MAX)
			ids[n++] = l.id;
		seen++;
	}
	if (q.failed)
		return false;
	*ret_many = seen > PREFIX_MAX;
	if (*ret_many)
		return true;
	qsort(ids, n, sizeof(*ids), p->f->down ? id_down : id_up);
	for (size_t i = 0; i < n && i < p->f->limit; i++)
		page_add(p, ids[i]);
	*ret_next = n > p->f->limit ? p->last : 0;
	return true;
}

size_t list_jobs_prefix(const struct job_filter *f)
{
	return f->name_glob ? strcspn(f->name_glob, "*?") : 0;
}

bool list_jobs_possible(const struct job_filter *f)
{
	return !f->name_glob || strspn(f->name_glob, NAME_CHARS "*?") == strlen(f->name_glob);
}

/*
 * Reads the jobs of the page in growing chunks, because the size of a definition is known only
 * after reading it.
 */
bool list_jobs_read(struct store *s, const struct job_filter *f, const int64_t *ids, size_t n_ids,
	struct job_list *ret, size_t *ret_n, struct err *e)
{
	size_t at = 0, bytes = 0, n;

	while (at < n_ids && (n = page_chunk(at, bytes, n_ids, f->bytes)) > 0) {
		size_t from = ret->n;
		AUTO_SET set = {};

		for (size_t i = 0; i < n; i++)
			set_id(&set, ids[at++]);
		if (!jobs_read(s, -1, set_json(&set), ret, e))
			return false;
		for (size_t i = from; i < ret->n; i++)
			bytes += strlen(ret->v[i]->spec);
	}
	*ret_n = at;
	return true;
}

/* Finds the ids of the page. */
static bool find_job_page(struct store *s, struct page *p, int64_t *ret_next, struct err *e)
{
	const struct job_filter *f = p->f;
	bool many = true;

	if (!list_jobs_possible(f))
		return true;
	if (list_jobs_prefix(f) && !f->tag_key && p->query != Q_JOB_PAGE_CREATED && !list_by_prefix(s, p, ret_next, &many, e))
		return false;
	return !many || scan_job_index(s, p, ret_next, e);
}

/* Examines the next rows of the index that the filter selects and adds those that match. */
static bool collect_chunk(struct store *s, const struct job_filter *f, struct job_search *search, size_t *examined,
	bool *ret_end, struct err *e)
{
	struct page p = page_begin(f);
	bool ok;

	if (search->by_state) {
		p.query = Q_JOB_PAGE_STATE;
		p.sources = states_wanted(f);
	}
	p.after = search->after;
	p.at = search->after ? search->at : -1;
	ok = scan_job_rows(s, &p, ret_end, e);
	for (size_t i = 0; ok && i < p.n_ids; i++)
		list_jobs_search_add(search, p.ids[i]);
	free(p.ids);
	search->at = p.at;
	search->after = p.after;
	*examined += p.examined;
	*ret_end &= !p.more;
	return ok;
}

bool list_jobs_collect(struct store *s, const struct job_filter *f, struct job_search *search, size_t rows,
	bool *ret_end, struct err *e)
{
	struct job_filter all = *f;
	size_t examined = 0;

	all.limit = COLLECT_CHUNK;
	all.after = 0;
	all.down = false;
	do {
		if (!collect_chunk(s, &all, search, &examined, ret_end, e))
			return false;
	} while (!*ret_end && examined < rows && search->n <= search->most);
	return true;
}

static bool build_job_page(struct store *s, struct page *p, struct job_list *ret, struct err *e)
{
	size_t used = 0;

	if (!find_job_page(s, p, &ret->next, e) || !list_jobs_read(s, p->f, p->ids, p->n_ids, ret, &used, e))
		return false;
	if (used < p->n_ids)
		ret->next = p->ids[used - 1];
	return true;
}

bool list_jobs_page(struct store *s, const struct job_filter *f, struct job_list *ret, struct err *e)
{
	struct page p = page_begin(f);
	AUTO_DONE(job_list) found = {};
	AUTO_TX tx = {};
	bool ok;

	ok = tx_begin(&tx, s, false, e) && build_job_page(s, &p, &found, e) && tx_commit(&tx, e);
	free(p.ids);
	if (!ok)
		return false;
	*ret = found;
	found = (struct job_list){};
	return true;
}

bool list_jobs_ids(struct store *s, const struct job_filter *f, int64_t **ret, size_t *ret_n, int64_t *ret_next,
	struct err *e)
{
	struct page p = page_begin(f);
	AUTO_TX tx = {};

	*ret_next = 0;
	if (!tx_begin(&tx, s, false, e) || !find_job_page(s, &p, ret_next, e) || !tx_commit(&tx, e)) {
		free(p.ids);
		return false;
	}
	*ret = p.ids;
	*ret_n = p.n_ids;
	return true;
}
