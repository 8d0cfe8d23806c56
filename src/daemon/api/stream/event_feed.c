/* SPDX-License-Identifier: Apache-2.0 */
/* Streams audit events, mixed with starts and ends of runs, to one client. */
#include "daemon/api/stream/event_feed.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/event.h"
#include "daemon/api/audit.h"
#include "daemon/api/request.h"
#include "daemon/api/stream/sse.h"
#include "daemon/api/run_feed.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "store/read/list/list_events.h"
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-event.h>

#define STEP 64          /* events per read, and runs per message */
#define RETRY_AFTER (500 * USEC_MSEC)
#define HELD_MIN (10 * USEC_MSEC) /* first pause before events that wait for a transaction are read again; it doubles */
#define HELD_MAX (500 * USEC_MSEC)

/* Owned by the request as its data until the response begins, afterwards as its stream. */
struct feed {
	struct stream stream;
	struct request *request;
	struct audit_watch *events;
	struct run_feed_reader *runs;
	struct event_feed_filter wanted;   /* the cursor moves */
	struct buf text;          /* read and not yet sent */
	size_t sent;
	bool waiting;             /* for 'runs', before the first read */
	bool reading, may_have_more;       /* a read is in progress; there may be more events */
	sd_event_source *retry;   /* retry after a failed read */
	sd_event_source *held;    /* the next read of events that wait for a transaction */
	usec_t held_pause;        /* the last one; 0: no event waits */
	bool sse;                 /* server-sent events instead of JSON lines; with the starts of runs */
	bool reset;               /* the client resumes and has missed runs */
	struct sse_beat beat;
};

static void feed_free(void *data)
{
	struct feed *f = data;

	audit_watch_free(f->events);
	run_feed_reader_free(f->runs);
	sse_beat_stop(&f->beat);
	sd_event_source_disable_unref(f->retry);
	sd_event_source_disable_unref(f->held);
	event_feed_filter_done(&f->wanted);
	buf_done(&f->text);
	free(f);
}

static void feed_stream_free(struct stream *s)
{
	feed_free(s);
}

/* ---- the reader's thread ---- */

struct feed_query {
	struct store_read q;
	/* a copy; with the job references on the first read only */
	struct event_feed_filter wanted;
	bool first, sse, reset;
	int64_t place;           /* in the feed of runs */
	bool more, held;         /* results, like the cursor in 'wanted' */
};

static void write_line(const struct feed_query *f, struct buf *out, const struct event *ev)
{
	AUTO_DONE(buf) data = {};

	event_feed_write_event(&data, ev);
	if (f->sse) {
		sse_write_at(out, ev->id, f->place, event_what_name(ev->what), data.data);
		return;
	}
	buf_str(out, data.data);
	buf_char(out, '\n');
}

/*
 * Writes the newest events, oldest first, unless the client gave a cursor. A cursor beyond the newest event is that of a
 * list, or the store has lost that event.
 */
static bool write_first(struct store *s, struct feed_query *f, struct buf *out, struct err *e)
{
	struct event_filter newest = f->wanted.filter;
	AUTO_DONE(event_list) l = {};

	if (f->wanted.filter.from) {
		if (!list_events_newest(s, &newest.from, e))
			return false;
		f->reset |= f->wanted.filter.from > newest.from;
		if (f->wanted.filter.from > newest.from)
			f->wanted.filter.from = newest.from;
		return true;
	}
	/*
	 * The position is read before the events: an event committed in between would otherwise be
	 * lost. Its number prevents duplicates.
	 */
	if (!list_events_newest(s, &f->wanted.filter.from, e))
		return false;
	newest.from = f->wanted.filter.from + 1;
	if (newest.limit > 0 && !list_events_page(s, &newest, &l, e))
		return false;
	for (size_t i = l.n; i-- > 0;)
		write_line(f, out, l.v[i]);
	return true;
}

static bool write_events(struct store *s, struct feed_query *f, struct buf *out, struct err *e)
{
	struct event_filter next = f->wanted.filter;
	AUTO_DONE(event_list) l = {};

	next.ascending = true;
	next.limit = STEP;
	if (!list_events_page(s, &next, &l, e))
		return false;
	for (size_t i = 0; i < l.n; i++)
		write_line(f, out, l.v[i]);
	if (l.n > 0)
		f->wanted.filter.from = l.v[l.n - 1]->id;
	if (l.next)
		f->wanted.filter.from = l.next;
	f->more = l.next != 0;
	f->held = l.held;
	return true;
}

