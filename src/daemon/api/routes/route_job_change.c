/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that change a job or restore a revision. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/sandbox_offer.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/submit/job_change.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/op.h"
#include "store/read/revisions.h"
#include "store/read/single.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>

#define TRIES 4 /* attempts if the job is changed concurrently and the request names no revision */

/*
 * A change in progress. It is prepared on the reader thread and applied on the writer thread, and
 * prepared again after a conflict.
 */
struct change_ctx {
	struct ticket *ticket;
	struct run_watch_set *run_watch_set;
	struct zone_cache *zones; /* of the reader thread */
	char *ref;                /* owned */
	json_t *patch;            /* owned; NULL: restore an earlier revision */
	int64_t expect;           /* expected revision; 0: any */
	int64_t to;               /* revision to restore; 0: the previous one */
	int64_t limit, bytes_limit;
	int64_t by;               /* owner number of the caller */
	unsigned limits_refused;
	usec_t now;
	bool dry_run;
	enum warrant_policy warrants;
	int tries;
	struct sandbox_offers *sandboxes; /* owned */
	struct call_rules calls;
	struct job *job;          /* owned */
	struct job_change a;
};

static void change_ctx_free(struct change_ctx *o)
{
	if (!o)
		return;
	job_change_done(&o->a);
	sandbox_offers_free(o->sandboxes);
	job_free(o->job);
	json_decref(o->patch);
	free(o->ref);
	free(o);
}

struct change_query {
	struct store_read q;
	struct change_ctx *change_ctx; /* owned */
};

static void free_change(struct store_read *q)
{
	struct change_query *c = (struct change_query *)q;

	change_ctx_free(c->change_ctx);
	free(c);
}

/* ---- on the reader's thread ---- */

static bool no_target(const struct change_ctx *o, struct err *e)
{
	if (o->to)
		return err_set(e, ERR_NOT_FOUND,
			"job %" PRId64 " has no revision %" PRId64 "; see 'jobctl history %" PRId64
			"'",
			o->job->id, o->to, o->job->id);
	return err_set(e, ERR_CONFLICT,
		"nothing to undo: job %" PRId64
		" has its first definition; see 'jobctl history %" PRId64 "'",
		o->job->id, o->job->id);
}

/*
 * The revision before the current one. A revision made by an undo counts as the revision that it
 * restored, so that each further undo goes one step back.
 */
static bool find_base(struct store *s, const struct change_ctx *o, int64_t *ret, struct err *e)
{
	AUTO_DONE(revision_list) newest = {};

	if (!revisions_page(s, o->job, 0, 1, &newest, e))
		return false;
	*ret = newest.n == 0 ? 1 : newest.v[0].origin ? newest.v[0].origin : newest.v[0].number;
	return true;
}

static bool restore_revision(struct store *s, struct change_ctx *o, struct err *e)
{
	AUTO_DONE(revision_list) l = {};
	int64_t before = o->to + 1;
	const struct revision *target;

	if ((!o->to && !find_base(s, o, &before, e)) ||
		!revisions_page(s, o->job, before, 1, &l, e))
		return false;
	target = l.n > 0 ? &l.v[0] : NULL;
	if (!target || (o->to && target->number != o->to))
		return no_target(o, e);
	return job_change_restore(&o->a, target->spec,
		target->origin ? target->origin : target->number, o->zones, e);
}

/* Writes the job with the members that only the response to a change has. */
static bool write_answer(struct store_read *q, const struct job *j, const struct change_ctx *o,
	struct err *e)
{
	json_t *answer = row_json_job(j, e);

	if (!answer)
		return false;
	json_object_set_new(answer, "changed", json_boolean(o->a.changed));
	json_object_set_new(answer, "what", json_value_text(o->a.what));
	forecast_write_json(&o->a.forecast, answer);
	json_value_write(answer, &q->out);
	buf_char(&q->out, '\n');
	json_decref(answer);
	return true;
}

static bool write_dry_run(struct store *s, struct store_read *q, struct change_ctx *o,
	struct err *e)
{
	struct job after = *o->job;

	if (o->a.changed) {
		if (!job_change_dry_run(s, &o->a.change, e))
			return false;
		after.name = (char *)o->a.change.to.name;
		after.spec = o->a.text;
		after.state = o->a.change.state;
		after.revision = o->a.change.revision;
		after.priority = o->a.change.to.priority;
		after.queue = (char *)(o->a.change.to.queue ? o->a.change.to.queue : "default");
	}
	return write_answer(q, &after, o, e);
}

/*
 * An undo is not checked: the restored definition was written by the owner or checked when it was
 * submitted.
 */
static bool check_foreign(const struct change_ctx *o, struct err *e)
{
	AUTO_DONE(job_spec) was;

	job_spec_init(&was);
	if (!o->patch || !o->a.changed || o->by == o->job->uid)
		return true;
	return job_env_check_foreign(&o->a.spec.env,
		spec_json_from_text(o->job->spec, &was, NULL) ? &was.env : NULL, e);
}

static bool read_and_check_change(struct store *s, struct store_read *q, struct err *e)
{
	struct change_ctx *o = ((struct change_query *)q)->change_ctx;

	job_change_done(&o->a);
	job_free(STEAL(o->job));
	if (!store_read_job(s, q->scope, o->ref, &o->job, e))
		return false;
	o->a = (struct job_change){.job = o->job,
		.now = o->now,
		.preview = o->dry_run,
		.sandboxes = o->sandboxes,
		.limits_refused = o->limits_refused,
		.calls = o->calls,
		.warrants = o->warrants};
	if (!(o->patch ? job_change_merge(&o->a, o->patch, o->zones, e)
		       : restore_revision(s, o, e)) ||
		!check_foreign(o, e))
		return false;
	if (o->expect && o->expect != o->job->revision)
		return err_set(e, ERR_CONFLICT,
			"job %" PRId64 " is at revision %" PRId64 ", not %" PRId64
			"; see 'jobctl show %" PRId64 "'",
			o->job->id, o->job->revision, o->expect, o->job->id);
	o->a.change.uid = q->scope;
	o->a.change.to.limit = o->limit;
	o->a.change.to.bytes_limit = o->bytes_limit;
	if (o->dry_run)
		return write_dry_run(s, q, o, e);
	return o->a.changed || write_answer(q, o->job, o, e);
}

