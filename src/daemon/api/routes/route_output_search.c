/* SPDX-License-Identifier: Apache-2.0 */
/* Route that searches the output of a run for a text, in steps of bounded size. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/run.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "exec/proto/output_file.h"
#include "store/lists.h"
#include "store/read/single.h"
#include "store/store.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define STEP_BYTES (16 * 1024 * 1024) /* examined per request */
#define PIECE (256 * 1024)
#define TEXT_MAX 256

struct search_query {
	struct store_read q;
	int64_t run, attempt;  /* attempt 0: the newest */
	int64_t from;          /* offset of the next byte to examine */
	char *text;            /* owned */
	size_t text_len, limit;
	int output_dir;
	size_t found;
};

static void free_search(struct store_read *q)
{
	free(((struct search_query *)q)->text);
	free(q);
}

static void write_match(struct search_query *f, int64_t at)
{
	buf_printf(&f->q.out, "%s%" PRId64, f->found++ ? "," : "", at);
}

/*
 * Examines a piece whose first byte has the offset 'at'. Returns the number of bytes that need not be
 * read again: a match may begin in the last bytes of the piece.
 */
static size_t search_piece(struct search_query *f, const char *piece, size_t len, int64_t at, bool last)
{
	size_t done = 0;
	const char *hit;

	while (f->found < f->limit && (hit = memmem(piece + done, len - done, f->text, f->text_len))) {
		write_match(f, at + (hit - piece));
		done = (size_t)(hit - piece) + f->text_len;
	}
	if (f->found == f->limit || last || len < f->text_len)
		return f->found == f->limit ? done : len;
	return done > len - f->text_len + 1 ? done : len - f->text_len + 1;
}

static bool search_file(struct search_query *f, int fd, bool *ret_end, struct err *e)
{
	char *piece = xcalloc(1, PIECE);
	int64_t stop = f->from + STEP_BYTES;
	bool ok = true;

	*ret_end = false;
	while (ok && !*ret_end && f->from < stop && f->found < f->limit) {
		int64_t at = f->from;
		size_t n = 0;

		ok = output_file_read(fd, f->from, piece, PIECE, &at, &n, e);
		if (!ok)
			break;
		*ret_end = n == 0;
		/* a short read ends at the gap or at the end of the output */
		f->from = at + (int64_t)search_piece(f, piece, n, at, n < PIECE);
	}
	free(piece);
	return ok;
}

static bool find_attempt(struct store *s, struct search_query *f, struct err *e)
{
	AUTO(run) *run = NULL;

	if (!store_run_get(s, f->q.scope, f->run, &run, e))
		return false;
	if (f->attempt == 0)
		f->attempt = run->attempt > 0 ? run->attempt : 1;
	return true;
}

static bool run_search(struct store *s, struct store_read *q, struct err *e)
{
	struct search_query *f = (struct search_query *)q;
	bool end = true, ok = true;
	int fd;

	if (!find_attempt(s, f, e))
		return false;
	fd = output_file_open(f->output_dir, f->run, f->attempt);
	if (fd < 0)
		return err_set(e, ERR_NOT_FOUND,
			"this node does not keep the output of run %" PRId64 ", attempt %" PRId64
			"; 'jobctl log %" PRId64 "' fetches it from the node that does",
			f->run, f->attempt, f->run);
	buf_str(&q->out, "{\"matches\":[");
	ok = search_file(f, fd, &end, e);
	close(fd);
	if (end)
		buf_str(&q->out, "],\"next_from\":null}\n");
	else
		buf_printf(&q->out, "],\"next_from\":%" PRId64 "}\n", f->from);
	return ok;
}

void route_output_search(struct request *r)
{
	const char *text = request_text(r, "text");
	struct search_query *f;
	struct err e = {};
	int64_t run;

	if (!store_read_run_id(r->params[0], &run, &e)) {
		request_answer_err(r, &e);
		return;
	}
	if (!text || !*text || strlen(text) > TEXT_MAX) {
		err_field(&e, "text", "'text' must have 1 to %d bytes", TEXT_MAX);
		request_answer_err(r, &e);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->run = run;
	f->attempt = request_number(r, "attempt", 0);
	f->from = request_number(r, "from", 0);
	f->text = xstrdup(text);
	f->text_len = strlen(text);
	f->limit = (size_t)request_number(r, "limit", 100);
	f->output_dir = r->context->output_dir;
	f->q.run = run_search;
	f->q.free = free_search;
	store_read_start(r, &f->q);
}
