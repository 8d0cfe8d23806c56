/* SPDX-License-Identifier: Apache-2.0 */
/* Route that returns or follows the output of a run. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/run_wait.h"
#include "daemon/api/stream/sse.h"
#include "daemon/api/server.h"
#include "daemon/cluster/output_relay.h"
#include "daemon/loop/output_watch.h"
#include "daemon/loop/run_watch.h"
#include "exec/proto/output_file.h"
#include "store/lists.h"
#include "store/read/single.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PIECE_MAX (64 * 1024) /* maximum per read on the loop */

/* Owned by the request as its data until the response begins, afterwards as its stream. */
struct output_stream {
	struct stream stream;
	/* watches the file, or the directory until the file exists */
	struct output_follower follower;
	struct request *request;
	struct run_watch *watch;
	int64_t run, attempt;            /* attempt 0: not chosen yet */
	int fd;                          /* -1: no file yet */
	int64_t offset, end;             /* end -1: until the attempt ends */
	bool watches_file;               /* not the directory */
	bool over;                       /* the attempt has ended, so the output is complete */
	/* owned: the end of the output, from the store; NULL: use the file */
	char *stored;
	int64_t stored_from, stored_len;
	/* fetches the output from another node; NULL: this node has it */
	struct output_relay *relay;
	int64_t relay_left;              /* bytes of it that may still be sent */
	struct attempt seen;             /* numbers only; number 0: there was no attempt yet */
	bool local;                      /* no other node can have the output */
	/* why another node does not send the output; ERR_NONE: it does */
	struct err missing;
	bool again;                      /* the run changed during a read */
	bool sse;                        /* server-sent events instead of bytes */
	struct buf sse_out;              /* messages that are not sent yet */
	size_t sse_sent;
	char sse_carry[4];               /* the beginning of a character */
	size_t sse_carried;
	int64_t sse_offset;              /* after the last byte that was read */
	bool sse_ended;
	struct sse_beat beat;
};

static void output_stream_done(void *data)
{
	struct output_stream *t = data;

	output_watch_unfollow(&t->follower);
	sse_beat_stop(&t->beat);
	buf_done(&t->sse_out);
	output_relay_free(t->relay);
	run_watch_free(t->watch);
	free(t->stored);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

static void output_stream_free(struct stream *s)
{
	output_stream_done(s);
}

/* ---- which attempt ---- */

static const struct attempt *find_attempt(const struct attempt_list *l, int64_t number)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->number == number)
			return l->v[i];
	return NULL;
}

static int64_t newest_attempt(const struct attempt_list *l)
{
	int64_t newest = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->number > newest)
			newest = l->v[i]->number;
	return newest;
}

/* Chooses the attempt on the first call; decides on each call whether it has ended. */
static bool choose_attempt(struct output_stream *t, const struct run_wait_read *l,
	const struct attempt **ret, struct err *e)
{
	bool final = run_state_final(l->run->state);
	int64_t newest = newest_attempt(&l->attempts);

	if (t->attempt == 0)
		t->attempt = request_number(t->request, "attempt", newest > 0 ? newest : 1);
	*ret = find_attempt(&l->attempts, t->attempt);
	if (!*ret && request_query(t->request, "attempt") && (final || t->attempt > newest + 1))
		return err_set(e, ERR_NOT_FOUND, "run %" PRId64 " has no attempt %" PRId64, t->run,
			t->attempt);
	t->over = *ret ? (*ret)->outcome != ATTEMPT_RUNNING : final;
	return true;
}

/* ---- the bytes ---- */

static bool open_output_file(struct output_stream *t)
{
	if (t->fd < 0)
		t->fd = output_file_open(t->request->context->output_dir, t->run, t->attempt);
	return t->fd >= 0;
}

