/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pages of the audit trail by filter, in either direction, examining a bounded number of
 * events.
 */
#include "base/text.h"
#include "core/job/event.h"
#include "store/read/list/list_events.h"
#include "store/store_private.h"
#include "store/tx.h"

#define EXAMINE_MAX 20000  /* events read for one page; then the page is returned short, with a cursor */
#define CHUNK 64
#define CLOCK_SLACK (60 * USEC_MIN) /* numbers follow time except after the clock was set back by up to this */

/* A scan of one index. */
struct source {
	int query;
	int64_t key;             /* job or owner; unused without a filter */
	const char *what;        /* kind of event; NULL: any */
	int64_t from;            /* the next rows have numbers beyond this */
	struct event *row[CHUNK]; /* owned, from 'at' on */
	size_t n, at;
	bool end;
};

struct walk {
	const struct event_filter *f;
	struct source *sources; /* owned */
	size_t n;
	size_t examined;
	int64_t last;           /* the last number read in this direction */
	int64_t until;          /* events from this number on are not read */
	bool held;              /* there were such events */
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = w->sources[i].at; k < w->sources[i].n; k++)
			event_free(w->sources[i].row[k]);
	free(w->sources);
}

/*
 * One source per kind, if an index has all kinds of the filter. Submissions have no entries there,
 * because most events are submissions.
 */
static bool choose_kinds(struct walk *w)
{
	const struct event_filter *f = w->f;
	int query = f->uid >= 0 ? f->ascending ? Q_EVENTS_AFTER_OWNER_WHAT : Q_EVENTS_BEFORE_OWNER_WHAT
		: f->ascending ? Q_EVENTS_AFTER_WHAT : Q_EVENTS_BEFORE_WHAT;

	if (!f->whats || f->whats & UINT64_C(1) << EVENT_JOB_ADD)
		return false;
	w->sources = xcalloc(EVENT_WHAT_MAX, sizeof(*w->sources));
	for (int what = EVENT_NONE + 1; what < EVENT_WHAT_MAX; what++)
		if (f->whats & UINT64_C(1) << what)
			w->sources[w->n++] = (struct source){.query = query, .key = f->uid, .what = event_what_name(what)};
	return true;
}

static void choose_event_sources(struct walk *w)
{
	const struct event_filter *f = w->f;

	if (f->n_jobs == 0 && !f->run && choose_kinds(w))
		return;
	w->n = f->n_jobs ? f->n_jobs : 1;
	w->sources = xcalloc(w->n, sizeof(*w->sources));
	for (size_t i = 0; i < f->n_jobs; i++) {
		w->sources[i].query = f->ascending ? Q_EVENTS_AFTER_JOB : Q_EVENTS_BEFORE_JOB;
		w->sources[i].key = f->jobs[i];
	}
	if (f->n_jobs > 0)
		return;
	if (f->run) {
		w->sources[0].query = f->ascending ? Q_EVENTS_AFTER_RUN : Q_EVENTS_BEFORE_RUN;
		w->sources[0].key = f->run;
		return;
	}
	w->sources[0].key = f->uid;
	if (f->uid >= 0)
		w->sources[0].query = f->ascending ? Q_EVENTS_AFTER_OWNER : Q_EVENTS_BEFORE_OWNER;
	else
		w->sources[0].query = f->ascending ? Q_EVENTS_AFTER : Q_EVENTS_BEFORE;
}

static struct event *row_event(struct query *q)
{
	struct event *ev = xcalloc(1, sizeof(*ev));

	ev->id = query_get_int(q);
	ev->at = query_get_int(q);
	ev->uid = query_get_int(q);
	ev->owner = query_get_int(q);
	ev->who = query_get_copy(q);
	ev->origin = query_get_copy(q);
	if (!event_what_parse(query_get_text(q), &ev->what))
		ev->what = EVENT_NONE; /* written by a newer version */
	ev->object = query_get_copy(q);
	ev->job = query_get_int(q);
	ev->run = query_get_int(q);
	ev->node = query_get_copy(q);
	ev->result = query_get_copy(q);
	ev->detail = query_get_copy(q);
	return ev;
}

static bool fill_event_source(struct store *s, const struct event_filter *f, struct source *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, c->query, e);
	size_t want = f->limit + 1 < CHUNK ? f->limit + 1 : CHUNK;

	if (c->query != Q_EVENTS_AFTER && c->query != Q_EVENTS_BEFORE && c->query != Q_EVENTS_AFTER_WHAT &&
		c->query != Q_EVENTS_BEFORE_WHAT)
		query_int(&q, c->key);
	if (c->what)
		query_text(&q, c->what);
	query_int(&q, c->from);
	query_int(&q, (int64_t)want);
	c->n = c->at = 0;
	while (c->n < want && query_row(&q)) {
		c->row[c->n] = row_event(&q);
		c->from = c->row[c->n++]->id;
	}
	c->end = c->n < want;
	return !q.failed;
}

