/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for jobs: list, show, cancel, remove. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/api/routes/job_selection.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/why_facts.h"
#include "daemon/api/server.h"
#include "daemon/crontab/table_origin.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/run_watch.h"
#include "daemon/schedule/dispatcher.h"
#include "store/lists.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/op.h"
#include "store/read/list/list_jobs.h"
#include "store/read/run_durations.h"
#include "store/read/run_progress.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <inttypes.h>
#include <string.h>

/* ---- list ---- */

struct job_page {
	struct list_stream list;
	struct job_selection select;
	struct job_place place;  /* cursor, if the list is sorted */
	struct job_search search;
	struct why_live live;
	bool durations, brief;
};

/* The cursor of a sorted list: a letter for the order, the place, and the name in it. */
static char *place_format(const struct job_filter *f, const struct job_place *p)
{
	return xprintf("%c%d.%" PRId64 ".%" PRId64 ".%" PRId64 ".%s",
		(f->down ? "-NXL" : "-nxl")[f->sort], p->phase, p->key, p->segment, p->tie, p->name);
}

static bool place_parse(const struct job_filter *f, const char *text, struct job_place *ret)
{
	int64_t parts[4];
	size_t len;

	if (*text++ != (f->down ? "-NXL" : "-nxl")[f->sort])
		return false;
	for (int i = 0; i < 4; i++) {
		AUTO_TEXT part = NULL;

		len = strcspn(text, ".");
		if (!text[len])
			return false;
		part = xstrndup(text, len);
		if (!text_parse_int(part, INT64_MIN, INT64_MAX, &parts[i]))
			return false;
		text += len + 1;
	}
	*ret = (struct job_place){
		.phase = (int)parts[0], .key = parts[1], .segment = parts[2], .tie = parts[3]};
	snprintf(ret->name, sizeof(ret->name), "%s", text);
	return list_jobs_place_check(f, ret) && strlen(text) < sizeof(ret->name) &&
	       (!*text || job_name_check(text, NULL));
}

static bool read_order(const struct request *r, struct job_filter *f, struct err *e)
{
	static const char *const sorts[] = {[JOB_SORT_NUMBER] = "created", [JOB_SORT_NAME] = "name",
		[JOB_SORT_NEXT] = "next", [JOB_SORT_LAST] = "last"};
	const char *sort = request_text(r, "sort"), *order = request_text(r, "order");

	while (sort && f->sort < JOB_SORT_MAX && strcmp(sorts[f->sort], sort) != 0)
		f->sort++;
	if (f->sort == JOB_SORT_MAX)
		return err_field(e, "sort", "'%.40s' is not created, name, next or last", sort);
	f->down = order ? strcmp(order, "desc") == 0 : f->sort == JOB_SORT_LAST;
	if (order && !f->down && strcmp(order, "asc") != 0)
		return err_field(e, "order", "'%.40s' is not asc or desc", order);
	return true;
}

static bool read_place(const struct request *r, struct job_page *p, struct err *e)
{
	const char *cursor = request_text(r, "cursor");

	if (p->select.filter.sort == JOB_SORT_NUMBER)
		return list_stream_cursor(r, &p->list.cursor, e);
	if (!cursor || place_parse(&p->select.filter, cursor, &p->place))
		return true;
	return err_field(e, "cursor",
		"'cursor' is not the next_cursor of an earlier page with the same sort and order");
}

/* Sets the reason why each job waits, as far as its row shows. */
static bool mark_jobs(struct store *s, const struct why_live *live, struct job **v, size_t n,
	struct err *e)
{
	AUTO_DONE(why_context) world = {};

	if (!why_context_read(s, &world, e) || !why_waiting_read(s, v, n, e) ||
		!run_progress_read_jobs(s, v, n, live->now, e))
		return false;
	for (size_t i = 0; i < n; i++)
		why_facts_mark_job(&world, live, v[i]);
	return true;
}

static bool read_step(struct store *s, struct job_page *p, struct job_list *ret, struct err *e)
{
	if (p->select.filter.sort == JOB_SORT_NUMBER)
		return list_jobs_numbered(s, &p->select.filter, &p->search, ret, e);
	if (!list_jobs_sorted(s, &p->select.filter, &p->place, &p->search, ret, e))
		return false;
	free(p->list.place);
	p->list.place = place_format(&p->select.filter, &p->place);
	return true;
}