static ssize_t read_stored_tail(struct output_stream *t, char *out, size_t max)
{
	int64_t at = t->offset > t->stored_from ? t->offset - t->stored_from : 0,
		n = t->stored_len - at;

	if (n <= 0)
		return 0;
	if (n > (int64_t)max)
		n = (int64_t)max;
	memcpy(out, t->stored + at, (size_t)n);
	t->offset = t->stored_from + at + n;
	return (ssize_t)n;
}

static ssize_t read_piece(struct output_stream *t, char *out, size_t max)
{
	struct err e = {};
	size_t n = 0;

	if (max > PIECE_MAX)
		max = PIECE_MAX;
	if (t->end >= 0 && (int64_t)max > t->end - t->offset)
		max = t->end > t->offset ? (size_t)(t->end - t->offset) : 0;
	if (max > 0 && t->stored)
		return read_stored_tail(t, out, max);
	if (max == 0 || !open_output_file(t))
		return 0;
	if (!output_file_read(t->fd, t->offset, out, max, &t->offset, &n, &e)) {
		log_warning("could not read the output of run %" PRId64 ": %s", t->run, e.msg);
		return STREAM_BROKEN;
	}
	t->offset += (int64_t)n;
	return (ssize_t)n;
}

/* The file, or the directory until the file exists, wakes the request from now on. */
static bool watch_output_file(struct output_stream *t)
{
	struct err e = {};
	struct output_watch *w = request_outputs(t->request, &e);

	t->follower.run = t->run;
	t->follower.attempt = t->attempt;
	if (w && output_watch_follow(w, &t->follower, t->fd, &e)) {
		t->watches_file = t->fd >= 0;
		return true;
	}
	log_warning("run %" PRId64 " cannot be followed: %s", t->run, e.msg);
	return false;
}

static ssize_t read_relay(struct output_stream *t, char *out, size_t max)
{
	size_t n;

	if (t->relay_left == 0)
		return STREAM_END;
	if (t->relay_left < (int64_t)max)
		max = (size_t)t->relay_left;
	n = output_relay_read(t->relay, out, max);
	t->relay_left -= (int64_t)n;
	if (n > 0 || output_relay_state(t->relay) == RELAY_ASKED ||
		output_relay_state(t->relay) == RELAY_FLOWS)
		return (ssize_t)n;
	if (output_relay_state(t->relay) == RELAY_DONE)
		return STREAM_END;
	log_info("the output of run %" PRId64 " is incomplete: %s", t->run,
		output_relay_error(t->relay)->msg);
	return STREAM_BROKEN;
}

/* Another daemon instance of this node ran the attempt, so the file is on this node. */
static void read_here(struct output_stream *t)
{
	output_relay_free(STEAL(t->relay));
	t->local = true;
}

static ssize_t output_read_bytes(struct output_stream *t, char *out, size_t max)
{
	if (t->relay && output_relay_state(t->relay) == RELAY_HERE)
		read_here(t);
	if (t->relay)
		return read_relay(t, out, max);
	/* read once more after the watch is set, for output written in between */
	for (;;) {
		ssize_t n = read_piece(t, out, max);

		if (n != 0)
			return n;
		if (t->over || t->end >= 0)
			return STREAM_END;
		if (t->follower.watch && t->watches_file == (t->fd >= 0))
			return 0;
		if (!watch_output_file(t))
			return STREAM_BROKEN;
	}
}

/* ---- server-sent events ---- */

#define SSE_PIECE (16 * 1024)

static void write_output_message(struct output_stream *t, const char *data, size_t len)
{
	bool last = len == 0;
	AUTO_DONE(buf) text = {}, whole = {};
	int64_t from = t->sse_offset - (int64_t)(len + t->sse_carried);
	size_t left;

	buf_add(&whole, t->sse_carry, t->sse_carried);
	buf_add(&whole, data, len);
	buf_printf(&text, "{\"offset\":%" PRId64 ",\"text\":", from);
	left = sse_write_text(&text, whole.data ? whole.data : "", whole.len, last);
	buf_char(&text, '}');
	memcpy(t->sse_carry, whole.len ? whole.data + whole.len - left : "", left);
	t->sse_carried = left;
	if (whole.len > left)
		sse_write(&t->sse_out, t->sse_offset - (int64_t)left, "output", text.data);
}

