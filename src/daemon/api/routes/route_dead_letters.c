/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that retry or purge dead letters. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/run_watch.h"
#include "store/ops/op.h"
#include "store/ops/run/dead_letters.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <inttypes.h>
#include <string.h>

#define STEP 500 /* dead letters per response */

/* Used after the commit, when the request may have ended. */
struct dead_ctx {
	struct ticket *ticket;
	struct run_watch_set *run_watch_set;
};

static void answer_dead(struct request *r, const struct op_dead *d)
{
	AUTO_TEXT cursor = NULL;

	if (d->id) {
		request_answer_json(r, 200, row_json_run(d->runs.v[0]));
		return;
	}
	if (d->more)
		cursor = xprintf("%" PRId64 "-%" PRId64, d->next_at, d->next);
	request_answer_json(r, 200,
		json_pack("{s:I, s:I, s:o, s:o}", "count", (json_int_t)d->runs.n, "refused",
			(json_int_t)d->refused, "refused_because",
			json_value_text(d->refused ? d->why.msg : NULL), "next_cursor",
			json_value_text(cursor)));
}

static void on_dead_changed(struct op *op, void *arg)
{
	struct dead_ctx *o = arg;
	const struct op_dead *d = dead_letters_op(op);
	struct request *r = request_ticket_redeem(o->ticket);

	for (size_t i = 0; op->ok && i < d->runs.n; i++)
		run_watch_notify(o->run_watch_set, d->runs.v[i]->job, d->runs.v[i]->id,
			d->runs.v[i]->state);
	if (r && op->ok)
		answer_dead(r, d);
	else if (r)
		request_answer_err(r, &op->err);
	free(o);
	op_free(op);
}

static void submit_dead(struct request *r, const struct op_dead *d)
{
	struct dead_ctx *o = xcalloc(1, sizeof(*o));
	struct op *op = op_new(r->route->what == EVENT_DEAD_RETRY ? OP_DEAD_RETRY : OP_DEAD_PURGE,
		on_dead_changed, o);

	*o = (struct dead_ctx){
		.ticket = request_ticket(r, true), .run_watch_set = r->context->run_watch_set};
	op_copy(dead_letters_op(op), *d);
	dead_letters_op(op)->uid = request_scope(r);
	dead_letters_op(op)->now = request_now(r);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

/* ---- one ---- */

void route_dead_one(struct request *r)
{
	struct op_dead d = {};
	struct err e = {};

	if (store_read_run_id(r->params[0], &d.id, &e))
		submit_dead(r, &d);
	else
		request_answer_err(r, &e);
}

/* ---- many ---- */

/* Looks up the job first. */
struct dead_query {
	struct store_read q;
	char *job; /* owned */
	struct op_dead dead;
};

static bool find_dead_job(struct store *s, struct store_read *q, struct err *e)
{
	struct dead_query *dq = (struct dead_query *)q;
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, dq->job, &j, e))
		return false;
	dq->dead.job = j->id;
	return true;
}

static void on_dead_job_found(struct request *r, struct store_read *q)
{
	submit_dead(r, &((struct dead_query *)q)->dead);
}

static void free_dead_query(struct store_read *q)
{
	struct dead_query *dq = (struct dead_query *)q;

	free(dq->job);
	free(dq);
}

/* The position where the previous step ended: a time and a run. */
static bool read_cursor(const char *text, struct op_dead *d, struct err *e)
{
	const char *dash = text ? strchr(text, '-') : NULL;
	AUTO_TEXT at = dash ? xstrndup(text, (size_t)(dash - text)) : NULL;

	if (!text || (dash && text_parse_int(at, 1, INT64_MAX, &d->after_at) &&
			     text_parse_int(dash + 1, 1, INT64_MAX, &d->after)))
		return true;
	return err_field(e, "cursor", "'%.40s' is not the cursor of an earlier step", text);
}

void route_dead_many(struct request *r)
{
	const char *job = request_text(r, "job");
	struct op_dead d = {
		.since = request_number(r, "since", 0),
		.until = request_number(r, "until", 0),
		.limit = (size_t)request_number(r, "limit", STEP),
	};
	struct dead_query *dq;
	struct err e = {};

	if (!read_cursor(request_text(r, "cursor"), &d, &e)) {
		request_answer_err(r, &e);
		return;
	}
	/* a run that fails again during the steps is not selected again */
	if (!d.until)
		d.until = request_now(r) + 1;
	if (!job) {
		submit_dead(r, &d);
		return;
	}
	dq = xcalloc(1, sizeof(*dq));
	*dq = (struct dead_query){
		.q = {.run = find_dead_job, .then = on_dead_job_found, .free = free_dead_query},
		.job = xstrdup(job),
		.dead = d};
	store_read_start(r, &dq->q);
}
