/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read the archive. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/archive/archive_local.h"
#include "daemon/archive/archive_names.h"
#include "daemon/archive/archive_search.h"
#include <string.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 200
#define PART (1 << 20)

static bool has_archive(struct request *r)
{
	struct err e = {};

	if (r->context->archive)
		return true;
	err_set(&e, ERR_NOT_FOUND, "there is no archive; 'archive' in jobschedd.conf(5) names one");
	request_answer_err(r, &e);
	return false;
}

/* ---- list ---- */

static void write_page(struct buf *out, const struct archive_page *p)
{
	buf_str(out, "{\"runs\":[");
	buf_add(out, p->runs.data ? p->runs.data : "", p->runs.len);
	buf_str(out, "],\"next_cursor\":");
	buf_json_str(out, p->next);
	buf_str(out, "}\n");
}

static bool read_archive_query(const struct request *r, struct archive_query *q, struct err *e)
{
	const char *job = request_text(r, "job"), *owner = request_text(r, "owner"), *cursor = request_text(r, "cursor");
	AUTO_DONE(buf) name = {};
	AUTO_DONE(buf) user = {};
	struct archive_run_name parsed;

	if (cursor && r->context->s3 && !archive_name_parse(cursor, &parsed))
		return err_field(e, "cursor", "'cursor' is not the next_cursor of an earlier step");
	*q = (struct archive_query){.scope = request_scope(r),
		.run = request_number(r, "run", 0),
		.states = (unsigned)request_number(r, "state", 0),
		.since = request_number(r, "since", 0),
		.until = request_number(r, "until", 0),
		.limit = (size_t)request_number(r, "limit", LIMIT_DEFAULT),
		.cursor = xstrdup(cursor)};
	if (q->limit > LIMIT_MAX)
		q->limit = LIMIT_MAX;
	if (job && !text_parse_int(job, 1, INT64_MAX, &q->job)) {
		archive_name_encode(&name, job, true);
		q->job_name = buf_steal(&name);
	}
	if (owner) {
		archive_name_encode(&user, owner, false);
		q->user = buf_steal(&user);
	}
	return true;
}

static void on_archive_page(const struct archive_page *p, const struct err *e, void *arg)
{
	struct request *r = request_ticket_redeem(arg);
	AUTO_DONE(buf) out = {};

	if (!r)
		return;
	if (e) {
		request_answer_err(r, e);
		return;
	}
	write_page(&out, p);
	request_answer_text(r, 200, &out);
}

struct local_read {
	struct store_read q;
	char *dir;    /* owned */
	struct archive_query query;
	char *name;   /* owned; of a run whose output is read */
	int64_t attempt, from, length;
};

static void free_local_read(struct store_read *q)
{
	struct local_read *l = (struct local_read *)q;

	archive_query_done(&l->query);
	free(l->dir);
	free(l->name);
	free(l);
}

static bool run_local_search(struct store *s, struct store_read *q, struct err *e)
{
	struct local_read *l = (struct local_read *)q;
	AUTO_DONE(archive_page) page = {};

	(void)s;
	if (!archive_local_search(l->dir, &l->query, &page, e))
		return false;
	write_page(&q->out, &page);
	return true;
}

void route_archive_list(struct request *r)
{
	struct archive_query query = {};
	struct local_read *l;
	struct err e = {};

	if (!has_archive(r))
		return;
	if (!read_archive_query(r, &query, &e)) {
		request_answer_err(r, &e);
		return;
	}
	if (r->context->s3) {
		archive_search_start(r->context->s3, &query, on_archive_page, request_ticket(r, false));
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->dir = xstrdup(r->context->archive);
	l->query = query;
	l->q.run = run_local_search;
	l->q.free = free_local_read;
	store_read_start_long(r, &l->q);
}

/* ---- output ---- */

static bool run_local_output(struct store *s, struct store_read *q, struct err *e)
{
	struct local_read *l = (struct local_read *)q;

	(void)s;
	return archive_local_output(l->dir,
		&(struct archive_read_request){.name = l->name, .scope = q->scope, .attempt = l->attempt, .from = l->from,
			.length = l->length},
		&q->out, e);
}

static void answer_local_output(struct request *r, struct store_read *q)
{
	request_answer_typed(r, "application/octet-stream", &q->out);
}

static void on_archive_output(const char *data, size_t len, const struct err *e, void *arg)
{
	struct request *r = request_ticket_redeem(arg);
	AUTO_DONE(buf) out = {};

	if (!r)
		return;
	if (e) {
		request_answer_err(r, e);
		return;
	}
	buf_add(&out, data ? data : "", len);
	request_answer_typed(r, "application/octet-stream", &out);
}

void route_archive_output(struct request *r)
{
	const struct archive_read_request o = {.name = request_text(r, "name"),
		.scope = request_scope(r),
		.attempt = request_number(r, "attempt", 0),
		.from = request_number(r, "from", 0),
		.length = request_number(r, "length", PART)};
	struct archive_run_name parsed;
	struct local_read *l;
	struct err e = {};

	if (!has_archive(r))
		return;
	if (!o.name || (r->context->s3 && !archive_name_parse(o.name, &parsed))) {
		err_field(&e, "name", "'name' must be 'archived_as' of an archived run");
		request_answer_err(r, &e);
		return;
	}
	if (r->context->s3) {
		archive_read_output(r->context->s3, &o, on_archive_output, request_ticket(r, false));
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->dir = xstrdup(r->context->archive);
	l->name = xstrdup(o.name);
	l->attempt = o.attempt;
	l->from = o.from;
	l->length = o.length;
	l->q.run = run_local_output;
	l->q.then = answer_local_output;
	l->q.free = free_local_read;
	store_read_start_long(r, &l->q);
}
