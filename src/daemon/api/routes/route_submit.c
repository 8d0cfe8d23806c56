/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that submit one job or many jobs. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/submission_context.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/submit/submission.h"
#include "daemon/api/submit/template.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_thread.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/planner.h"
#include "daemon/schedule/schedule_cache.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/read/list/list_templates.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <inttypes.h>
#include <stdio.h>

/* bytes; larger bodies are parsed on the reader thread, to keep the loop responsive */
#define LOOP_BODY (64 * 1024)
#define LOOP_BULK (4 * 1024) /* the same for a bulk, whose many small jobs take more time per byte */

/*
 * A submission: prepared as a read if it needs the reader thread, then the context of the
 * operation.
 */
struct submit_ctx {
	struct store_read q;
	struct ticket *ticket;
	struct submission s;
	struct zone_cache *zones;
	struct store_thread *store; /* borrowed */
	bool user_mode;
	json_t *shown;              /* owned: the definition in the response; NULL: it is written when it is needed */
};

static void submit_ctx_free(struct submit_ctx *o)
{
	json_decref(o->shown);
	submission_done(&o->s);
	free(o);
}

/* ---- answers ---- */

/* The next time as the store shows it: the queued run, or else the next slot if it is known. */
static usec_t shown_next(const struct job_new *n)
{
	if (n->run_at)
		return n->run_at;
	return slot_known(n->next_slot) ? n->next_slot : 0;
}

/* Adds the members that only the response to a submission has. */
static json_t *add_outcome(json_t *o /* NULL: none */, bool existed, bool replaced, int64_t run,
	const struct forecast *f)
{
	if (!o)
		return NULL;
	json_object_set_new(o, "existed", json_boolean(existed));
	json_object_set_new(o, "replaced", json_boolean(replaced));
	json_object_set_new(o, "run", run ? json_integer(run) : json_null());
	forecast_write_json(f, o);
	return o;
}

/* The new job as the store will show it, without another read. NULL: *e has the error. */
static json_t *describe_new(const struct job_new *n, json_t *spec /* moved; NULL: that of 'n' */, const struct forecast *f,
	struct err *e)
{
	struct job j = {
		.id = n->id,
		.uid = n->uid,
		.owner = (char *)n->owner,
		.name = (char *)n->name,
		.state = n->paused ? JOB_PAUSED : JOB_ACTIVE,
		.pause = {.by_name = (char *)n->owner, .by_uid = n->uid, .at = n->now},
		.revision = 1,
		.segment = job_segment((uint64_t)n->id),
		.queue = (char *)(n->queue ? n->queue : "default"),
		.priority = n->priority,
		.spec = (char *)n->spec,
		.created_at = n->now,
		.updated_at = n->now,
		.next_slot = shown_next(n),
	};

	return add_outcome(spec ? row_json_job_of(&j, spec) : row_json_job(&j, e), n->existed, n->replaced, n->run, f);
}

static void answer_new(struct request *r, struct job_new *n, struct submit_ctx *x)
{
	struct submission *s = &x->s;
	struct forecast *f = &s->v[0].forecast;
	struct err e = {};
	json_t *o;

	/*
	 * The job has been added and can no longer be refused. If its zone cannot be read, the
	 * response has no warnings.
	 */
	if (!f->findings)
		submission_set_number(s, 0, n, request_zones(r), &e);
	forecast_slot_density(f, n->next_slot, n->density);
	o = describe_new(n, STEAL(x->shown), f, &e);
	if (o)
		request_answer_json(r, 201, o);
	else
		request_answer_err(r, &e);
}

struct existing {
	struct store_read q;
	int64_t id, run;
	bool replaced;
};

static json_t *describe_existing(struct store *s, const struct existing *x,
	const struct forecast *f, struct err *e)
{
	AUTO(job) *j = NULL;
	char ref[32];

	snprintf(ref, sizeof(ref), "%" PRId64, x->id);
	if (!store_read_job(s, x->q.scope, ref, &j, e))
		return NULL;
	return add_outcome(row_json_job(j, e), true, x->replaced, x->run, f);
}

static bool put_answer(struct store_read *q, json_t *o /* moved; NULL: none */)
{
	if (!o)
		return false;
	json_value_write(o, &q->out);
	buf_char(&q->out, '\n');
	json_decref(o);
	return true;
}