static bool read_changed_job(struct store *s, struct store_read *q, struct err *e)
{
	struct change_ctx *o = ((struct change_query *)q)->change_ctx;
	AUTO(job) *j = NULL;

	return store_job_get(s, q->scope, o->job->id, &j, e) && write_answer(q, j, o, e);
}

/* ---- on the loop ---- */

static void start_change_read(struct request *r, struct change_ctx *o /* moved */,
	bool (*run)(struct store *, struct store_read *, struct err *),
	void (*then)(struct request *, struct store_read *))
{
	struct change_query *c = xcalloc(1, sizeof(*c));

	c->change_ctx = o;
	c->q.run = run;
	c->q.then = then;
	c->q.free = free_change;
	store_read_start(r, &c->q);
}

static void submit_change(struct request *r, struct store_read *q);

static void on_job_changed(struct op *op, void *arg)
{
	struct change_ctx *o = arg;
	struct request *r = request_ticket_redeem(o->ticket);
	bool again = !op->ok && job_change_op(op)->stale && !o->expect && ++o->tries < TRIES;

	if (op->ok && job_change_op(op)->unplanned > 0)
		run_watch_notify(o->run_watch_set, job_change_op(op)->id, 0, RUN_CANCELLED);
	if (r && op->ok)
		start_change_read(r, STEAL(o), read_changed_job, NULL);
	else if (r && again)
		start_change_read(r, STEAL(o), read_and_check_change, submit_change);
	else if (r)
		request_answer_err(r, &op->err);
	change_ctx_free(o);
	op_free(op);
}

static void submit_change(struct request *r, struct store_read *q)
{
	struct change_query *c = (struct change_query *)q;
	struct change_ctx *o = c->change_ctx;
	struct op *op;

	if (!o->a.changed || o->dry_run) {
		request_answer_text(r, 200, &q->out);
		return;
	}
	c->change_ctx = NULL;
	op = op_new(OP_JOB_CHANGE, on_job_changed, o);
	op_copy(job_change_op(op), o->a.change);
	o->run_watch_set = r->context->run_watch_set;
	o->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

/* ---- the routes ---- */

/* Removes a number from the body that is not a member of the job. */
static bool take_revision(json_t *body, const char *name, int64_t *ret, struct err *e)
{
	const json_t *v = json_object_get(body, name);

	if (!v || json_is_null(v))
		return json_object_del(body, name), true;
	*ret = json_integer_value(v);
	if (!json_is_integer(v) || *ret < 1)
		return err_field(e, name, "'%s' must be the number of a revision", name);
	json_object_del(body, name);
	return true;
}

static json_t *read_change_body(const struct request *r, struct err *e)
{
	json_t *body;

	if (r->body.len == 0)
		return json_object();
	body = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	if (!body || json_is_object(body))
		return body;
	json_decref(body);
	err_set(e, ERR_INVALID, "the body must be a JSON object");
	return NULL;
}

static struct change_ctx *change_ctx_new(struct request *r)
{
	struct change_ctx *o = xcalloc(1, sizeof(*o));

	o->ref = xstrdup(r->params[0]);
	o->zones = request_reader_zones(r);
	o->limit = client_user_jobs_limit(r);
	o->bytes_limit = client_user_store_limit(r);
	o->by = request_owner(r);
	o->limits_refused = spawner_link_limits_refused(r->context->spawner);
	o->now = request_now(r);
	o->dry_run = request_number(r, "dry_run", 0);
	o->sandboxes = spawner_link_sandboxes(r->context->spawner);
	o->calls = (struct call_rules){.allow = r->context->http_allow, .buckets = r->context->s3_artifacts,
		.functions = r->context->lambda_functions, .proxy = r->context->http_proxy,
		.callbacks = r->context->callbacks != NULL};
	o->warrants = spawner_link_warrants(r->context->spawner);
	return o;
}

void route_job_change(struct request *r)
{
	struct change_ctx *o = change_ctx_new(r);
	struct err e = {};

	o->patch = read_change_body(r, &e);
	if (o->patch && take_revision(o->patch, "revision", &o->expect, &e)) {
		start_change_read(r, o, read_and_check_change, submit_change);
		return;
	}
	request_answer_err(r, &e);
	change_ctx_free(o);
}

static bool read_undo(const struct request *r, struct change_ctx *o, struct err *e)
{
	json_auto_t *body = read_change_body(r, e);

	if (!body || !take_revision(body, "revision", &o->expect, e) ||
		!take_revision(body, "to", &o->to, e))
		return false;
	return json_object_size(body) == 0 ||
	       err_set(e, ERR_INVALID,
		       "the body may have \"revision\", the expected revision, and \"to\", the "
		       "revision to restore");
}

void route_job_undo(struct request *r)
{
	struct change_ctx *o = change_ctx_new(r);
	struct err e = {};

	if (read_undo(r, o, &e)) {
		start_change_read(r, o, read_and_check_change, submit_change);
		return;
	}
	request_answer_err(r, &e);
	change_ctx_free(o);
}