/* The position comes first, so that a client without an event can resume. */
static void write_start(const struct feed_query *f, struct buf *out)
{
	AUTO_DONE(buf) rest = *out;

	*out = (struct buf){};
	buf_str(out, SSE_START);
	sse_write_at(out, f->wanted.filter.from, f->place, f->reset ? "reset" : "ready", "{}");
	if (rest.len)
		buf_add(out, rest.data, rest.len);
}

static bool run_feed(struct store *s, struct store_read *q, struct err *e)
{
	struct feed_query *f = (struct feed_query *)q;

	if (f->first && (!event_feed_filter_resolve(s, q->scope, &f->wanted, e) ||
				!write_first(s, f, &q->out, e)))
		return false;
	if (f->first && f->sse)
		write_start(f, &q->out);
	f->wanted.filter.jobs = f->wanted.jobs; /* the copied pointer refers to the original */
	return write_events(s, f, &q->out, e);
}

static void free_feed_query(struct store_read *q)
{
	event_feed_filter_done(&((struct feed_query *)q)->wanted);
	free(q);
}

/* ---- the loop ---- */

static void on_feed_read(struct request *r, struct store_read *q);
static void on_feed_read_failed(struct request *r, struct store_read *q);

static void start_feed_read(struct feed *f, bool first)
{
	struct feed_query *q = xcalloc(1, sizeof(*q));

	q->q.run = run_feed;
	q->q.then = on_feed_read;
	q->q.failed = first ? NULL : on_feed_read_failed;
	q->q.free = free_feed_query;
	q->q.task.item.begun = !first;
	q->wanted = f->wanted;
	q->wanted.refs = (struct strv){};
	if (first) {
		q->wanted.refs = f->wanted.refs;
		f->wanted.refs = (struct strv){};
	}
	q->first = first;
	q->sse = f->sse;
	q->reset = f->reset;
	q->place = run_feed_reader_place(f->runs);
	f->may_have_more = false;
	f->reading = true;
	store_read_start(f->request, &q->q);
}

static bool wants_run(const struct feed *f, const struct run_feed_item *i)
{
	const struct event_filter *w = &f->wanted.filter;

	if ((i->kind == RUN_FEED_START && !f->sse) || (w->uid >= 0 && i->owner != w->uid) ||
		(w->whats && !(w->whats & UINT64_C(1) << EVENT_RUN_END)) || (w->run && w->run != i->run))
		return false;
	for (size_t n = 0; n < w->n_jobs; n++)
		if (f->wanted.jobs[n] == i->job)
			return true;
	return w->n_jobs == 0;
}

/* The number of runs is for clients that may see all of them. 0: unknown. */
static void write_missed(struct feed *f, int64_t n)
{
	AUTO_TEXT detail = n > 0 ? xprintf("%" PRId64 " more runs started or ended while this stream was not read", n)
				 : xstrdup("more runs started or ended on other nodes");

	if (f->sse) {
		sse_write_at(&f->text, f->wanted.filter.from, run_feed_reader_place(f->runs), "reset", "{}");
	} else if (f->wanted.filter.uid < 0) {
		event_feed_write_event(&f->text,
			&(struct event){.uid = -1, .what = EVENT_RUN_END, .detail = detail});
		buf_char(&f->text, '\n');
	}
}

static void write_run(struct feed *f, const struct run_feed_item *i)
{
	if (f->sse) {
		sse_write_at(&f->text, f->wanted.filter.from, run_feed_reader_place(f->runs),
			event_what_name(i->kind == RUN_FEED_END ? EVENT_RUN_END : EVENT_RUN_START), i->data);
		return;
	}
	buf_str(&f->text, i->data);
	buf_char(&f->text, '\n');
}

/* Writes the runs that started or ended; they are not in the audit trail and have no number there. */
static void take_runs(struct feed *f)
{
	const struct run_feed_item *i;
	int64_t missed;

	buf_done(&f->text);
	f->sent = 0;
	for (int n = 0; n < STEP && (i = run_feed_reader_next(f->runs, &missed)); n++) {
		if (missed > 0 || i->kind == RUN_FEED_LOST)
			write_missed(f, missed);
		if (i->kind != RUN_FEED_LOST && wants_run(f, i))
			write_run(f, i);
	}
}