/* Warnings were part of the response when the job was added. */
static bool run_existing(struct store *s, struct store_read *q, struct err *e)
{
	return put_answer(q, describe_existing(s, (struct existing *)q, &(struct forecast){}, e));
}

static void free_existing(struct store_read *q)
{
	free((struct existing *)q);
}

static void answer_existing(struct request *r, const struct job_new *n)
{
	struct existing *x = xcalloc(1, sizeof(*x));

	x->id = n->id;
	x->run = n->run;
	x->replaced = n->replaced;
	x->q.run = run_existing;
	x->q.free = free_existing;
	store_read_start(r, &x->q);
}

/* Written on the loop for up to 'bulk-jobs' jobs, so without printf(). */
static void answer_bulk(struct request *r, const struct op_job_bulk *b)
{
	AUTO_DONE(buf) out = {};

	buf_str(&out, "{\"jobs\":[");
	for (size_t i = 0; i < b->n; i++) {
		const struct job_new *n = &b->v[i];

		buf_str(&out, i ? ",{\"existed\":" : "{\"existed\":");
		buf_str(&out, n->existed ? "true" : "false");
		buf_str(&out, n->replaced ? ",\"replaced\":true,\"id\":" : ",\"replaced\":false,\"id\":");
		buf_json_int(&out, n->id);
		buf_str(&out, ",\"name\":");
		buf_json_str(&out, n->name);
		buf_str(&out, ",\"run\":");
		if (n->run)
			buf_json_int(&out, n->run);
		else
			buf_str(&out, "null");
		buf_char(&out, '}');
	}
	buf_str(&out, "]}\n");
	request_answer_text(r, 201, &out);
}

/* ---- freed on the reader thread: the many small allocations of a bulk would block the loop for milliseconds ---- */

struct discard {
	struct read_task task;
	struct submit_ctx *o; /* owned */
};

static void on_discard_work(struct store *s, struct read_task *task)
{
	(void)s;
	submit_ctx_free(((struct discard *)task)->o);
}

static void on_discard_done(struct read_task *task)
{
	free((struct discard *)task);
}

static void bulk_discard(struct submit_ctx *o)
{
	struct discard *d = xcalloc(1, sizeof(*d));

	d->task.work = on_discard_work;
	d->task.done = on_discard_done;
	d->o = o;
	store_thread_read(o->store, &d->task);
}

/* ---- operation ---- */

static void on_jobs_added(struct op *op, void *arg)
{
	struct submit_ctx *o = arg;
	struct request *r = request_ticket_redeem(o->ticket);

	if (r && !op->ok) {
		if (op->kind == OP_JOB_BULK)
			submission_error_field(&op->err, job_bulk_op(op)->failed);
		request_answer_err(r, &op->err);
	} else if (r && op->kind == OP_JOB_BULK) {
		answer_bulk(r, job_bulk_op(op));
	} else if (r && job_add_op(op)->job.existed) {
		answer_existing(r, &job_add_op(op)->job);
	} else if (r) {
		answer_new(r, &job_add_op(op)->job, o);
	}
	op_free(op);
	if (o->s.bulk && !store_thread_stopping(o->store))
		bulk_discard(o);
	else
		submit_ctx_free(o);
}

/* job_first_slot_fn, on the store thread: the planner need not read the job again to compute its slot. */
static void first_slot_by_number(struct job_new *n, void *arg)
{
	const struct submission_job *j = arg;
	usec_t slot;

	if (schedule_cache_first_slot(j->schedule_cache, &j->spec, &(struct schedule_seed){n->id, n->now}, n->next_slot, &slot))
		n->next_slot = slot;
}

static void submit_jobs(struct request *r, struct submit_ctx *o)
{
	struct op *op = op_new(o->s.bulk ? OP_JOB_BULK : OP_JOB_ADD, on_jobs_added, o);
	struct err ignored = {};

	submission_set_owner(&o->s);
	if (o->s.bulk) {
		job_bulk_op(op)->v = STEAL(o->s.jobs);
		job_bulk_op(op)->n = o->s.n;
		client_user_charge(r, o->s.n - 1);
	} else {
		job_add_op(op)->job = o->s.jobs[0];
	}
	o->ticket = request_ticket(r, true);
	o->store = r->context->store;
	request_act(r, op);
	store_thread_submit(o->store, op);
	/* while the store thread commits; a failure is reported when the response is written */
	if (!o->s.bulk)
		o->shown = row_json_job_spec(o->s.v[0].text, &ignored);
}

