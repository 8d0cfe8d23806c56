/* SPDX-License-Identifier: Apache-2.0 */
/* The route that applies a set of definitions. */
#include "base/auto.h"
#include "base/err.h"
#include "base/tzfile.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/start/sandbox_offer.h"
#include "core/time/zone_cache.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/submission_context.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/submit/apply_plan.h"
#include "daemon/api/submit/job_change.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/schedule/concurrency.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/op.h"

#define APPLY_TRIES 4             /* attempts if jobs are changed concurrently */
#define READER_BODY (64 * 1024)   /* bytes; larger sets have a thread of their own */

/* The plan is made on a reading thread, stored by the writer, and made again after a conflict. */
struct apply_ctx {
	struct store_read q;
	struct ticket *ticket;
	struct run_watch_set *run_watch_set;
	struct buf body;         /* kept for another attempt */
	struct submission input; /* as the request sets it */
	bool dry_run, definitions, user_mode;
	int64_t scope;
	int tries;
	struct apply_plan plan;
};

static void apply_ctx_free(struct apply_ctx *o)
{
	apply_plan_done(&o->plan);
	submission_done(&o->input);
	buf_done(&o->body);
	free(o);
}

static void free_apply(struct store_read *q)
{
	apply_ctx_free((struct apply_ctx *)q);
}

/* ---- on a reading thread ---- */

static bool make_plan(struct store *s, struct store_read *q, struct err *e)
{
	struct apply_ctx *o = (struct apply_ctx *)q;
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);

	apply_plan_done(&o->plan);
	if (!o->input.owner &&
		!user_lookup_name(owner_uid(o->input.uid), o->user_mode, &o->input.owner, e))
		return false;
	o->plan = (struct apply_plan){.s = o->input,
		.dry_run = o->dry_run,
		.definitions = o->definitions,
		.scope = o->scope};
	/* what the plan owns and frees is a copy */
	o->plan.s.owner = xstrdup(o->input.owner);
	o->plan.s.sandboxes = sandbox_offers_ref(o->input.sandboxes);
	buf_add(&o->plan.s.body, o->body.data, o->body.len);
	if (!apply_plan_make(&o->plan, s, zones, e))
		return false;
	if (o->dry_run)
		apply_plan_write(&o->plan, NULL, &q->out);
	else if (o->plan.refused)
		apply_plan_refusal(&o->plan, e);
	return o->dry_run || !o->plan.refused;
}

/* ---- on the loop ---- */

static void start_plan(struct request *r, struct apply_ctx *o /* moved */);

/* Clients that wait for runs of changed and removed jobs learn that the runs are gone. */
static void tell_watchers(const struct op_job_apply *a, struct run_watch_set *watches)
{
	for (size_t i = 0; i < a->n_change; i++)
		if (a->change[i]->unplanned > 0)
			run_watch_notify(watches, a->change[i]->id, 0, RUN_CANCELLED);
	for (size_t i = 0; i < a->n_remove; i++)
		run_watch_notify(watches, a->remove[i], 0, RUN_CANCELLED);
}

static void on_applied(struct op *op, void *arg)
{
	struct apply_ctx *o = arg;
	struct op_job_apply *a = job_apply_op(op);
	struct request *r = request_ticket_redeem(o->ticket);
	bool again = !op->ok && (op->err.kind == ERR_CONFLICT || op->err.kind == ERR_BUSY) &&
		     ++o->tries < APPLY_TRIES;

	o->ticket = NULL;
	if (op->ok)
		tell_watchers(a, o->run_watch_set);
	if (r && op->ok) {
		AUTO_DONE(buf) out = {};

		apply_plan_write(&o->plan, a, &out);
		request_answer_text(r, 200, &out);
	} else if (r && again) {
		start_plan(r, o);
		o = NULL;
	} else if (r) {
		apply_plan_failed(&o->plan, a, &op->err);
		request_answer_err(r, &op->err);
	}
	op_free(op);
	if (o)
		apply_ctx_free(o);
}

/* The read is freed when this function returns, so its content moves to a context of the op. */
static void on_planned(struct request *r, struct store_read *q)
{
	struct apply_ctx *from = (struct apply_ctx *)q, *o;
	struct op *op;

	client_user_set_owner_name(r, from->input.owner);
	if (from->dry_run) {
		request_answer_text(r, 200, &q->out);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	*o = *from;
	o->q = (struct store_read){};
	from->plan = (struct apply_plan){};
	from->body = (struct buf){};
	submission_init(&from->input);
	op = op_new(OP_JOB_APPLY, on_applied, o);
	apply_plan_fill(&o->plan, job_apply_op(op));
	client_user_charge(r, job_apply_op(op)->n_add + job_apply_op(op)->n_change);
	o->run_watch_set = r->context->run_watch_set;
	o->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

static void start_plan(struct request *r, struct apply_ctx *o)
{
	o->q = (struct store_read){.run = make_plan, .then = on_planned, .free = free_apply};
	if (o->body.len > READER_BODY)
		store_read_start_long(r, &o->q);
	else
		store_read_start(r, &o->q);
}

void route_apply(struct request *r)
{
	struct err e = {};
	struct apply_ctx *o;

	if (!client_user_take_submission(r, &e)) {
		request_answer_err(r, &e);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->user_mode = r->context->user_mode;
	o->dry_run = request_number(r, "dry_run", 0);
	o->definitions = request_number(r, "definitions", 0);
	o->scope = request_scope(r);
	submission_context_fill(r, &o->input);
	o->input.max_body = request_limits(r)->bulk_body;
	o->body = r->body;
	r->body = (struct buf){};
	start_plan(r, o);
}