/* Fills sse_out. Returns 0 or a STREAM_ code of the output. */
static ssize_t fill_messages(struct output_stream *t)
{
	char piece[SSE_PIECE];
	int64_t before = t->offset;
	ssize_t n = output_read_bytes(t, piece, sizeof(piece));

	if (n > 0) {
		/* the offset of a local file also steps over a part that was dropped */
		t->sse_offset = t->offset != before ? t->offset : t->sse_offset + n;
		write_output_message(t, piece, (size_t)n);
	}
	if (n != STREAM_END)
		return n < 0 ? n : 0;
	write_output_message(t, NULL, 0);
	sse_write(&t->sse_out, t->sse_offset, "end", "{}");
	t->sse_ended = true;
	return 0;
}

static ssize_t read_messages(struct stream *s, char *out, size_t max)
{
	struct output_stream *t = (struct output_stream *)s;
	size_t n = t->sse_out.len - t->sse_sent;

	if (n == 0 && t->sse_ended)
		return STREAM_END;
	if (n == 0) {
		ssize_t r;

		buf_clear(&t->sse_out);
		t->sse_sent = 0;
		r = fill_messages(t);
		n = t->sse_out.len;
		if (n == 0)
			return r < 0 ? r : sse_beat_read(&t->beat, out, max);
	}
	if (n > max)
		n = max;
	memcpy(out, t->sse_out.data + t->sse_sent, n);
	t->sse_sent += n;
	return (ssize_t)n;
}

static ssize_t output_stream_read(struct stream *s, char *out, size_t max)
{
	return output_read_bytes((struct output_stream *)s, out, max);
}

/* The position of a client that connects again. */
static int64_t output_from(const struct output_stream *t)
{
	return t->sse && t->sse_offset > 0 ? t->sse_offset : request_number(t->request, "from", 0);
}

/* ---- changes of the run ---- */

static void on_output_file_changed(struct output_follower *f)
{
	struct output_stream *t =
		(struct output_stream *)((char *)f - offsetof(struct output_stream, follower));

	request_wake(t->request);
}

static void on_run_read(struct request *r, struct store_read *q);

static void on_output_run_moved(int64_t job, int64_t run, enum run_state state, void *arg)
{
	struct output_stream *t = arg;

	(void)job;
	if ((run != t->run && run != 0) || state == RUN_CLAIMED || state == RUN_RUNNING ||
		(t->request->answered && !t->request->stream))
		return;
	if (t->request->ticket)
		t->again = true;
	else
		run_wait_read_start(t->request, t->run, on_run_read);
}

/* ---- response ---- */

/*
 * The counts recorded at the end are more accurate than the file, except for a lost attempt, which
 * has none.
 */
static void apply_end_counts(const struct output_stream *t, const struct attempt *a,
	struct output_file_extent *at)
{
	if (!a || !t->over || a->output_bytes < at->total)
		return;
	at->total = a->output_bytes;
	at->gap_to = at->gap_from + a->output_dropped;
}

static bool locate_relayed(const struct output_stream *t, const struct attempt *a,
	struct output_file_extent *ret, struct err *e)
{
	int64_t dropped;

	*ret = (struct output_file_extent){};
	output_relay_size(t->relay, &ret->total, &dropped);
	ret->gap_to = dropped;
	if (a && t->over && ret->total == 0 && a->output_bytes > a->output_dropped)
		return err_set(e, ERR_NOT_FOUND, "the output of run %" PRId64 " is no longer kept",
			t->run);
	apply_end_counts(t, a, ret);
	return true;
}

