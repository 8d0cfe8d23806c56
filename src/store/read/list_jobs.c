/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of jobs by filter: scans one index, examining a bounded number of rows. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/lists.h"
#include "store/read/list_jobs.h"
#include "store/read/page.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

#define EXAMINE_MAX 20000 /* rows read for one page; then the page is returned short, with a cursor */
#define PREFIX_MAX 5000   /* names with a common prefix that are sorted in memory instead of scanning an index */
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Supports '*' and '?'. The time is at most the product of the two lengths. */
static bool glob_matches(const char *glob, const char *name)
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

struct page {
	const struct job_filter *f;
	int query;          /* selects the index */
	int only_state;     /* if the filter has a single state; else -1 */
	usec_t at;          /* position of the scan: creation time ... */
	int64_t after;      /* ... and id */
	size_t examined;
	int64_t *ids;       /* owned: of the page */
	size_t n_ids;
	int64_t last;       /* the last of them */
	bool more;          /* at least one more row matches */
};

static void page_add(struct page *p, int64_t id)
{
	p->ids = xgrow(p->ids, p->n_ids, sizeof(*p->ids));
	p->ids[p->n_ids++] = id;
	p->last = id;
}

static int single_state(unsigned states)
{
	return states && !(states & (states - 1)) ? __builtin_ctz(states) : -1;
}

static int choose_job_index(const struct job_filter *f)
{
	if (f->tag_key)
		return f->tag_value ? Q_JOB_PAGE_TAG : Q_JOB_PAGE_TAG_KEY;
	if (f->created_since || f->created_until)
		return Q_JOB_PAGE_CREATED;
	if (f->uid >= 0)
		return Q_JOB_PAGE_UID;
	if (f->owner)
		return Q_JOB_PAGE_OWNER;
	return single_state(f->states) >= 0 ? Q_JOB_PAGE_STATE : Q_JOB_PAGE;
}

static void bind_job_filter(struct query *q, const struct page *p, size_t n)
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
	case Q_JOB_PAGE_UID:
		query_int(q, f->uid);
		break;
	case Q_JOB_PAGE_OWNER:
		query_text(q, f->owner);
		break;
	case Q_JOB_PAGE_STATE:
		query_int(q, p->only_state);
		break;
	default:
		break;
	}
	query_int(q, p->after);
	query_int(q, (int64_t)n);
}

/* Reads a row; true if it matches the whole filter. */
static bool job_row_matches(struct query *q, const struct job_filter *f, int64_t *ret_id, usec_t *ret_at)
{
	int64_t id = *ret_id = query_get_int(q);
	int64_t uid = query_get_int(q);
	int64_t state = query_get_int(q);
	usec_t at = *ret_at = query_get_int(q);
	const char *owner = query_get_text(q);
	const char *name = query_get_text(q);
	unsigned states = f->states ? f->states : ~(1u << JOB_REMOVED);

	return id > 0 && state >= 0 && state < JOB_STATE_MAX && states & 1u << state &&
	       (f->uid < 0 || uid == f->uid) && (!f->owner || text_equal(owner, f->owner)) &&
	       (!f->name_glob || (name && glob_matches(f->name_glob, name))) &&
	       at >= f->created_since && (!f->created_until || at < f->created_until);
}

/* Reads the rows of one statement; *ret_end: there are no more. */
static bool scan_job_rows(struct store *s, struct page *p, bool *ret_end, struct err *e)
{
	size_t n = p->f->limit + 1 > 256 ? p->f->limit + 1 : 256, got = 0;
	AUTO_QUERY q = query_start(s->db, p->query, e);

	if (p->examined == 0)
		n = p->f->limit + 1;
	bind_job_filter(&q, p, n);
	while (!p->more && query_row(&q)) {
		int64_t id;
		usec_t at;
		bool fit = job_row_matches(&q, p->f, &id, &at);

		got++;
		if (fit && p->n_ids == p->f->limit) {
			p->more = true;
			break;
		}
		p->examined++;
		p->after = id;
		p->at = at;
		if (fit)
			page_add(p, id);
	}
	*ret_end = p->more || got < n;
	return !q.failed;
}

