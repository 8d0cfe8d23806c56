/* SPDX-License-Identifier: Apache-2.0 */
/* Route that lists audit events, newest first. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "daemon/api/stream/event_feed.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/stream/sse.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "store/read/list/list_events.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>

/* ---- filter ---- */

void event_feed_filter_done(struct event_feed_filter *w)
{
	strv_done(&w->refs);
}

static bool split_event_jobs(const char *text, struct strv *ret, struct err *e)
{
	while (text && *text) {
		size_t len = strcspn(text, ",");

		if (ret->n == EVENT_JOBS_MAX)
			return err_field(e, "job", "at most %d jobs may be given", EVENT_JOBS_MAX);
		strv_take(ret, xstrndup(text, len));
		text += len + (text[len] == ',');
	}
	return true;
}

static bool split_whats(const char *text, uint64_t *ret, struct err *e)
{
	while (text && *text) {
		size_t len = strcspn(text, ",");
		AUTO_TEXT word = xstrndup(text, len);
		uint64_t bits;

		if (!event_what_bits(word, &bits))
			return err_field(e, "what", "there is no event '%.40s'", word);
		*ret |= bits;
		text += len + (text[len] == ',');
	}
	return true;
}

static bool read_event_filter(const struct request *r, struct event_feed_filter *w, struct err *e)
{
	w->filter.run = request_number(r, "run", 0);
	w->filter.since = request_number(r, "since", 0);
	w->filter.until = request_number(r, "until", 0);
	w->filter.limit = (size_t)request_number(r, "limit", 100);
	return split_event_jobs(request_text(r, "job"), &w->refs, e) &&
	       split_whats(request_text(r, "what"), &w->filter.whats, e) &&
	       list_stream_cursor(r, &w->filter.from, e);
}

/*
 * A number is not looked up, because the events of a removed job are kept; the events themselves
 * have the owner.
 */
bool event_feed_filter_resolve(struct store *s, int64_t scope, struct event_feed_filter *w,
	struct err *e)
{
	for (size_t i = 0; i < w->refs.n; i++) {
		AUTO(job) *j = NULL;

		if (text_parse_int(w->refs.v[i], 1, INT64_MAX, &w->jobs[i]))
			continue;
		if (!store_read_job(s, scope, w->refs.v[i], &j, e))
			return false;
		w->jobs[i] = j->id;
	}
	w->filter.uid = scope;
	w->filter.jobs = w->jobs;
	w->filter.n_jobs = w->refs.n;
	return true;
}

void event_feed_write_event(struct buf *out, const struct event *ev)
{
	json_t *o = row_json_event(ev);

	json_value_write(o, out);
	json_decref(o);
}

/* ---- the list ---- */

struct event_page {
	struct list_stream list;
	struct event_feed_filter wanted;
};

static bool step_events(struct store *s, struct list_stream *l, size_t n, struct buf *out,
	size_t *ret_n, bool *ret_more, struct err *e)
{
	struct event_page *p = (struct event_page *)l;
	AUTO_DONE(event_list) rows = {};

	p->wanted.filter.from = l->cursor;
	p->wanted.filter.limit = n;
	if (!event_feed_filter_resolve(s, l->scope, &p->wanted, e) ||
		!list_events_page(s, &p->wanted.filter, &rows, e))
		return false;
	for (size_t i = 0; i < rows.n; i++) {
		list_stream_comma(l, out);
		event_feed_write_event(out, rows.v[i]);
	}
	*ret_n = rows.n;
	*ret_more = rows.next != 0;
	l->cursor = rows.next;
	return true;
}

static void free_event_page(struct list_stream *l)
{
	event_feed_filter_done(&((struct event_page *)l)->wanted);
	free(l);
}

static void follow_events(struct request *r, struct event_feed_filter *w, bool sse)
{
	struct err e = {};
	int64_t place = 0;

	if (sse && !sse_last_id(r, w->filter.from, &w->filter.from, &place, &e))
		request_answer_err(r, &e);
	else
		event_feed_start(r, w, place, sse);
}

void route_stream(struct request *r)
{
	AUTO_DONE(event_feed_filter) w = {};
	struct err e = {};

	if (list_stream_cursor(r, &w.filter.from, &e))
		follow_events(r, &w, true);
	else
		request_answer_err(r, &e);
}

void route_event_list(struct request *r)
{
	AUTO_DONE(event_feed_filter) w = {};
	struct event_page *p;
	struct err e = {};

	if (!read_event_filter(r, &w, &e)) {
		request_answer_err(r, &e);
		return;
	}
	if (request_number(r, "follow", 0)) {
		follow_events(r, &w, sse_wanted(r));
		return;
	}
	p = xcalloc(1, sizeof(*p));
	p->list = (struct list_stream){.name = "events",
		.step = step_events,
		.free = free_event_page,
		.cursor = w.filter.from,
		.left = w.filter.limit};
	p->wanted = w;
	w = (struct event_feed_filter){};
	list_stream_answer(r, &p->list);
}