static bool locate(struct output_stream *t, const struct attempt *a, struct output_file_extent *ret,
	struct err *e)
{
	*ret = (struct output_file_extent){};
	if (!open_output_file(t)) {
		if (t->fd != -ENOENT)
			return err_errno(e, -t->fd, "could not open the output of run %" PRId64,
				t->run);
		if (a && t->over && a->output_bytes > a->output_dropped && !t->stored &&
			!t->missing.kind)
			return err_set(e, ERR_NOT_FOUND,
				"the output of run %" PRId64 " is no longer kept", t->run);
	} else if (!output_file_stat(t->fd, ret, e)) {
		return false;
	}
	apply_end_counts(t, a, ret);
	if (t->stored && t->missing.kind) { /* the part before it is on the node of the attempt */
		ret->gap_from = 0;
		ret->gap_to = t->stored_from;
	}
	return true;
}

/* Describes what is missing and why. */
static const char *make_note(const struct output_stream *t, struct buf *out)
{
	AUTO_DONE(buf) words = {};

	if (!t->missing.kind)
		return NULL;
	buf_printf(&words, "%s: %s", t->stored ? "only the end is shown" : "nothing more is shown",
		t->missing.msg);
	text_escape(out, words.data, words.len);
	return out->data;
}

/*
 * The offset after the last byte of the response. Bytes that are not kept do not count towards
 * 'length'.
 */
static int64_t limit_end(const struct request *r, int64_t from, const struct output_file_extent *at)
{
	int64_t length = request_number(r, "length", INT64_MAX), end;

	if (from >= at->total || length > at->total - from)
		return at->total;
	end = from + length;
	return from < at->gap_from && end > at->gap_from ? at->gap_from : end;
}

static void start_output_stream(struct request *r, struct output_stream *t, const struct attempt *a)
{
	int64_t tail = request_number(r, "tail", -1);
	struct output_file_extent at;
	struct err e = {};
	char total[24], dropped[24], attempt[24], gap[24];
	AUTO_DONE(buf) note = {};
	/* the last ones are sent only if they mean something */
	struct stream_header headers[5] = {
		{ "X-Jobsched-Output-Bytes", total },
		{ "X-Jobsched-Output-Dropped", dropped },
		{ "X-Jobsched-Attempt", attempt },
	};
	size_t n = 3;

	if (!(t->relay ? locate_relayed(t, a, &at, &e) : locate(t, a, &at, &e))) {
		output_relay_free(STEAL(t->relay));
		request_answer_err(r, &e);
		return;
	}
	t->offset = output_from(t);
	if (tail >= 0 && at.total - tail > t->offset)
		t->offset = at.total - tail;
	if (t->offset >= at.gap_from && t->offset < at.gap_to && !t->relay)
		t->offset = at.gap_to;
	t->end = request_number(r, "follow", 0) ? -1 : limit_end(r, t->offset, &at);
	snprintf(gap, sizeof(gap), "%" PRId64, at.gap_from);
	snprintf(total, sizeof(total), "%" PRId64, at.total);
	snprintf(dropped, sizeof(dropped), "%" PRId64, at.gap_to - at.gap_from);
	snprintf(attempt, sizeof(attempt), "%" PRId64, t->attempt);
	t->stream = (struct stream){
		.read = t->sse ? read_messages : output_stream_read, .free = output_stream_free};
	r->data = NULL;
	r->data_free = NULL;
	if (t->sse) {
		t->sse_offset = t->offset;
		buf_str(&t->sse_out, SSE_START);
		sse_beat_start(&t->beat, r);
	}
	if (at.gap_to > at.gap_from && !t->relay)
		headers[n++] = (struct stream_header){ "X-Jobsched-Output-Gap", gap };
	if (t->missing.kind)
		headers[n++] = (struct stream_header){ "X-Jobsched-Output-Note", make_note(t, &note) };
	request_answer_stream(r, t->sse ? SSE_TYPE : "application/octet-stream", headers, n,
		&t->stream);
}

/* ---- output on another node; the store has the end of it after the attempt ---- */

