/* SPDX-License-Identifier: Apache-2.0 */
/* Route that starts a run of a job now. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/params.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/warrants.h"
#include "store/ops/op.h"
#include "store/ops/run/triggers.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/params_json.h"
#include "wire/row_json.h"
#include "wire/spec_json.h"

/* The context of a trigger; the operation borrows from it until on_done(). */
struct trigger_ctx {
	char *ref;               /* owned: the job as given in the request */
	json_t *given;           /* owned: parameters; NULL: none */
	char *params;            /* owned: as JSON text */
	char *trace;             /* owned: lines NAME=VALUE of the trace context; NULL: none */
	char *warrant;           /* owned: for the command with these parameters; NULL: none */
	enum warrant_policy warrants;
	int64_t owner;
	struct job_spec spec;    /* its tags are compared with pauses */
	struct op_trigger trigger;
	struct ticket *ticket;
};
struct trigger_query {
	struct store_read q;
	struct trigger_ctx *trigger_ctx;     /* owned */
};

static void trigger_ctx_free(struct trigger_ctx *o)
{
	if (!o)
		return;
	free(o->ref);
	json_decref(o->given);
	free(o->params);
	free(o->trace);
	free(o->warrant);
	job_spec_done(&o->spec);
	free(o);
}

static void free_trigger_query(struct store_read *q)
{
	trigger_ctx_free(((struct trigger_query *)q)->trigger_ctx);
	free((struct trigger_query *)q);
}

/* ---- on the reader thread: checks the parameters against the job ---- */

static bool check_params(struct trigger_ctx *o, struct err *e)
{
	AUTO_DONE(strv) given = {};
	AUTO_DONE(strv) all = {};
	AUTO_DONE(buf) text = {};

	if (o->given && !params_json_read(o->given, &given, e))
		return false;
	if (!params_of_run(&o->spec, &given, &all, e))
		return false;
	if (given.n == 0 && !o->trace)
		return true;
	if (given.n > 0 && call_kind_of(&o->spec) == CALL_NONE && !warrants_check(o->warrants, o->owner, o->warrant, e))
		return false;
	if (!o->given)
		o->given = json_object();
	if (o->trace)
		json_object_set_new(o->given, PARAMS_JSON_TRACE, json_string(o->trace));
	if (given.n > 0 && o->warrant)
		/* stored under the empty name, which no parameter can have */
		json_object_set_new(o->given, "", json_string(o->warrant));
	json_value_write(o->given, &text);
	o->params = buf_steal(&text);
	return true;
}

static bool find_triggered_job(struct store *s, struct store_read *q, struct err *e)
{
	struct trigger_ctx *o = ((struct trigger_query *)q)->trigger_ctx;
	AUTO(job) *j = NULL;

	if (!store_read_job(s, o->trigger.uid, o->ref, &j, e) ||
		!spec_json_from_text(j->spec, &o->spec, e))
		return false;
	o->owner = j->uid;
	if (!check_params(o, e))
		return false;
	policy_start_of(&o->spec, &o->trigger.policy);
	o->trigger.job = j->id;
	o->trigger.revision = j->revision;
	o->trigger.tags = &o->spec.tags;
	if (o->trigger.as_scheduled)
		o->trigger.delay = io_random_upto(o->spec.jitter);
	o->trigger.params = o->params;
	return true;
}

/* ---- operation ---- */

static void on_triggered(struct op *op, void *arg)
{
	struct trigger_ctx *o = arg;
	struct request *r = request_ticket_redeem(o->ticket);

	if (r && op->ok)
		request_answer_json(r, 201, row_json_run(trigger_op(op)->run));
	else if (r)
		request_answer_err(r, &op->err);
	op_free(op);
	trigger_ctx_free(o);
}

