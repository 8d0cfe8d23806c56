/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pages of jobs in the order of a sort key. If the filter matches few jobs, their keys are
 * read and sorted. Otherwise the indexes of the key are scanned one after the other.
 */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/lists.h"
#include "store/read/list/list_jobs_private.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define CHUNK 256
#define NAMES_CHUNK 2048 /* names read at a time for a pattern ... */
#define NAMES_COST 10    /* ... of which so many cost as much as a row */

static_assert(Q_JOB_SORT_NAME_DOWN == Q_JOB_SORT_NAME + 1 && Q_JOB_SORT_QUEUED_DOWN == Q_JOB_SORT_QUEUED + 1 &&
	Q_JOB_SORT_NAMES_DOWN == Q_JOB_SORT_NAMES + 1 && Q_JOB_SORT_DUE_DOWN == Q_JOB_SORT_DUE + 1 && Q_JOB_SORT_LAST_DOWN == Q_JOB_SORT_LAST + 1,
	"the descending query follows the ascending one");

/* The values of job_place.phase: one per index. */
enum phase { PHASE_START, PHASE_NAMED, PHASE_QUEUED, PHASE_DUE, PHASE_RAN, PHASE_WITHOUT, PHASE_END };

/* The indexes of each order, ascending. Jobs without a key come last in both directions. */
static const enum phase orders[JOB_SORT_MAX][4] = {
	[JOB_SORT_NAME] = {PHASE_NAMED, PHASE_WITHOUT},
	[JOB_SORT_NEXT] = {PHASE_QUEUED, PHASE_DUE, PHASE_WITHOUT},
	[JOB_SORT_LAST] = {PHASE_RAN, PHASE_WITHOUT},
};

static enum phase phase_at(const struct job_filter *f, int n)
{
	static const enum phase next_down[] = {PHASE_DUE, PHASE_QUEUED, PHASE_WITHOUT, PHASE_END};
	enum phase p = f->sort == JOB_SORT_NEXT && f->down ? next_down[n] : orders[f->sort][n];

	return p == PHASE_START ? PHASE_END : p;
}

static int rank_of(const struct job_filter *f, enum phase p)
{
	int n = 0;

	while (phase_at(f, n) != p && phase_at(f, n) != PHASE_END)
		n++;
	return n;
}

bool list_jobs_place_check(const struct job_filter *f, const struct job_place *place)
{
	return place->phase > PHASE_START && place->phase < PHASE_END &&
	       phase_at(f, rank_of(f, (enum phase)place->phase)) != PHASE_END;
}

/* The place before the first row of an index. */
static struct job_place phase_start(const struct job_filter *f, enum phase p)
{
	struct job_place at = {.phase = p};
	size_t prefix = list_jobs_prefix(f);

	if (p == PHASE_NAMED && prefix > 0 && prefix < sizeof(at.name)) {
		memcpy(at.name, f->name_glob, prefix);
		if (f->down)
			at.name[prefix - 1]++; /* names are ASCII, so there is a next character */
	} else if (p == PHASE_NAMED && f->down) {
		at.name[0] = '\x7f';
	}
	if (p != PHASE_WITHOUT && p != PHASE_NAMED)
		at.key = f->down ? USEC_NEVER : INT64_MIN;
	return at;
}

static int query_of(const struct job_filter *f, enum phase p)
{
	static const int without[JOB_SORT_MAX] = {
		[JOB_SORT_NAME] = Q_JOB_SORT_UNNAMED,
		[JOB_SORT_NEXT] = Q_JOB_SORT_WITHOUT_NEXT,
		[JOB_SORT_LAST] = Q_JOB_SORT_WITHOUT_LAST,
	};
	static const int by_phase[] = {
		[PHASE_NAMED] = Q_JOB_SORT_NAME,
		[PHASE_QUEUED] = Q_JOB_SORT_QUEUED,
		[PHASE_DUE] = Q_JOB_SORT_DUE,
		[PHASE_RAN] = Q_JOB_SORT_LAST,
	};

	return p == PHASE_WITHOUT ? without[f->sort] : by_phase[p] + f->down;
}

/* ---- the page ---- */

struct sorted {
	const struct job_filter *f;
	struct job_place *place;   /* of the last row examined */
	int64_t *ids;              /* owned: of the page */
	struct job_place *places;  /* owned: of these */
	size_t n, examined;
	bool more;
};

static void sorted_done(struct sorted *p)
{
	free(p->ids);
	free(p->places);
}

static void sorted_add(struct sorted *p, int64_t id, const struct job_place *at)
{
	p->ids = xgrow(p->ids, p->n, sizeof(*p->ids));
	p->places = xgrow(p->places, p->n, sizeof(*p->places));
	p->ids[p->n] = id;
	p->places[p->n++] = *at;
}

