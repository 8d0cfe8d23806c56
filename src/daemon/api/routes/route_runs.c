/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for runs: list, show, wait, cancel. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/run_wait.h"
#include "daemon/api/routes/why_facts.h"
#include "daemon/api/server.h"
#include "daemon/loop/run_watch.h"
#include "daemon/schedule/dispatcher.h"
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/ops/run/run_cancel.h"
#include "store/read/list/list_runs.h"
#include "store/read/run_progress.h"
#include "store/read/run_results.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>

/* ---- list ---- */

struct run_page {
	struct list_stream list;
	struct run_filter filter;
	struct strv refs;            /* jobs as given in the request, until they are looked up */
	int64_t jobs[RUN_JOBS_MAX];  /* the filter borrows these */
	char *owner, *tag_key, *tag_value, *result_key, *result_value, *queue; /* owned; the filter borrows them */
	struct why_live live;
};

static bool find_run_jobs(struct store *s, struct run_page *p, struct err *e)
{
	for (size_t i = 0; i < p->refs.n; i++) {
		AUTO(job) *j = NULL;

		if (!store_read_job(s, p->list.scope, p->refs.v[i], &j, e))
			return false;
		p->jobs[i] = j->id;
		p->filter.jobs = p->jobs;
		p->filter.jobs_n = i + 1;
	}
	strv_done(&p->refs);
	return true;
}

static bool step_runs(struct store *s, struct list_stream *l, size_t n, struct buf *out,
	size_t *ret_n, bool *ret_more, struct err *e)
{
	struct run_page *p = (struct run_page *)l;
	__attribute__((cleanup(run_list_done))) struct run_list rows = {};

	p->filter.uid = l->scope;
	p->filter.before = l->cursor;
	p->filter.limit = n;
	if (!find_run_jobs(s, p, e) || !list_runs_page(s, &p->filter, &rows, e) ||
	    !why_facts_mark_runs(s, &p->live, rows.v, rows.n, e) ||
	    !run_progress_read(s, rows.v, rows.n, p->live.now, e) || !run_results_read(s, rows.v, rows.n, e))
		return false;
	for (size_t i = 0; i < rows.n; i++) {
		list_stream_comma(l, out);
		store_read_write_run(out, rows.v[i]);
	}
	*ret_n = rows.n;
	*ret_more = rows.next != 0;
	l->cursor = rows.next;
	return true;
}

static void free_run_page(struct list_stream *l)
{
	struct run_page *p = (struct run_page *)l;

	strv_done(&p->refs);
	free(p->owner);
	free(p->tag_key);
	free(p->tag_value);
	free(p->result_key);
	free(p->result_value);
	free(p->queue);
	free(p);
}

/* Splits numbers or names that are separated by commas. */
static bool split_run_jobs(const char *text, struct strv *ret, struct err *e)
{
	for (size_t len; text && *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		if (ret->n == RUN_JOBS_MAX)
			return err_field(e, "job", "at most %d jobs may be given", RUN_JOBS_MAX);
		if (len > 0)
			strv_take(ret, xstrndup(text, len));
	}
	return true;
}

static void split_pair(const char *pair, char **ret_key, char **ret_value)
{
	const char *eq = pair ? strchr(pair, '=') : NULL;

	if (!eq)
		return;
	*ret_key = xstrndup(pair, (size_t)(eq - pair));
	*ret_value = xstrdup(eq + 1);
}

static bool read_run_page(struct request *r, struct run_page *p, struct err *e)
{
	p->owner = xstrdup(request_text(r, "owner"));
	p->queue = xstrdup(request_text(r, "queue"));
	split_pair(request_text(r, "tag"), &p->tag_key, &p->tag_value);
	split_pair(request_text(r, "result"), &p->result_key, &p->result_value);
	return list_stream_cursor(r, &p->list.cursor, e) &&
	       split_run_jobs(request_text(r, "job"), &p->refs, e);
}

static void list_runs(struct request *r, bool dead)
{
	struct run_page *p;
	struct err e = {};

	p = xcalloc(1, sizeof(*p));
	p->list = (struct list_stream){ .name = "runs", .step = step_runs, .free = free_run_page,
		.left = (size_t)request_number(r, "limit", 100) };
	if (!read_run_page(r, p, &e)) {
		request_answer_err(r, &e);
		free_run_page(&p->list);
		return;
	}
	why_facts_live(r, &p->live);
	p->filter = (struct run_filter){
		.owner = p->owner,
		.tag_key = p->tag_key,
		.tag_value = p->tag_value,
		.result_key = p->result_key,
		.result_value = p->result_value,
		.queue = p->queue,
		.due_by = dead || request_number(r, "planned", 1) ? 0 : request_now(r),
		.states = dead ? 0 : (unsigned)request_number(r, "state", 0),
		.slot_since = request_number(r, "since", 0),
		.slot_until = request_number(r, "until", 0),
		.dead = dead,
	};
	list_stream_answer(r, &p->list);
}

void route_run_list(struct request *r)
{
	list_runs(r, false);
}

void route_dead_list(struct request *r)
{
	list_runs(r, true);
}

/* ---- show ---- */

static bool run_id(struct request *r, int64_t *ret)
{
	struct err e = {};

	if (store_read_run_id(r->params[0], ret, &e))
		return true;
	request_answer_err(r, &e);
	return false;
}

void route_run_get(struct request *r)
{
	int64_t id;

	if (!run_id(r, &id))
		return;
	if (request_number(r, "wait", 0) == 0)
		run_wait_read_start(r, id, NULL);
	else
		run_wait_start(r, id);
}

/* ---- attempts ---- */

static void show_attempts(struct request *r, struct store_read *q)
{
	AUTO_DONE(buf) out = {};

	buf_str(&out, "{\"attempts\":");
	run_wait_write_attempts(&out, &((struct run_wait_read *)q)->attempts);
	buf_str(&out, "}\n");
	request_answer_text(r, 200, &out);
}

void route_run_attempts(struct request *r)
{
	int64_t id;

	if (run_id(r, &id))
		run_wait_read_start(r, id, show_attempts);
}

/* ---- cancel ---- */

struct run_cancel_ctx {
	struct ticket *ticket;
	struct dispatcher *dispatcher;
	struct run_watch_set *run_watch_set;
};

static void on_run_cancelled(struct op *op, void *arg)
{
	struct run_cancel_ctx *o = arg;
	const struct op_run_cancel *c = run_cancel_op(op);
	struct request *r = request_ticket_redeem(o->ticket);

	if (op->ok && !c->was_final) {
		if (run_state_final(c->run->state))
			run_watch_notify(o->run_watch_set, c->run->job, c->run->id, c->run->state);
		else
			dispatcher_cancel(o->dispatcher, c->run->id, c->run->fence);
	}
	if (r && op->ok)
		request_answer_json(r, 200, row_json_run(c->run));
	else if (r)
		request_answer_err(r, &op->err);
	free(o);
	op_free(op);
}

void route_run_cancel(struct request *r)
{
	struct run_cancel_ctx *o;
	struct op *op;
	int64_t id;

	if (!run_id(r, &id))
		return;
	o = xcalloc(1, sizeof(*o));
	op = op_new(OP_RUN_CANCEL, on_run_cancelled, o);
	*o = (struct run_cancel_ctx){.ticket = request_ticket(r, true),
		.dispatcher = r->context->dispatcher,
		.run_watch_set = r->context->run_watch_set};
	run_cancel_op(op)->uid = request_scope(r);
	run_cancel_op(op)->id = id;
	run_cancel_op(op)->now = request_now(r);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}
