/* SPDX-License-Identifier: Apache-2.0 */
/* Streams audit events, mixed with run ends, to one client. */
#include "daemon/api/routes/event_feed.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/event.h"
#include "core/job/run.h"
#include "daemon/api/audit.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/run_watch.h"
#include "store/read/list_events.h"
#include "store/read/single.h"
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-event.h>

#define STEP 64          /* events and run ends per read */
#define RETRY_AFTER (500 * USEC_MSEC)
#define ENDS_MAX 4096    /* run ends buffered for a slow client; further ones are only counted */

/* Owned by the request as its data until the response begins, afterwards as its stream. */
struct feed {
	struct stream stream;
	struct request *request;
	struct audit_watch *events;
	struct run_watch *ends;
	struct event_feed_filter wanted;   /* the cursor moves */
	struct buf text;          /* read and not yet sent */
	size_t sent;
	bool reading, may_have_more;       /* a read is in progress; there may be more events */
	int64_t ended[ENDS_MAX];  /* runs whose end is to be sent */
	size_t n_ended;
	int64_t omitted;           /* run ends beyond these */
	sd_event_source *retry;   /* retry after a failed read */
};

static void feed_free(void *data)
{
	struct feed *f = data;

	audit_watch_free(f->events);
	run_watch_free(f->ends);
	sd_event_source_disable_unref(f->retry);
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
	bool first;
	int64_t ended[STEP];
	size_t n_ended;
	int64_t omitted;
	bool more;               /* result, like the cursor in 'wanted' */
};

static void write_line(struct buf *out, const struct event *ev)
{
	event_feed_write_event(out, ev);
	buf_char(out, '\n');
}

/* Writes the newest events, oldest first, unless the client gave a cursor. */
static bool write_first(struct store *s, struct feed_query *f, struct buf *out, struct err *e)
{
	struct event_filter newest = f->wanted.filter;
	AUTO_DONE(event_list) l = {};

	if (f->wanted.filter.from)
		return true;
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
		write_line(out, l.v[i]);
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
		write_line(out, l.v[i]);
	if (l.n > 0)
		f->wanted.filter.from = l.v[l.n - 1]->id;
	if (l.next)
		f->wanted.filter.from = l.next;
	f->more = l.next != 0;
	return true;
}

/*
 * The end of a run is sent as an event without a number, because it is stored as a run and not in
 * the audit trail.
 */
static void write_run_end(struct buf *out, const struct run *r)
{
	char detail[200] = "";

	if (r->reason)
		snprintf(detail, sizeof(detail), "%s", r->reason);
	else if (r->term_signal)
		snprintf(detail, sizeof(detail), "signal %" PRId64, r->term_signal);
	else if (r->exit_code > 0)
		snprintf(detail, sizeof(detail), "exit code %" PRId64, r->exit_code);
	write_line(out, &(struct event){.at = r->ended_at,
				.uid = -1,
				.owner = r->uid,
				.what = EVENT_RUN_END,
				.job = r->job,
				.run = r->id,
				.object = r->job_name,
				.node = r->node,
				.result = (char *)run_state_name(r->state),
				.detail = detail[0] ? detail : NULL});
}

static void write_run_ends(struct store *s, const struct feed_query *f, struct buf *out)
{
	for (size_t i = 0; i < f->n_ended; i++) {
		AUTO(run) *r = NULL;

		/* a run of another owner is not found */
		if (store_run_get(s, f->wanted.filter.uid, f->ended[i], &r, NULL) &&
			run_state_final(r->state))
			write_run_end(out, r);
	}
	if (f->omitted > 0 && f->wanted.filter.uid < 0) {
		AUTO_TEXT detail =
			xprintf("%" PRId64 " more runs ended while this stream was not read",
				f->omitted);

		write_line(out,
			&(struct event){.uid = -1, .what = EVENT_RUN_END, .detail = detail});
	}
}