static bool seek_job_cursor(struct store *s, struct page *p, struct err *e)
{
	AUTO_QUERY q = {};

	p->at = -1;
	p->after = p->f->after;
	if (p->query != Q_JOB_PAGE_CREATED || !p->after)
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
	while (!end && p->examined < EXAMINE_MAX)
		if (!scan_job_rows(s, p, &end, e))
			return false;
	*ret_next = p->more ? p->last : end ? 0 : p->after;
	return true;
}

/* ---- by name prefix ---- */

static int by_id(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Reads and sorts all names with the prefix of the pattern. *ret_many: there are too many, scan an
 * index instead.
 */
static bool list_by_prefix(struct store *s, struct page *p, int64_t *ret_next, bool *ret_many, struct err *e)
{
	AUTO_TEXT low = xstrndup(p->f->name_glob, strcspn(p->f->name_glob, "*?"));
	AUTO_TEXT high = xstrdup(low);
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAGE_PREFIX, e);
	int64_t ids[PREFIX_MAX];
	size_t n = 0, seen = 0;

	high[strlen(high) - 1]++; /* names are ASCII, so there is a next character */
	query_text(&q, low);
	query_text(&q, high);
	query_int(&q, p->f->after);
	query_int(&q, PREFIX_MAX + 1);
	while (seen <= PREFIX_MAX && query_row(&q)) {
		int64_t id;
		usec_t at;

		if (job_row_matches(&q, p->f, &id, &at) && n < PREFIX_MAX)
			ids[n++] = id;
		seen++;
	}
	if (q.failed)
		return false;
	*ret_many = seen > PREFIX_MAX;
	if (*ret_many)
		return true;
	qsort(ids, n, sizeof(*ids), by_id);
	for (size_t i = 0; i < n && i < p->f->limit; i++)
		page_add(p, ids[i]);
	*ret_next = n > p->f->limit ? p->last : 0;
	return true;
}

/*
 * Reads the jobs of the page in growing chunks, because the size of a definition is known only
 * after reading it.
 */
static bool read_job_page(struct store *s, const struct page *p, struct job_list *ret, struct err *e)
{
	size_t at = 0, bytes = 0, n;

	while (at < p->n_ids && (n = page_chunk(at, bytes, p->n_ids, p->f->bytes)) > 0) {
		size_t from = ret->n;
		AUTO_SET ids = {};

		for (size_t i = 0; i < n; i++)
			set_id(&ids, p->ids[at++]);
		if (!jobs_read(s, -1, set_json(&ids), ret, e))
			return false;
		for (size_t i = from; i < ret->n; i++)
			bytes += strlen(ret->v[i]->spec);
	}
	if (at < p->n_ids)
		ret->next = p->ids[at - 1];
	return true;
}

static bool build_job_page(struct store *s, struct page *p, struct job_list *ret, struct err *e)
{
	const struct job_filter *f = p->f;
	size_t prefix = f->name_glob ? strcspn(f->name_glob, "*?") : 0;
	bool many = true;

	if (f->name_glob && strspn(f->name_glob, NAME_CHARS "*?") < strlen(f->name_glob))
		return true; /* no name has this character */
	if (prefix && !f->tag_key && p->query != Q_JOB_PAGE_CREATED && !list_by_prefix(s, p, &ret->next, &many, e))
		return false;
	if (many && !scan_job_index(s, p, &ret->next, e))
		return false;
	return read_job_page(s, p, ret, e);
}

bool list_jobs_page(struct store *s, const struct job_filter *f, struct job_list *ret, struct err *e)
{
	struct page p = {.f = f, .query = choose_job_index(f), .only_state = single_state(f->states)};
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
