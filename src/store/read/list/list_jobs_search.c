/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the jobs that a filter matches, in steps. A list sorts them in memory if they are few. The
 * names of a pattern are compared inside the database, which reads only their index.
 */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/counters.h"
#include "store/read/list/list_jobs_private.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdio.h>
#include <string.h>

#define STEP_ROWS 20000     /* rows examined in one step ... */
#define STEP_NAMES 100000   /* ... or names, which are compared inside the database */
#define NAMES_MAX 2000      /* names that match, read at a time */
#define SCAN_ENOUGH 20000   /* rows of the index of a sort key, after which the search continues */

void job_search_done(struct job_search *search)
{
	free(search->ids);
	free(search->sorted);
	*search = (struct job_search){};
}

void list_jobs_search_add(struct job_search *search, int64_t id)
{
	search->ids = xgrow(search->ids, search->n, sizeof(*search->ids));
	search->ids[search->n++] = id;
}

void list_jobs_search_scanned(struct job_search *search, size_t rows)
{
	search->scanned += rows;
	if (search->stage == SEARCH_MANY && search->scanned > SCAN_ENOUGH)
		search->stage = SEARCH_READS;
}

/* Sums a kept count of jobs: those of an owner, or those in states (bit i selects state i). */
static bool sum_counts(struct store *s, enum count_what what, int64_t uid, unsigned states, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_IN, e);

	*ret = 0;
	query_int(&q, what);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q), n;

		(void)query_get_text(&q);
		n = query_get_int(&q);
		if (what == COUNT_OWNER ? state == uid : state >= 0 && state < JOB_STATE_MAX && states & 1u << state)
			*ret += n;
	}
	return !q.failed;
}

static bool has_uncounted(const struct job_filter *f)
{
	return f->owner || f->name_glob || f->tag_key || f->queue || f->created_since || f->created_until;
}

/*
 * Chooses how many jobs are few: of 100 rows in the order of a sort key, two or more belong to a filter
 * that matches more. The kept counts show that at once for a filter by state or by owner number.
 */
static bool begin_search(struct store *s, const struct job_filter *f, struct job_search *search, struct err *e)
{
	int64_t total = 0, n = 0;

	search->stage = SEARCH_READS;
	if (f->uid < 0 && !f->states && !has_uncounted(f)) {
		search->stage = SEARCH_TOO_MANY;
		return true;
	}
	if (!sum_counts(s, COUNT_JOBS, 0, ~0u, &total, e))
		return false;
	total /= 50;
	search->most = total < JOB_FEW_MIN ? JOB_FEW_MIN : total > JOB_FEW_MAX ? JOB_FEW_MAX : (size_t)total;
	if (f->states && !sum_counts(s, COUNT_JOBS, 0, f->states, &n, e))
		return false;
	search->by_state = f->states && !f->tag_key && n <= (int64_t)search->most;
	if (search->by_state || has_uncounted(f) || (f->uid >= 0 && f->states))
		return true;
	if (f->uid >= 0 && !sum_counts(s, COUNT_OWNER, f->uid, 0, &n, e))
		return false;
	if (n > (int64_t)search->most)
		search->stage = SEARCH_MANY;
	return true;
}

/* ---- names ---- */

struct names_range {
	char low[JOB_NAME_BYTES], high[JOB_NAME_BYTES];
	int64_t low_id, high_id;
	bool end;      /* no name after the range can match */
};

/* The place so many names after the place of the search; names of the range follow the literal prefix. */
static bool find_range(struct store *s, const struct job_filter *f, const struct job_search *search,
	struct names_range *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_NAMES_BOUND, e);
	size_t prefix = list_jobs_prefix(f);

	*ret = (struct names_range){.low_id = search->after, .end = true};
	if (prefix >= sizeof(ret->low))
		prefix = sizeof(ret->low) - 1;
	memcpy(ret->low, search->name, sizeof(ret->low));
	memcpy(ret->high, f->name_glob, prefix);
	if (!*search->name)
		memcpy(ret->low, ret->high, sizeof(ret->low));
	if (prefix > 0)
		ret->high[prefix - 1]++; /* names are ASCII, so there is a next character */
	else
		ret->high[0] = '\x7f';
	query_text(&q, ret->low);
	query_int(&q, ret->low_id);
	query_int(&q, STEP_NAMES);
	if (query_row(&q)) {
		const char *name = query_get_text(&q);

		if (name && strcmp(name, ret->high) < 0) {
			snprintf(ret->high, sizeof(ret->high), "%s", name);
			ret->high_id = query_get_int(&q);
			ret->end = false;
		}
	}
	return !q.failed;
}

