/* SPDX-License-Identifier: Apache-2.0 */
/* Route that lists earlier definitions of a job. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/store_read.h"
#include "store/read/revisions.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <inttypes.h>
#include <string.h>

struct revisions_query {
	struct store_read q;
	char *ref;      /* owned */
	int64_t only;   /* only this revision; 0: all */
	int64_t before; /* cursor; 0: start with the newest */
	size_t limit;
};

static void free_revisions_query(struct store_read *q)
{
	free(((struct revisions_query *)q)->ref);
	free(q);
}

/* The definition as members of a submission, or the error if it cannot be parsed. */
static json_t *definition(const char *text)
{
	struct err e = {};
	json_t *o = json_read(text, strlen(text), strlen(text), &e);

	return o ? o : json_pack("{s:o}", "error", json_value_text(e.msg));
}

static json_t *revision_to_json(const struct revision *r)
{
	return json_pack("{s:I, s:o, s:I, s:o, s:o, s:o, s:o}", "revision", (json_int_t)r->number,
		"at", json_value_time(r->at), "uid", (json_int_t)owner_uid(r->uid), "by",
		json_value_text(r->who), "what", json_value_text(r->what), "undo_to",
		r->origin ? json_integer(r->origin) : json_null(), "definition",
		definition(r->spec));
}

static bool run_revisions(struct store *s, struct store_read *q, struct err *e)
{
	struct revisions_query *rq = (struct revisions_query *)q;
	AUTO_DONE(revision_list) l = {};
	AUTO(job) *j = NULL;
	size_t n;

	if (!store_read_job(s, q->scope, rq->ref, &j, e) ||
		!revisions_page(s, j, rq->only ? rq->only + 1 : rq->before,
			rq->only ? 1 : rq->limit + 1, &l, e))
		return false;
	if (rq->only && (l.n == 0 || l.v[0].number != rq->only))
		return err_set(e, ERR_NOT_FOUND,
			"job %" PRId64 " has no revision %" PRId64 "; see 'jobctl history %" PRId64
			"'",
			j->id, rq->only, j->id);
	n = l.n > rq->limit && !rq->only ? rq->limit : l.n;
	buf_str(&q->out, "{\"revisions\":[");
	for (size_t i = 0; i < n; i++) {
		json_t *o = revision_to_json(&l.v[i]);

		buf_str(&q->out, i ? "," : "");
		json_value_write(o, &q->out);
		json_decref(o);
	}
	if (n < l.n || l.more)
		buf_printf(&q->out, "],\"next_cursor\":\"%" PRId64 "\"}\n", l.v[n - 1].number);
	else
		buf_str(&q->out, "],\"next_cursor\":null}\n");
	return true;
}

void route_job_revisions(struct request *r)
{
	struct revisions_query *rq = xcalloc(1, sizeof(*rq));

	rq->ref = xstrdup(r->params[0]);
	rq->only = request_number(r, "revision", 0);
	rq->before = request_number(r, "cursor", 0);
	rq->limit = (size_t)request_number(r, "limit", 100);
	rq->q.run = run_revisions;
	rq->q.free = free_revisions_query;
	store_read_start(r, &rq->q);
}