static const struct attempt *seen(const struct output_stream *t)
{
	return t->seen.number ? &t->seen : NULL;
}

/*
 * The other node does not send the output: responds with the part in the store, or with the error.
 */
static void answer_without_relay(struct request *r, struct output_stream *t)
{
	t->missing = *output_relay_error(t->relay);
	output_relay_free(STEAL(t->relay));
	if (t->stored || (t->over && request_number(r, "follow", 0)))
		start_output_stream(r, t, seen(t));
	else
		request_answer_err(r, &t->missing);
}

static void take_first(struct request *r, struct output_stream *t)
{
	int64_t total, dropped;

	output_relay_size(t->relay, &total, &dropped);
	if (t->stored && total == 0) {
		err_set(&t->missing, ERR_NOT_FOUND,
			"the rest of the output of run %" PRId64 " is no longer kept", t->run);
		output_relay_free(STEAL(t->relay));
	} else {
		free(STEAL(t->stored));
	}
	start_output_stream(r, t, seen(t));
}

static void on_relay(void *arg)
{
	struct output_stream *t = arg;
	struct request *r = t->request;

	if (r->gone || r->answered) {
		request_wake(r);
		return;
	}
	switch (output_relay_state(t->relay)) {
	case RELAY_ASKED:
		break;
	case RELAY_LOST:
		answer_without_relay(r, t);
		break;
	case RELAY_HERE:
		read_here(t);
		start_output_stream(r, t, seen(t));
		break;
	default:
		take_first(r, t);
	}
}

static bool ran_elsewhere(const struct request *r, struct output_stream *t, const struct attempt *a)
{
	return a && r->context->relays && !t->local && !t->stored && a->node &&
	       !text_equal(a->node, r->context->node_id) && !open_output_file(t) &&
	       t->fd == -ENOENT;
}

/* The counts of a lost attempt are not known. */
static bool wrote_nothing(const struct output_stream *t, const struct attempt *a)
{
	return t->over && a->output_bytes == 0 && a->outcome != ATTEMPT_LOST;
}

static void ask_node(struct request *r, struct output_stream *t, const char *ran_on)
{
	/* the stream has sent nothing yet, because the file would be on this node */
	t->relay = output_relay_open(r->context->relays,
		&(struct output_relay_request){.run = t->run,
			.attempt = t->attempt,
			.ran_on = ran_on,
			.from = output_from(t),
			.tail = request_number(r, "tail", -1),
			.follow = !t->over && request_number(r, "follow", 0)},
		on_relay, t);
	if (output_relay_state(t->relay) == RELAY_LOST)
		on_relay(t);
	else if (!r->stream)
		request_watch_client(r);
}

struct stored_query {
	struct store_read q;
	int64_t run, fence;
	char *ran_on;      /* owned */
	char *tail;        /* owned, base64 */
	bool here;         /* no other node can have the output */
};

static bool read_stored_tail_row(struct store *s, struct store_read *q, struct err *e)
{
	struct stored_query *h = (struct stored_query *)q;

	return store_output_tail(s, h->run, h->fence, &h->tail, e);
}

static void free_stored_query(struct store_read *q)
{
	struct stored_query *h = (struct stored_query *)q;

	free(h->ran_on);
	free(h->tail);
	free(h);
}

/* Whether the part in the store covers the request. */
static bool stored_tail_suffices(const struct request *r, const struct output_stream *t)
{
	int64_t from = request_number(r, "from", 0), tail = request_number(r, "tail", -1);

	if (tail >= 0 && t->seen.output_bytes - tail > from)
		from = t->seen.output_bytes - tail;
	return t->stored && from >= t->stored_from;
}