static void write_brief(struct buf *out, const struct job *j)
{
	json_t *o = json_pack("{s:I, s:o, s:o, s:I, s:s}", "id", (json_int_t)j->id, "name",
		json_value_text(j->name), "owner", json_value_text(j->owner), "uid",
		(json_int_t)owner_uid(j->uid), "state", job_state_name(j->state));

	json_value_write(o, out);
	json_decref(o);
}

static bool step_jobs(struct store *s, struct list_stream *l, size_t n, struct buf *out,
	size_t *ret_n, bool *ret_more, struct err *e)
{
	struct job_page *p = (struct job_page *)l;
	__attribute__((cleanup(job_list_done))) struct job_list rows = {};

	p->select.filter.uid = l->scope;
	p->select.filter.after = l->cursor;
	p->select.filter.limit = n;
	p->select.filter.bytes = LIST_BYTES;
	if (!read_step(s, p, &rows, e) || !mark_jobs(s, &p->live, rows.v, rows.n, e) ||
		(p->durations && !run_durations_read(s, rows.v, rows.n, e)))
		return false;
	for (size_t i = 0; i < rows.n; i++) {
		list_stream_comma(l, out);
		if (p->brief)
			write_brief(out, rows.v[i]);
		else
			store_read_write_job(out, rows.v[i]);
	}
	*ret_n = rows.n;
	*ret_more = rows.next != 0;
	l->cursor = rows.next;
	return true;
}

static void free_job_page(struct list_stream *l)
{
	struct job_page *p = (struct job_page *)l;

	job_selection_done(&p->select);
	job_search_done(&p->search);
	free(p->list.place);
	free(p);
}

static bool read_job_page(const struct request *r, struct job_page *p, struct err *e)
{
	p->durations = request_number(r, "durations", 0);
	p->brief = request_number(r, "brief", 0);
	job_selection_read(r, &p->select);
	return read_order(r, &p->select.filter, e) && read_place(r, p, e);
}

void route_job_list(struct request *r)
{
	struct job_page *p = xcalloc(1, sizeof(*p));
	struct err e = {};

	p->list = (struct list_stream){.name = "jobs",
		.step = step_jobs,
		.free = free_job_page,
		.left = (size_t)request_number(r, "limit", 100)};
	why_facts_live(r, &p->live);
	if (!read_job_page(r, p, &e)) {
		request_answer_err(r, &e);
		free_job_page(&p->list);
		return;
	}
	list_stream_answer(r, &p->list);
}

/* ---- show ---- */

struct job_query {
	struct store_read q;
	char *ref;             /* owned */
	int64_t id;            /* result */
	struct why_live live;  /* to show the job */
	/* for a cancellation, shown with the job */
	int64_t queued_cancelled;
	struct buf running;    /* JSON array */
};

static void free_job_query(struct store_read *q)
{
	struct job_query *jq = (struct job_query *)q;

	free(jq->ref);
	buf_done(&jq->running);
	free(jq);
}

static struct job_query *job_query_new(const char *ref,
	bool (*run)(struct store *, struct store_read *, struct err *))
{
	struct job_query *jq = xcalloc(1, sizeof(*jq));

	jq->ref = xstrdup(ref);
	jq->q.run = run;
	jq->q.free = free_job_query;
	return jq;
}

static bool read_job_shown(struct store *s, struct store_read *q, struct err *e)
{
	AUTO(job) *j = NULL;
	json_t *o;

	if (!store_read_job(s, q->scope, ((struct job_query *)q)->ref, &j, e) ||
	    !mark_jobs(s, &((struct job_query *)q)->live, &j, 1, e) ||
	    !run_durations_read(s, &j, 1, e))
		return false;
	o = row_json_job(j, e);
	if (!o)
		return false;
	json_value_write(o, &q->out);
	json_decref(o);
	buf_char(&q->out, '\n');
	return true;
}

void route_job_get(struct request *r)
{
	struct job_query *jq = job_query_new(r->params[0], read_job_shown);

	why_facts_live(r, &jq->live);
	store_read_start(r, &jq->q);
}

/* ---- cancel, remove ---- */