static ssize_t feed_stream_read(struct stream *s, char *out, size_t max)
{
	struct feed *f = (struct feed *)s;
	size_t n;

	while (f->sent == f->text.len && !f->reading && run_feed_reader_has_more(f->runs))
		take_runs(f);
	n = f->text.len - f->sent;
	if (n == 0) {
		if (!f->reading && f->may_have_more)
			start_feed_read(f, false);
		return f->sse ? sse_beat_read(&f->beat, out, max) : 0;
	}
	if (n > max)
		n = max;
	memcpy(out, f->text.data + f->sent, n);
	f->sent += n;
	return (ssize_t)n;
}

static int on_feed_held(sd_event_source *source, uint64_t usec, void *arg)
{
	struct feed *f = arg;

	(void)source;
	(void)usec;
	f->held = sd_event_source_disable_unref(f->held);
	f->may_have_more = true;
	if (f->request->stream && !f->reading)
		request_wake(f->request);
	return 0;
}

/* The end of the transaction causes no notification, so the feed reads again after a pause. */
static void look_again(struct feed *f, bool held)
{
	f->held = sd_event_source_disable_unref(f->held);
	f->held_pause = !held ? 0 : !f->held_pause ? HELD_MIN : f->held_pause < HELD_MAX / 2 ? 2 * f->held_pause : HELD_MAX;
	if (held)
		sd_event_add_time_relative(request_event(f->request), &f->held, CLOCK_MONOTONIC, (uint64_t)f->held_pause, 0, on_feed_held, f);
}

static void on_feed_read(struct request *r, struct store_read *q)
{
	struct feed *f = r->stream ? (struct feed *)r->stream : r->data;
	struct feed_query *fq = (struct feed_query *)q;

	f->reading = false;
	f->may_have_more |= fq->more;
	look_again(f, fq->held && !fq->more);
	f->wanted.filter = fq->wanted.filter;
	memcpy(f->wanted.jobs, fq->wanted.jobs, sizeof(f->wanted.jobs));
	buf_done(&f->text);
	f->text = q->out;
	q->out = (struct buf){};
	f->sent = 0;
	if (r->stream) {
		request_wake(r);
		return;
	}
	f->stream = (struct stream){.read = feed_stream_read, .free = feed_stream_free};
	r->data = NULL;
	r->data_free = NULL;
	if (f->sse)
		sse_beat_start(&f->beat, r);
	request_answer_stream(r, f->sse ? SSE_TYPE : "application/x-ndjson", NULL, 0, &f->stream);
}

static int on_feed_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct feed *f = arg;

	(void)source;
	(void)usec;
	f->retry = sd_event_source_disable_unref(f->retry);
	f->reading = false;
	f->may_have_more = true;
	request_wake(f->request);
	return 0;
}

/* After a failed read the same events are read again later; the stream is only delayed. */
static void on_feed_read_failed(struct request *r, struct store_read *q)
{
	struct feed *f = (struct feed *)r->stream;

	(void)q;
	sd_event_add_time_relative(request_event(r), &f->retry, CLOCK_MONOTONIC, RETRY_AFTER, 0,
		on_feed_retry, f);
}

static void on_audit_events(void *arg)
{
	struct feed *f = arg;

	f->may_have_more = true;
	if (f->request->stream && !f->reading)
		request_wake(f->request);
}

static void on_feed_runs(void *arg)
{
	struct feed *f = arg;

	if (f->waiting && run_feed_reader_ready(f->runs)) {
		f->waiting = false;
		start_feed_read(f, true);
	} else if (f->request->stream && !f->reading && run_feed_reader_has_more(f->runs)) {
		request_wake(f->request);
	}
}

void event_feed_start(struct request *r, struct event_feed_filter *w, int64_t place, bool sse)
{
	struct feed *f = xcalloc(1, sizeof(*f));
	bool resumed = sse && w->filter.from > 0;

	f->request = r;
	f->sse = sse;
	f->wanted = *w;
	*w = (struct event_feed_filter){};
	if (!request_query(r, "limit"))
		f->wanted.filter.limit = sse ? 0 : 10;
	f->events = audit_watch_new(r->context->audit, on_audit_events, f);
	f->runs = run_feed_reader_new(r->context->run_feed, place, &f->reset, on_feed_runs, f);
	f->reset |= resumed && place == 0;
	r->data = f;
	r->data_free = feed_free;
	f->waiting = !run_feed_reader_ready(f->runs);
	if (!f->waiting)
		start_feed_read(f, true);
}