static void on_stored_tail_read(struct request *r, struct store_read *q)
{
	const struct stored_query *h = (const struct stored_query *)q;
	struct output_stream *t = r->data;
	AUTO_DONE(buf) bytes = {};

	if (h->tail && buf_base64_decode(h->tail, strlen(h->tail), &bytes)) {
		t->stored_len = (int64_t)bytes.len;
		t->stored = buf_steal(&bytes);
		t->stored_from = t->seen.output_bytes - t->stored_len;
	}
	if (wrote_nothing(t, &t->seen) || stored_tail_suffices(r, t) || h->here)
		start_output_stream(r, t, &t->seen);
	else
		ask_node(r, t, h->ran_on);
}

/* The response to a call is in the store only. */
static bool may_be_stored(struct output_stream *t, const struct attempt *a)
{
	return a && t->over && !t->stored && a->output_bytes > a->output_dropped && !open_output_file(t) &&
	       t->fd == -ENOENT;
}

static void ask_store(struct request *r, struct output_stream *t, const struct attempt *a)
{
	struct stored_query *h = xcalloc(1, sizeof(*h));

	h->run = t->run;
	h->fence = a->fence;
	h->ran_on = xstrdup(a->node);
	h->here = !ran_elsewhere(r, t, a);
	h->q.run = read_stored_tail_row;
	h->q.then = on_stored_tail_read;
	h->q.free = free_stored_query;
	store_read_start(r, &h->q);
}

/* ---- source of the output ---- */

static void remember(struct output_stream *t, const struct attempt *a)
{
	if (a)
		t->seen = (struct attempt){.run = a->run,
			.number = a->number,
			.fence = a->fence,
			.outcome = a->outcome,
			.output_bytes = a->output_bytes,
			.output_dropped = a->output_dropped};
}

static void continue_answer(struct request *r, struct output_stream *t, const struct attempt *a)
{
	if (t->relay && t->over)
		output_relay_unfollow(t->relay);
	else if (!t->relay && r->stream && ran_elsewhere(r, t, a) && !wrote_nothing(t, a))
		ask_node(r, t, a->node);
	else if (!t->relay && !r->stream && ran_elsewhere(r, t, a) && t->over)
		ask_store(r, t, a);
	else if (!t->relay && !r->stream && ran_elsewhere(r, t, a))
		ask_node(r, t, a->node);
	else if (!t->relay && !r->stream && may_be_stored(t, a))
		ask_store(r, t, a);
	else if (!t->relay && !r->stream)
		start_output_stream(r, t, a);
	if (r->stream)
		request_wake(r);
}

static void on_run_read(struct request *r, struct store_read *q)
{
	struct output_stream *t = r->stream ? (struct output_stream *)r->stream : r->data;
	const struct run_wait_read *l = (const struct run_wait_read *)q;
	const struct attempt *a = NULL;
	struct err e = {};

	if (!choose_attempt(t, l, &a, &e)) {
		request_answer_err(r, &e);
		return;
	}
	remember(t, a);
	if (!t->watch && !t->over && request_number(r, "follow", 0)) {
		/* read the run again, because it may have changed before the watch was set */
		t->watch = run_watch_new(r->context->run_watch_set, l->run->job, 0,
			on_output_run_moved, t);
		t->again = true;
	}
	if (t->again) {
		t->again = false;
		run_wait_read_start(r, t->run, on_run_read);
	} else {
		continue_answer(r, t, a);
	}
}

void route_run_output(struct request *r)
{
	struct err e = {};
	struct output_stream *t;
	int64_t run, last = 0;

	if (!store_read_run_id(r->params[0], &run, &e) || !sse_last_id(r, 0, &last, NULL, &e)) {
		request_answer_err(r, &e);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	t->request = r;
	t->run = run;
	t->fd = -1;
	t->sse = sse_wanted(r);
	t->sse_offset = last;
	t->follower.on_change = on_output_file_changed;
	t->relay_left = request_number(r, "follow", 0) ? INT64_MAX : request_number(r, "length", INT64_MAX);
	r->data = t;
	r->data_free = output_stream_done;
	run_wait_read_start(r, run, on_run_read);
}