static bool read_cancelled_job(struct store *s, struct store_read *q, struct err *e)
{
	struct job_query *jq = (struct job_query *)q;
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, jq->ref, &j, e))
		return false;
	buf_str(&q->out, "{\"job\":");
	store_read_write_job(&q->out, j);
	buf_printf(&q->out, ",\"queued_cancelled\":%" PRId64 ",\"running\":%s}\n",
		jq->queued_cancelled, jq->running.data);
	return true;
}

/* Used after the commit, when the request may have ended. */
struct job_cancel_ctx {
	struct ticket *ticket;
	struct dispatcher *dispatcher;
	struct run_watch_set *run_watch_set;
};

static void tell_cancelled(const struct op *op, const struct job_cancel_ctx *o)
{
	const struct op_job_cancel *c = job_cancel_op(op);

	/* also for runs that were planned ahead and have been deleted */
	run_watch_notify(o->run_watch_set, c->id, 0, RUN_CANCELLED);
	for (size_t i = 0; c->running && i < c->open.n; i++)
		dispatcher_cancel(o->dispatcher, c->open.v[i]->id, c->open.v[i]->fence);
}

static void on_job_cancelled(struct op *op, void *arg)
{
	struct job_cancel_ctx *o = arg;
	const struct op_job_cancel *c = job_cancel_op(op);
	struct request *r = request_ticket_redeem(o->ticket);
	struct job_query *jq;
	char ref[32];

	if (op->ok)
		tell_cancelled(op, o);
	if (r && !op->ok) {
		request_answer_err(r, &op->err);
	} else if (r) {
		snprintf(ref, sizeof(ref), "%" PRId64, c->id);
		jq = job_query_new(ref, read_cancelled_job);
		jq->queued_cancelled = c->queued_cancelled;
		buf_char(&jq->running, '[');
		for (size_t i = 0; i < c->open.n; i++) {
			if (i > 0)
				buf_char(&jq->running, ',');
			store_read_write_run(&jq->running, c->open.v[i]);
		}
		buf_char(&jq->running, ']');
		store_read_start(r, &jq->q);
	}
	free(o);
	op_free(op);
}

static void submit_cancel(struct request *r, int64_t id)
{
	struct job_cancel_ctx *o = xcalloc(1, sizeof(*o));
	struct op *op = op_new(r->route->verb == VERB_REMOVE ? OP_JOB_REMOVE : OP_JOB_CANCEL,
		on_job_cancelled, o);

	*o = (struct job_cancel_ctx){.ticket = request_ticket(r, true),
		.dispatcher = r->context->dispatcher,
		.run_watch_set = r->context->run_watch_set};
	op_fill(job_cancel_op(op), .uid = request_scope(r),
		.id = id,
		.running = r->data != NULL,
		.now = request_now(r), .origin = table_origin_of);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

static bool find_job_id(struct store *s, struct store_read *q, struct err *e)
{
	struct job_query *jq = (struct job_query *)q;
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, jq->ref, &j, e))
		return false;
	jq->id = j->id;
	return true;
}

static void on_job_found(struct request *r, struct store_read *q)
{
	submit_cancel(r, ((struct job_query *)q)->id);
}

static void start_job_cancel(struct request *r)
{
	struct job_query *jq = job_query_new(r->params[0], find_job_id);

	jq->q.then = on_job_found;
	store_read_start(r, &jq->q);
}

static bool read_running(const struct request *r, bool *ret, struct err *e)
{
	json_t *o;
	json_error_t je;
	int running = 0;
	bool ok;

	if (r->body.len == 0)
		return true;
	o = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	if (!o)
		return false;
	ok = json_unpack_ex(o, &je, JSON_STRICT, "{s?b}", "running", &running) == 0;
	json_decref(o);
	*ret = running;
	return ok ||
	       err_field(e, "running",
		       "the body may be {\"running\":true} or {\"running\":false}: %s", je.text);
}

void route_job_cancel(struct request *r)
{
	static const char yes;
	struct err e = {};
	bool running = false;

	if (!read_running(r, &running, &e)) {
		request_answer_err(r, &e);
		return;
	}
	r->data = running ? (void *)&yes : NULL;
	start_job_cancel(r);
}

void route_job_remove(struct request *r)
{
	start_job_cancel(r);
}