/* The next event of all sources; *ret NULL: none. */
static bool next_event(struct store *s, struct walk *w, struct event **ret, struct err *e)
{
	struct source *best = NULL;

	*ret = NULL;
	for (size_t i = 0; i < w->n; i++) {
		struct source *c = &w->sources[i];

		if (c->at == c->n && !c->end && !fill_event_source(s, w->f, c, e))
			return false;
		if (c->at == c->n)
			continue;
		if (!best || (c->row[c->at]->id < best->row[best->at]->id) == w->f->ascending)
			best = c;
	}
	if (best && w->f->ascending && best->row[best->at]->id >= w->until)
		w->held = true;
	else if (best)
		*ret = best->row[best->at++];
	return true;
}

static bool event_matches(const struct event_filter *f, const struct event *ev)
{
	return (f->uid < 0 || ev->owner == f->uid) && (!f->whats || f->whats & UINT64_C(1) << ev->what) &&
	       (!f->run || ev->run == f->run) && ev->at >= f->since && (!f->until || ev->at < f->until);
}

/* No later event of the scan can be inside the time range. */
static bool is_past(const struct event_filter *f, const struct event *ev)
{
	if (f->ascending)
		return f->until && ev->at > f->until + CLOCK_SLACK;
	return ev->at < f->since - CLOCK_SLACK;
}

static bool collect_events(struct store *s, struct walk *w, struct event_list *ret, struct err *e)
{
	while (w->examined++ < EXAMINE_MAX) {
		AUTO(event) *ev = NULL;

		if (!next_event(s, w, &ev, e))
			return false;
		if (!ev)
			return true;
		if (is_past(w->f, ev))
			return true;
		if (event_matches(w->f, ev)) {
			if (ret->n == w->f->limit) {
				ret->next = w->last;
				return true;
			}
			w->last = ev->id;
			event_list_add(ret, STEAL(ev));
		} else {
			w->last = ev->id;
		}
	}
	ret->next = w->last;
	return true;
}

/* ---- finding the number for a time ---- */

/* The event with the highest number up to 'id'; *ret_id 0: none. */
static bool event_at_most(struct store *s, int64_t id, int64_t *ret_id, usec_t *ret_at, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_EVENT_AT_MOST, e);

	*ret_id = 0;
	query_int(&q, id);
	if (query_row(&q)) {
		*ret_id = query_get_int(&q);
		*ret_at = query_get_int(&q);
	}
	return !q.failed;
}

/*
 * The highest number whose event is older than 't', by binary search, so that no index by time is
 * needed.
 */
static bool find_time(struct store *s, usec_t t, int64_t *ret, struct err *e)
{
	int64_t low = 0, high, id;
	usec_t at = 0;

	if (!event_at_most(s, INT64_MAX, &high, &at, e))
		return false;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;

		if (!event_at_most(s, middle, &id, &at, e))
			return false;
		if (id <= low || at < t)
			low = middle;
		else
			high = id - 1;
	}
	*ret = low;
	return true;
}

static bool seek_event_cursor(struct store *s, struct walk *w, struct err *e)
{
	const struct event_filter *f = w->f;
	int64_t from = f->from;
	usec_t bound = f->ascending ? f->since - CLOCK_SLACK : f->until + CLOCK_SLACK;

	if (!from && (f->ascending ? f->since : f->until) && f->n_jobs == 0) {
		if (!find_time(s, bound, &from, e))
			return false;
		from += !f->ascending;
	} else if (!from && !f->ascending) {
		from = INT64_MAX;
	}
	w->last = from;
	for (size_t i = 0; i < w->n; i++)
		w->sources[i].from = from;
	return true;
}

/*
 * A transaction in progress may still write events with lower numbers than those that are visible. '*ret_until' is the
 * first number that it may use. The transaction of the reader has one snapshot, so nothing is missing below.
 */
static bool read_frontier(struct store *s, int64_t *ret_until, int64_t *ret_newest, struct err *e)
{
	AUTO_QUERY q = {};
	usec_t at;

	*ret_until = INT64_MAX;
	if (s->db->no_xids)
		return event_at_most(s, INT64_MAX, ret_newest, &at, e);
	q = query_start(s->db, Q_EVENTS_FRONTIER, e);
	if (query_row(&q)) {
		*ret_until = query_get_int(&q);
		*ret_newest = query_get_int(&q);
	}
	return !q.failed;
}

bool list_events_page(struct store *s, const struct event_filter *f, struct event_list *ret, struct err *e)
{
	AUTO_DONE(walk) w = {.f = f};
	AUTO_DONE(event_list) found = {};
	AUTO_TX tx = {};
	int64_t newest;

	choose_event_sources(&w);
	if (!tx_begin(&tx, s, false, e) || (f->ascending && !read_frontier(s, &w.until, &newest, e)) ||
	    !seek_event_cursor(s, &w, e) || !collect_events(s, &w, &found, e) || !tx_commit(&tx, e))
		return false;
	found.held = w.held;
	*ret = found;
	found = (struct event_list){};
	return true;
}

bool list_events_newest(struct store *s, int64_t *ret, struct err *e)
{
	AUTO_TX tx = {};
	int64_t until;

	return tx_begin(&tx, s, false, e) && read_frontier(s, &until, ret, e) && tx_commit(&tx, e);
}