static bool run_feed(struct store *s, struct store_read *q, struct err *e)
{
	struct feed_query *f = (struct feed_query *)q;

	if (f->first && (!event_feed_filter_resolve(s, q->scope, &f->wanted, e) ||
				!write_first(s, f, &q->out, e)))
		return false;
	f->wanted.filter.jobs = f->wanted.jobs; /* the copied pointer refers to the original */
	if (!write_events(s, f, &q->out, e))
		return false;
	write_run_ends(s, f, &q->out);
	return true;
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
	q->n_ended = f->n_ended < STEP ? f->n_ended : STEP;
	memcpy(q->ended, f->ended, q->n_ended * sizeof(*q->ended));
	memmove(f->ended, f->ended + q->n_ended, (f->n_ended - q->n_ended) * sizeof(*f->ended));
	f->n_ended -= q->n_ended;
	q->omitted = f->n_ended == 0 ? f->omitted : 0;
	f->omitted -= q->omitted;
	f->may_have_more = false;
	f->reading = true;
	store_read_start(f->request, &q->q);
}

static ssize_t feed_stream_read(struct stream *s, char *out, size_t max)
{
	struct feed *f = (struct feed *)s;
	size_t n = f->text.len - f->sent;

	if (n == 0) {
		if (!f->reading && (f->may_have_more || f->n_ended > 0))
			start_feed_read(f, false);
		return 0;
	}
	if (n > max)
		n = max;
	memcpy(out, f->text.data + f->sent, n);
	f->sent += n;
	return (ssize_t)n;
}

static void on_feed_read(struct request *r, struct store_read *q)
{
	struct feed *f = r->stream ? (struct feed *)r->stream : r->data;
	struct feed_query *fq = (struct feed_query *)q;

	f->reading = false;
	f->may_have_more |= fq->more;
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
	request_answer_stream(r, "application/x-ndjson", NULL, 0, &f->stream);
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

/* After a failed read the same run ends are read again later; the stream is only delayed. */
static void on_feed_read_failed(struct request *r, struct store_read *q)
{
	struct feed *f = (struct feed *)r->stream;
	struct feed_query *fq = (struct feed_query *)q;
	size_t room = ENDS_MAX - f->n_ended, n = fq->n_ended < room ? fq->n_ended : room;

	memmove(f->ended + n, f->ended, f->n_ended * sizeof(*f->ended));
	memcpy(f->ended, fq->ended, n * sizeof(*f->ended));
	f->n_ended += n;
	f->omitted += fq->omitted + (int64_t)(fq->n_ended - n);
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

static bool wants_end(const struct feed *f, int64_t job, int64_t run)
{
	const struct event_filter *w = &f->wanted.filter;

	if ((w->whats && !(w->whats & UINT64_C(1) << EVENT_RUN_END)) || (w->run && w->run != run))
		return false;
	for (size_t i = 0; i < w->n_jobs; i++)
		if (f->wanted.jobs[i] == job)
			return true;
	return w->n_jobs == 0;
}

static void on_feed_run_moved(int64_t job, int64_t run, enum run_state state, void *arg)
{
	struct feed *f = arg;

	if (run == 0 || !run_state_final(state) || !f->request->stream || !wants_end(f, job, run))
		return;
	if (f->n_ended < ENDS_MAX)
		f->ended[f->n_ended++] = run;
	else
		f->omitted++;
	if (!f->reading)
		request_wake(f->request);
}

void event_feed_start(struct request *r, struct event_feed_filter *w)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	f->request = r;
	f->wanted = *w;
	*w = (struct event_feed_filter){};
	if (!request_query(r, "limit"))
		f->wanted.filter.limit = 10;
	f->events = audit_watch_new(r->context->audit, on_audit_events, f);
	f->ends = run_watch_new(r->context->run_watch_set, 0, 0, on_feed_run_moved, f);
	r->data = f;
	r->data_free = feed_free;
	start_feed_read(f, true);
}