/* ---- few jobs ---- */

struct keyed {
	int64_t id;
	int rank;
	struct job_place at;
};

static int compare_int(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_up(const struct job_place *a, const struct job_place *b)
{
	int c = strcmp(a->name, b->name);

	c = c ? c : compare_int(a->key, b->key);
	c = c ? c : compare_int(a->segment, b->segment);
	return c ? c : compare_int(a->tie, b->tie);
}

static int keyed_up(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	return x->rank != y->rank ? compare_int(x->rank, y->rank) : compare_up(&x->at, &y->at);
}

static int keyed_down(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->rank != y->rank)
		return compare_int(x->rank, y->rank);
	return x->at.phase == PHASE_WITHOUT ? compare_up(&x->at, &y->at) : compare_up(&y->at, &x->at);
}

static struct keyed keyed_read(struct query *q, const struct job_filter *f)
{
	struct keyed k = {.id = query_get_int(q)};
	const char *name = query_get_text(q);
	int64_t due = query_get_int(q), segment = query_get_int(q), queued_slot = query_get_int(q);
	int64_t queued = query_get_int(q), last_slot = query_get_int(q), last = query_get_int(q);

	k.at = (struct job_place){.phase = PHASE_WITHOUT, .tie = k.id};
	if (f->sort == JOB_SORT_NAME && name) {
		k.at.phase = PHASE_NAMED;
		snprintf(k.at.name, sizeof(k.at.name), "%s", name);
	} else if (f->sort == JOB_SORT_NEXT && queued) {
		k.at = (struct job_place){.phase = PHASE_QUEUED, .key = queued_slot, .tie = queued};
	} else if (f->sort == JOB_SORT_NEXT && due && due < USEC_NEVER) {
		k.at = (struct job_place){.phase = PHASE_DUE, .key = due, .segment = segment, .tie = k.id};
	} else if (f->sort == JOB_SORT_LAST && last) {
		k.at = (struct job_place){.phase = PHASE_RAN, .key = last_slot, .tie = last};
	}
	k.rank = rank_of(f, (enum phase)k.at.phase);
	return k;
}

static bool read_keys(struct store *s, const struct job_filter *f, const int64_t *ids, size_t n,
	struct keyed *ret, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_SORT_KEYS, e);
	AUTO_SET set = {};

	for (size_t i = 0; i < n; i++)
		set_id(&set, ids[i]);
	set_bind(&q, &set);
	for (*ret_n = 0; *ret_n < n && query_row(&q); (*ret_n)++)
		ret[*ret_n] = keyed_read(&q, f);
	return !q.failed;
}

/* Adds the jobs after the place to the page. */
static void page_few(struct sorted *p, const struct keyed *v, size_t n)
{
	int (*compare)(const void *, const void *) = p->f->down ? keyed_down : keyed_up;
	struct keyed from = {.at = *p->place};

	from.rank = p->place->phase == PHASE_START ? -1 : rank_of(p->f, (enum phase)p->place->phase);
	for (size_t i = 0; i < n; i++) {
		if (compare(&v[i], &from) <= 0)
			continue;
		p->more = p->n == p->f->limit;
		if (p->more)
			return;
		sorted_add(p, v[i].id, &v[i].at);
	}
}

/* Sorts the jobs of the search in memory, for the first page. */
static bool list_few(struct store *s, struct sorted *p, struct job_search *search, struct err *e)
{
	if (search->n > 0 && !search->sorted) {
		struct keyed *v = xcalloc(search->n, sizeof(*v));

		if (!read_keys(s, p->f, search->ids, search->n, v, &search->sorted_n, e)) {
			free(v);
			return false;
		}
		qsort(v, search->sorted_n, sizeof(*v), p->f->down ? keyed_down : keyed_up);
		search->sorted = v;
	}
	page_few(p, search->sorted, search->sorted_n);
	return true;
}

/* ---- many jobs ---- */

static void bind_place(struct query *q, const struct job_place *at, size_t n)
{
	if (at->phase == PHASE_NAMED)
		query_text(q, at->name);
	else if (at->phase != PHASE_WITHOUT)
		query_int(q, at->key);
	if (at->phase == PHASE_DUE)
		query_int(q, at->segment);
	query_int(q, at->tie);
	query_int(q, (int64_t)n);
}

