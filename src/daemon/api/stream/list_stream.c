/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages as fast as the client accepts them. */
#include "daemon/api/stream/list_stream.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/request.h"
#include "daemon/api/store_read.h"
#include <inttypes.h>
#include <string.h>

/* The stream of a response whose list needs more than one step. */
struct list_body {
	struct stream stream;
	struct list_stream *list;   /* owned; NULL while a step is in progress */
	struct buf text;     /* read and not yet sent */
	size_t sent;
};

struct list_query {
	struct store_read q;
	struct list_stream *list;           /* owned */
	/* destination, valid while the request exists; NULL: the first step */
	struct list_body *stream;
};

static bool run_step(struct store *s, struct store_read *q, struct err *e)
{
	struct list_stream *l = ((struct list_query *)q)->list;
	size_t n = 0;
	bool more = false;

	if (!l->begun)
		buf_printf(&q->out, "{\"%s\":[", l->name);
	l->begun = true;
	if (!l->step(s, l, l->left < LIST_STEP ? l->left : LIST_STEP, &q->out, &n, &more, e))
		return false;
	l->left -= n;
	l->ended = !more || l->left == 0;
	if (l->ended && more && l->place)
		buf_printf(&q->out, "],\"next_cursor\":\"%s\"}\n", l->place);
	else if (l->ended && more)
		buf_printf(&q->out, "],\"next_cursor\":\"%" PRId64 "\"}\n", l->cursor);
	else if (l->ended)
		buf_str(&q->out, "],\"next_cursor\":null}\n");
	else
		q->reserve = LIST_BYTES;
	return true;
}

static void free_list_query(struct store_read *q)
{
	struct list_query *lq = (struct list_query *)q;

	if (lq->list)
		lq->list->free(lq->list);
	free(lq);
}

static void start_step(struct request *r, struct list_stream *l, struct list_body *stream);

/* ---- the stream ---- */

static ssize_t list_body_read(struct stream *s, char *out, size_t max)
{
	struct list_body *ls = (struct list_body *)s;
	size_t n = ls->text.len - ls->sent;

	if (n == 0) {
		if (!ls->list)
			return 0;
		if (ls->list->ended)
			return ls->list->failed ? STREAM_BROKEN : STREAM_END;
		start_step(s->request, STEAL(ls->list), ls);
		return 0;
	}
	if (n > max)
		n = max;
	memcpy(out, ls->text.data + ls->sent, n);
	ls->sent += n;
	return (ssize_t)n;
}

static void list_body_free(struct stream *s)
{
	struct list_body *ls = (struct list_body *)s;

	if (ls->list)
		ls->list->free(ls->list);
	buf_done(&ls->text);
	free(ls);
}

static void list_body_fill(struct list_body *ls, struct list_query *lq)
{
	buf_done(&ls->text);
	ls->text = lq->q.out;
	lq->q.out = (struct buf){};
	ls->sent = 0;
	ls->list = STEAL(lq->list);
}

static void on_later_step(struct request *r, struct store_read *q)
{
	struct list_query *lq = (struct list_query *)q;

	list_body_fill(lq->stream, lq);
	request_wake(r);
}

/* ---- the first step ---- */

static void on_first_step(struct request *r, struct store_read *q)
{
	struct list_query *lq = (struct list_query *)q;
	struct list_body *ls;

	if (lq->list->ended) {
		request_answer_text(r, 200, &q->out);
		return;
	}
	ls = xcalloc(1, sizeof(*ls));
	ls->stream = (struct stream){ .read = list_body_read, .free = list_body_free };
	list_body_fill(ls, lq);
	request_answer_stream(r, "application/json", NULL, 0, &ls->stream);
}

/*
 * The status of the response has been sent, so an error during a later step closes the connection
 * without the end of the body.
 */
static bool run_later_step(struct store *s, struct store_read *q, struct err *e)
{
	struct list_stream *l = ((struct list_query *)q)->list;

	if (!run_step(s, q, e)) {
		buf_clear(&q->out);
		l->ended = l->failed = true;
	}
	return true;
}

static void start_step(struct request *r, struct list_stream *l, struct list_body *stream)
{
	struct list_query *lq = xcalloc(1, sizeof(*lq));

	lq->list = l;
	lq->stream = stream;
	lq->q.run = stream ? run_later_step : run_step;
	lq->q.then = stream ? on_later_step : on_first_step;
	lq->q.free = free_list_query;
	lq->q.task.item.begun = stream != NULL;
	store_read_start(r, &lq->q);
}

void list_stream_answer(struct request *r, struct list_stream *l)
{
	l->scope = request_scope(r);
	start_step(r, l, NULL);
}

void list_stream_comma(struct list_stream *l, struct buf *out)
{
	if (l->rows++ > 0)
		buf_char(out, ',');
}

bool list_stream_cursor(const struct request *r, int64_t *ret, struct err *e)
{
	const char *text = request_text(r, "cursor");

	if (!text || text_parse_int(text, 1, INT64_MAX, ret))
		return true;
	return err_field(e, "cursor", "'cursor' is not the next_cursor of an earlier page");
}