static void submit_trigger(struct request *r, struct store_read *q)
{
	struct trigger_ctx *o = STEAL(((struct trigger_query *)q)->trigger_ctx);
	struct op *op = op_new(OP_TRIGGER, on_triggered, o);

	op_copy(trigger_op(op), o->trigger);
	trigger_op(op)->now = request_now(r);
	o->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

/* A member of the body replaces the header. */
static bool read_trace(const struct request *r, struct trigger_ctx *o, const json_t *body /* NULL: none */, struct err *e)
{
	static const struct {
		const char *member, *variable;
	} parts[] = {{"traceparent", "TRACEPARENT"}, {"tracestate", "TRACESTATE"}, {"baggage", "BAGGAGE"}};
	char *given[ELEMENTS(parts)];
	AUTO_DONE(buf) lines = {};
	bool ok = true;

	request_trace(r, &given[0], &given[1], &given[2]);
	for (size_t i = 0; i < ELEMENTS(parts); i++) {
		const char *text = json_string_value(json_object_get(body, parts[i].member));

		ok = ok && (!text || job_field_find(parts[i].member)->check(text, e));
		if (ok && (text || given[i]))
			buf_printf(&lines, "%s=%s\n", parts[i].variable, text ? text : given[i]);
		free(given[i]);
	}
	if (ok && lines.len > 0 && text_starts(lines.data, "TRACEPARENT="))
		o->trace = buf_steal(&lines);
	return ok;
}

static bool read_trigger_body(const struct request *r, struct trigger_ctx *o, struct err *e)
{
	json_t *body, *params = NULL;
	const char *warrant = NULL, *trace[3] = {};
	json_error_t je;
	int force = 0, as_scheduled = 0;
	bool ok;

	if (r->body.len == 0)
		return read_trace(r, o, NULL, e);
	body = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	if (!body)
		return false;
	ok = json_unpack_ex(body, &je, JSON_STRICT, "{s?o, s?b, s?b, s?s, s?s, s?s, s?s}", "params", &params,
		     "force", &force, "as_scheduled", &as_scheduled, "warrant", &warrant, "traceparent", &trace[0],
		     "tracestate", &trace[1], "baggage", &trace[2]) == 0;
	if (ok && as_scheduled && (force || params))
		ok = err_field(e, "as_scheduled",
			"a run as scheduled has no parameters of its own and cannot be forced");
	else if (!ok)
		err_set(e, ERR_INVALID, "the body may be {\"params\":{…},\"force\":true}: %s",
			je.text);
	if (ok && warrant && !job_field_find("warrant")->check(warrant, e))
		ok = false;
	ok = ok && read_trace(r, o, body, e);
	o->warrant = ok ? xstrdup(warrant) : NULL;
	o->given = json_incref(params);
	o->trigger.forced = force;
	o->trigger.as_scheduled = as_scheduled;
	json_decref(body);
	return ok;
}

void route_job_run(struct request *r)
{
	struct trigger_query *q = xcalloc(1, sizeof(*q));
	struct err e = {};

	q->trigger_ctx = xcalloc(1, sizeof(*q->trigger_ctx));
	job_spec_init(&q->trigger_ctx->spec);
	q->trigger_ctx->ref = xstrdup(r->params[0]);
	q->trigger_ctx->warrants = spawner_link_warrants(r->context->spawner);
	q->trigger_ctx->trigger.uid = request_scope(r);
	q->trigger_ctx->trigger.overrides_freeze = request_scope(r) < 0;
	q->trigger_ctx->trigger.limit = client_user_jobs_limit(r);
	q->trigger_ctx->trigger.bytes_limit = client_user_store_limit(r);
	q->q.run = find_triggered_job;
	q->q.then = submit_trigger;
	q->q.free = free_trigger_query;
	if (!client_user_take_submission(r, &e) || !read_trigger_body(r, q->trigger_ctx, &e)) {
		request_answer_err(r, &e);
		free_trigger_query(&q->q);
		return;
	}
	store_read_start(r, &q->q);
}