/* ---- preparing on the reader's thread ---- */

static bool from_template(void *arg, int64_t uid, const json_t *submission, struct job_spec *spec,
	struct err *e)
{
	AUTO_DONE(template) t = {};

	return list_templates_get(arg, uid,
		       json_string_value(json_object_get(submission, "template")), &t, e) &&
	       template_apply(&t, submission, spec, e);
}

static bool prepare_submission(struct store *s, struct store_read *q, struct err *e)
{
	struct submit_ctx *o = (struct submit_ctx *)q;

	o->s.from_template = from_template;
	o->s.template_arg = s;
	return (o->s.owner ||
		       user_lookup_name(owner_uid(o->s.uid), o->user_mode, &o->s.owner, e)) &&
	       submission_prepare(&o->s, o->zones, e);
}

/* Moves the submission out of the read, which is freed when this function returns. */
static void on_prepared(struct request *r, struct store_read *q)
{
	struct submit_ctx *from = (struct submit_ctx *)q, *o = xcalloc(1, sizeof(*o));

	o->s = from->s;
	submission_init(&from->s);
	client_user_set_owner_name(r, o->s.owner);
	submit_jobs(r, o);
}

static void free_submit_query(struct store_read *q)
{
	submit_ctx_free((struct submit_ctx *)q);
}

/* ---- a dry run, on the reader's thread ---- */

/* A dry run has no number, so the members that depend on it are null. */
static json_t *describe_dry_run(const struct job_new *n, const struct forecast *f, struct err *e)
{
	static const char *const unknown[] = {"id", "segment"};
	json_t *o = describe_new(n, NULL, f, e);

	for (size_t i = 0; o && i < ELEMENTS(unknown); i++)
		json_object_set_new(o, unknown[i], json_null());
	return o;
}

static bool read_dry_run(struct store *s, struct store_read *q, struct err *e)
{
	struct submit_ctx *o = (struct submit_ctx *)q;
	struct existing known;
	struct forecast *f;
	struct job_new *n;

	if (!prepare_submission(s, q, e))
		return false;
	submission_set_owner(&o->s);
	n = o->s.jobs;
	f = &o->s.v[0].forecast;
	if (!job_dry_run(s, n, e))
		return false;
	forecast_slot_density(f, n->next_slot, n->density);
	known = (struct existing){.q.scope = q->scope, .id = n->id, .run = n->run};
	return put_answer(q, n->existed && !n->replaced ? describe_existing(s, &known, f, e)
							: describe_dry_run(n, f, e));
}

/* ---- the routes ---- */

static void start_submission(struct request *r, bool bulk)
{
	const struct server_limits *l = request_limits(r);
	struct err e = {};
	struct submit_ctx *o;

	if (!client_user_take_submission(r, &e)) {
		request_answer_err(r, &e);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->user_mode = r->context->user_mode;
	submission_context_fill(r, &o->s);
	o->s.body = r->body;
	o->s.bulk = bulk;
	o->s.dry_run = !bulk && request_number(r, "dry_run", 0);
	o->s.paused = !bulk && request_number(r, "paused", 0);
	o->s.max_body = bulk ? l->bulk_body : l->body;
	o->s.services.sendmail = r->context->sendmail;
	if (!r->context->user_mode && r->context->net)
		o->s.services.net_down = net_client_down(r->context->net);
	o->s.first_slot = first_slot_by_number;
	o->s.schedule_cache = planner_schedule_cache(r->context->planner);
	request_trace(r, &o->s.traceparent, &o->s.tracestate, &o->s.baggage);
	r->body = (struct buf){};
	if (o->s.dry_run || !o->s.owner || o->s.body.len > (bulk ? LOOP_BULK : LOOP_BODY) ||
		submission_needs_store(&o->s)) {
		o->zones = request_reader_zones(r);
		o->q.run = o->s.dry_run ? read_dry_run : prepare_submission;
		o->q.then = o->s.dry_run ? NULL : on_prepared;
		o->q.free = free_submit_query;
		store_read_start(r, &o->q);
	} else if (submission_prepare(&o->s, request_zones(r), &e)) {
		submit_jobs(r, o);
	} else {
		request_answer_err(r, &e);
		submit_ctx_free(o);
	}
}

void route_job_submit(struct request *r)
{
	start_submission(r, false);
}

void route_job_bulk(struct request *r)
{
	start_submission(r, true);
}