/* Keeps the rows whose job has the tag of the filter. */
static bool check_tags(struct store *s, const struct job_filter *f, struct job_line *v, size_t n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, f->tag_value ? Q_TAG_JOBS_OF : Q_TAG_KEY_JOBS_OF, e);
	AUTO_SET set = {};
	int64_t tagged[CHUNK];
	size_t tagged_n = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].shown)
			set_id(&set, v[i].id);
	query_text(&q, f->tag_key);
	if (f->tag_value)
		query_text(&q, f->tag_value);
	set_bind(&q, &set);
	while (tagged_n < CHUNK && query_row(&q))
		tagged[tagged_n++] = query_get_int(&q);
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t k = 0; k < tagged_n && !found; k++)
			found = tagged[k] == v[i].id;
		v[i].shown &= found;
	}
	return !q.failed;
}

/* The rows of the jobs in 'v' that are shown so far; those that do not match the filter are not. */
static bool read_shown(struct store *s, const struct job_filter *f, struct job_line *v, size_t n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_LINES, e);
	AUTO_SET set = {};
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].shown)
			set_id(&set, v[i].id);
	if (set.n == 0)
		return true;
	set_bind(&q, &set);
	while (query_row(&q)) {
		struct job_line l;

		list_jobs_line_read(&q, f, &l);
		for (; at < n && v[at].id != l.id; at++)
			v[at].shown = false;
		if (at < n)
			v[at++].shown = l.shown;
	}
	for (; at < n; at++)
		v[at].shown = false;
	return !q.failed;
}

/* check_tags() takes CHUNK rows at a time. */
static bool check_shown_tags(struct store *s, const struct job_filter *f, struct job_line *v, size_t n, struct err *e)
{
	for (size_t at = 0; f->tag_key && at < n; at += CHUNK)
		if (!check_tags(s, f, v + at, n - at < CHUNK ? n - at : CHUNK, e))
			return false;
	return true;
}

bool list_jobs_check_lines(struct store *s, const struct job_filter *f, struct job_line *v, size_t n, struct err *e)
{
	return read_shown(s, f, v, n, e) && check_shown_tags(s, f, v, n, e);
}

/* Reads names from their index alone, and the rows of those that match the pattern. */
static bool read_names(struct store *s, const struct sorted *p, struct job_line *v, size_t want,
	size_t *ret_n, struct err *e)
{
	size_t n = 0;

	{
		AUTO_QUERY q = query_start(s->db, Q_JOB_SORT_NAMES + p->f->down, e);

		bind_place(&q, p->place, want);
		for (; n < want && query_row(&q); n++) {
			const char *name;

			v[n].id = v[n].tie = query_get_int(&q);
			name = query_get_text(&q);
			snprintf(v[n].name, sizeof(v[n].name), "%s", name ? name : "");
			v[n].shown = list_jobs_glob(p->f->name_glob, v[n].name);
		}
		if (q.failed)
			return false;
	}
	*ret_n = n;
	return list_jobs_check_lines(s, p->f, v, n, e);
}

static bool reads_names(const struct sorted *p)
{
	return p->place->phase == PHASE_NAMED && p->f->name_glob;
}

static bool read_lines(struct store *s, const struct sorted *p, struct job_line *v, size_t want,
	size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query_of(p->f, (enum phase)p->place->phase), e);
	size_t n = 0;

	bind_place(&q, p->place, want);
	while (n < want && query_row(&q))
		list_jobs_line_read(&q, p->f, &v[n++]);
	*ret_n = n;
	return !q.failed && (!p->f->tag_key || n == 0 || check_tags(s, p->f, v, n, e));
}

/*
 * All later names are outside the prefix of the pattern, or all later rows of 'due' wait for
 * something that is not a slot.
 */
static bool is_past_end(const struct job_filter *f, const struct job_place *at)
{
	size_t prefix = list_jobs_prefix(f);

	if (at->phase == PHASE_DUE && at->key >= USEC_NEVER)
		return true;
	return at->phase == PHASE_NAMED && prefix > 0 && strncmp(at->name, f->name_glob, prefix) != 0;
}

/* Examines the next rows of the index at the place; *ret_end: there are no more. */
static bool scan_lines(struct store *s, struct sorted *p, bool *ret_end, struct err *e)
{
	bool names = reads_names(p);
	size_t want = names ? NAMES_CHUNK : p->examined == 0 && p->f->limit + 1 < CHUNK ? p->f->limit + 1 : CHUNK, n = 0;
	struct job_line *v = xcalloc(want, sizeof(*v));
	enum phase phase = (enum phase)p->place->phase;
	bool ok = names ? read_names(s, p, v, want, &n, e) : read_lines(s, p, v, want, &n, e);

	*ret_end = ok && n < want;
	for (size_t i = 0; ok && i < n && !p->more; i++) {
		struct job_place at = {.phase = phase, .key = v[i].key, .segment = v[i].segment, .tie = v[i].tie};

		if (phase == PHASE_NAMED)
			memcpy(at.name, v[i].name, sizeof(at.name));
		if (is_past_end(p->f, &at)) {
			*ret_end = true;
			break;
		}
		p->more = v[i].shown && p->n == p->f->limit;
		if (p->more)
			break;
		p->examined += !names || i % NAMES_COST == 0;
		*p->place = at;
		if (v[i].shown)
			sorted_add(p, v[i].id, &at);
	}
	free(v);
	return ok;
}