/* Reads up to NAMES_MAX jobs of the range whose names match. *ret_more: there are more. */
static bool read_matches(struct store *s, const struct job_filter *f, struct names_range *r, struct job_search *found,
	bool *ret_more, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_NAMES_LIKE, e);

	query_text(&q, r->low);
	query_int(&q, r->low_id);
	query_text(&q, r->high);
	query_int(&q, r->high_id);
	query_text(&q, f->name_glob);
	query_int(&q, NAMES_MAX);
	while (query_row(&q)) {
		const char *name;

		list_jobs_search_add(found, query_get_int(&q));
		name = query_get_text(&q);
		snprintf(r->low, sizeof(r->low), "%s", name ? name : "");
		r->low_id = found->ids[found->n - 1];
	}
	*ret_more = found->n == NAMES_MAX;
	return !q.failed;
}

/* Adds the jobs of 'found' that match the rest of the filter. */
static bool add_matching(struct store *s, const struct job_filter *f, const struct job_search *found,
	struct job_search *search, struct err *e)
{
	struct job_line *v = xcalloc(found->n + 1, sizeof(*v));
	bool ok;

	for (size_t i = 0; i < found->n; i++)
		v[i] = (struct job_line){.id = found->ids[i], .shown = true};
	ok = list_jobs_check_lines(s, f, v, found->n, e);
	for (size_t i = 0; ok && i < found->n; i++)
		if (v[i].shown)
			list_jobs_search_add(search, v[i].id);
	free(v);
	return ok;
}

/* Compares the next names with the pattern. */
static bool collect_names(struct store *s, const struct job_filter *f, struct job_search *search, bool *ret_end,
	struct err *e)
{
	struct names_range r;
	bool more;

	if (!find_range(s, f, search, &r, e))
		return false;
	do {
		AUTO_DONE(job_search) found = {};

		if (!read_matches(s, f, &r, &found, &more, e) || !add_matching(s, f, &found, search, e))
			return false;
		/* dense: at least one of fifty names matches */
		if (more && !list_jobs_prefix(f) && search->stage == SEARCH_READS && search->scanned == 0)
			search->stage = SEARCH_MANY;
	} while (more && search->stage == SEARCH_READS && search->n <= search->most);
	*ret_end = r.end && !more;
	memcpy(search->name, more ? r.low : r.high, sizeof(search->name));
	search->after = more ? r.low_id : r.high_id;
	return true;
}

/* An index of another part of the filter is tried first; a comparison of all names follows if that takes long. */
static bool is_by_name(const struct job_filter *f, const struct job_search *search)
{
	bool other = search->by_state || f->tag_key || f->created_since || f->created_until || f->uid >= 0 ||
		     (f->queue && strcmp(f->queue, "default") != 0);

	return search->by_name || (f->name_glob && (!other || list_jobs_prefix(f)));
}

static void compare_names_instead(struct job_search *search)
{
	search->by_name = true;
	search->n = 0;
	search->after = 0;
}

bool list_jobs_search_step(struct store *s, const struct job_filter *f, struct job_search *search, struct err *e)
{
	bool end = false;

	if (search->stage == SEARCH_NEW && !begin_search(s, f, search, e))
		return false;
	if (search->stage != SEARCH_READS)
		return true;
	if (is_by_name(f, search))
		search->by_name = true;
	if (search->by_name ? !collect_names(s, f, search, &end, e) : !list_jobs_collect(s, f, search, STEP_ROWS, &end, e))
		return false;
	if (search->stage != SEARCH_READS)
		return true;
	if (search->n > search->most)
		search->stage = SEARCH_TOO_MANY;
	else if (end)
		search->stage = SEARCH_FEW;
	else if (f->name_glob && !search->by_name)
		compare_names_instead(search);
	return true;
}