static bool list_many(struct store *s, struct sorted *p, struct err *e)
{
	int n = p->place->phase == PHASE_START ? 0 : rank_of(p->f, (enum phase)p->place->phase);
	bool end = false;

	if (p->place->phase == PHASE_START)
		*p->place = phase_start(p->f, phase_at(p->f, 0));
	while (!p->more && p->examined < JOB_EXAMINE_MAX) {
		if (!scan_lines(s, p, &end, e))
			return false;
		if (!end || p->more)
			continue;
		n++;
		/* A job without a name matches no pattern. */
		if (phase_at(p->f, n) == PHASE_END || (p->f->sort == JOB_SORT_NAME && p->f->name_glob))
			return true;
		*p->place = phase_start(p->f, phase_at(p->f, n));
	}
	p->more = true;
	return true;
}

static bool build_sorted_page(struct store *s, struct sorted *p, struct job_search *search, struct job_list *ret, struct err *e)
{
	size_t used = 0;
	bool few;

	if (!list_jobs_possible(p->f))
		return true;
	if (!list_jobs_search_step(s, p->f, search, e))
		return false;
	ret->next = search->stage == SEARCH_READS;
	if (ret->next)
		return true;
	few = search->stage == SEARCH_FEW;
	if (few ? !list_few(s, p, search, e) : !list_many(s, p, e))
		return false;
	list_jobs_search_scanned(search, p->examined);
	if (!list_jobs_read(s, p->f, p->ids, p->n, ret, &used, e))
		return false;
	if (used < p->n || few)
		*p->place = used > 0 ? p->places[used - 1] : *p->place;
	ret->next = p->more || used < p->n;
	return true;
}

bool list_jobs_sorted(struct store *s, const struct job_filter *f, struct job_place *place,
	struct job_search *search, struct job_list *ret, struct err *e)
{
	AUTO_DONE(sorted) p = {.f = f, .place = place};
	AUTO_DONE(job_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !build_sorted_page(s, &p, search, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct job_list){};
	return true;
}

/* ---- the order of numbers ---- */

static int id_up(const void *a, const void *b)
{
	return compare_int(*(const int64_t *)a, *(const int64_t *)b);
}

static int id_down(const void *a, const void *b)
{
	return id_up(b, a);
}

static bool numbered_page(struct store *s, const struct job_filter *f, struct job_search *search, struct job_list *ret,
	struct err *e)
{
	size_t at = 0, n, used = 0;

	if (search->n > 0)
		qsort(search->ids, search->n, sizeof(*search->ids), f->down ? id_down : id_up);
	while (f->after && at < search->n && (f->down ? search->ids[at] >= f->after : search->ids[at] <= f->after))
		at++;
	n = search->n - at < f->limit ? search->n - at : f->limit;
	if (!list_jobs_read(s, f, search->ids + at, n, ret, &used, e))
		return false;
	ret->next = used > 0 && at + used < search->n ? search->ids[at + used - 1] : 0;
	return true;
}

bool list_jobs_numbered(struct store *s, const struct job_filter *f, struct job_search *search,
	struct job_list *ret, struct err *e)
{
	AUTO_DONE(job_list) found = {};
	AUTO_TX tx = {};

	/* other filters are scanned in the order of numbers */
	if (!f->name_glob || f->created_since || f->created_until || !list_jobs_possible(f))
		return list_jobs_page(s, f, ret, e);
	if (!tx_begin(&tx, s, false, e) || !list_jobs_search_step(s, f, search, e))
		return false;
	if (search->stage == SEARCH_FEW && !numbered_page(s, f, search, &found, e))
		return false;
	if (!tx_commit(&tx, e))
		return false;
	if (search->stage == SEARCH_MANY || search->stage == SEARCH_TOO_MANY)
		return list_jobs_page(s, f, ret, e);
	if (search->stage == SEARCH_READS)
		found.next = f->after ? f->after : f->down ? INT64_MAX : -1; /* the same page again */
	*ret = found;
	found = (struct job_list){};
	return true;
}
