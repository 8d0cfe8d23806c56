/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for pauses: list, pause, resume, freeze, thaw. */
#include "base/auto.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/schedule/planner.h"
#include "daemon/schedule/schedule_cache.h"
#include "store/lists.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/pause_rows.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <inttypes.h>
#include <string.h>

#define REASON_MAX 200
#define KEY_MAX 300     /* bytes; a tag is the longest */
#define PAUSES_MAX 100  /* per user, for pauses made by the user */

/* A request to pause or resume, until the store has done it. */
struct pause_ctx {
	bool ends;                /* end a pause, not begin one */
	struct pause_order pause; /* owns its texts */
	char *ref, *owner;        /* owned: the job, the owner of the jobs; NULL: absent */
	int64_t job;              /* number of 'ref' */
	int64_t scope;            /* of the request, see access_scope() */
	/* during the operation */
	struct run_watch_set *run_watch_set;
	struct ticket *ticket;
};
struct pause_query {
	struct store_read q;
	struct pause_ctx *pause_ctx;        /* owned */
};

static void pause_ctx_free(struct pause_ctx *w)
{
	if (!w)
		return;
	pause_order_done(&w->pause);
	free(w->ref);
	free(w->owner);
	free(w);
}

static void free_pause_query(struct store_read *q)
{
	pause_ctx_free(((struct pause_query *)q)->pause_ctx);
	free((struct pause_query *)q);
}

/* ---- the body ---- */

struct body {
	const char *scope, *key, *owner, *until, *reason, *spare;
};

static bool unpack_pause_body(const json_t *o, struct body *b, struct err *e)
{
	json_error_t je;

	if (json_unpack_ex((json_t *)o, &je, JSON_STRICT, "{s?s, s?s, s?s, s?s, s?s, s?s}", "scope",
		    &b->scope, "key", &b->key, "owner", &b->owner, "until", &b->until, "reason",
		    &b->reason, "spare", &b->spare) == 0)
		return true;
	return err_set(e, ERR_INVALID,
		"the body may have scope, key, owner, until, reason and spare, all of them "
		"strings: %s",
		je.text);
}

static bool take_until(struct pause_ctx *w, const char *text, usec_t now, struct err *e)
{
	struct err why = {};

	if (!text)
		return true;
	if (!rfc3339_parse(text, &w->pause.until, &why))
		return err_field(e, "until", "'until': %s", why.msg);
	return w->pause.until > now ||
	       err_field(e, "until", "'until' is not in the future; nothing would be %s",
		       w->ends ? "resumed" : "paused");
}

static bool is_tag(const char *s)
{
	return s && *s != '=' && strchr(s, '=');
}

static bool take_scope(struct pause_ctx *w, const struct body *b, struct err *e)
{
	if (!b->scope || !pause_scope_parse(b->scope, &w->pause.scope) ||
		w->pause.scope == PAUSE_JOB || w->pause.scope == PAUSE_FREEZE)
		return err_field(e, "scope", "'scope' must be all, queue, owner or tag");
	if (w->pause.scope == PAUSE_TAG && !is_tag(b->key))
		return err_field(e, "key", "the key of a tag must be KEY=VALUE");
	if (w->pause.scope == PAUSE_QUEUE && (!b->key || !job_name_check(b->key, NULL)))
		return err_field(e, "key", "the key of a queue must be its name");
	if (w->pause.scope == PAUSE_OWNER && !b->owner)
		return err_field(e, "owner", "give 'owner', the owner of the jobs");
	if ((w->pause.scope == PAUSE_ALL || w->pause.scope == PAUSE_OWNER) && b->key)
		return err_field(e, "key", "only a queue and a tag have a key");
	return true;
}

static bool check_members(const struct pause_ctx *w, const struct body *b, bool scoped,
	struct err *e)
{
	bool freeze = w->pause.scope == PAUSE_FREEZE;

	if (!scoped && (b->scope || b->key || b->owner))
		return err_field(e,
			b->scope ? "scope"
			: b->key ? "key"
				 : "owner",
			"not allowed here: the path names the object");
	if (b->spare && !freeze)
		return err_field(e, "spare", "only a freeze can spare a tag");
	if (b->spare && (!*b->spare || *b->spare == '=' || strlen(b->spare) > KEY_MAX))
		return err_field(e, "spare",
			"'spare' must be a tag: KEY=VALUE, or KEY for any value");
	if (w->ends && b->spare)
		return err_field(e, "spare", "only a freeze can spare a tag");
	if (w->ends && b->until && freeze)
		return err_field(e, "until",
			"a thaw has no end; 'jobctl freeze --until TIME' sets the end of a freeze");
	if (b->reason && strlen(b->reason) > REASON_MAX)
		return err_field(e, "reason", "a reason may have at most %d bytes", REASON_MAX);
	if (b->key && strlen(b->key) > KEY_MAX)
		return err_field(e, "key", "a key may have at most %d bytes", KEY_MAX);
	return true;
}

static bool take_body(struct pause_ctx *w, const struct request *r, const json_t *o, bool scoped,
	struct err *e)
{
	struct body b = {};

	if ((o && !unpack_pause_body(o, &b, e)) || !check_members(w, &b, scoped, e) ||
		(scoped && !take_scope(w, &b, e)) || !take_until(w, b.until, request_now(r), e))
		return false;
	w->owner = xstrdup(b.owner);
	w->pause.key = xstrdup(b.key ? b.key : "");
	w->pause.reason = xstrdup(b.reason && *b.reason ? b.reason : NULL);
	w->pause.spared = xstrdup(b.spare ? b.spare : "");
	return true;
}

static bool read_pause_body(struct pause_ctx *w, const struct request *r, bool scoped,
	struct err *e)
{
	json_t *o = NULL;
	bool ok;

	if (r->body.len > 0) {
		o = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
		if (!o)
			return false;
	}
	ok = take_body(w, r, o, scoped, e);
	json_decref(o);
	return ok;
}

/* ---- names, on the reader's thread ---- */

/*
 * The owner of the jobs: for an administrator all owners unless one is given, for other users the
 * caller.
 */
static bool find_uid(struct store *s, struct pause_ctx *w, struct err *e)
{
	int64_t uid = -1;

	if (w->scope >= 0)
		uid = w->scope;
	else if (w->owner && !user_lookup_owner(s, w->owner, &uid, e))
		return false;
	w->pause.uid = w->owner ? uid : w->scope;
	if (w->pause.scope == PAUSE_OWNER) {
		free(w->pause.key);
		w->pause.key = xprintf("%" PRId64, uid);
	}
	return true;
}

static bool find_pause_target(struct store *s, struct store_read *q, struct err *e)
{
	struct pause_ctx *w = ((struct pause_query *)q)->pause_ctx;
	AUTO(job) *j = NULL;

	if (!w->ref)
		return find_uid(s, w, e);
	if (!store_read_job(s, w->scope, w->ref, &j, e))
		return false;
	w->job = j->id;
	return true;
}

/* ---- answers ---- */

/* Reads the job after the change, for the response. */
struct outcome {
	struct store_read q;
	int64_t job;
	bool was_paused;
	size_t released;
	struct buf running; /* JSON array */
};

static bool run_outcome(struct store *s, struct store_read *q, struct err *e)
{
	struct outcome *o = (struct outcome *)q;
	AUTO_TEXT ref = xprintf("%" PRId64, o->job);
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, ref, &j, e))
		return false;
	buf_str(&q->out, "{\"job\":");
	store_read_write_job(&q->out, j);
	buf_printf(&q->out, ",\"was_paused\":%s,\"released\":%zu,\"running\":%s}\n",
		o->was_paused ? "true" : "false", o->released, o->running.data);
	return true;
}

static void free_outcome(struct store_read *q)
{
	buf_done(&((struct outcome *)q)->running);
	free((struct outcome *)q);
}

static void answer_job(struct request *r, const struct op *op)
{
	struct outcome *o = xcalloc(1, sizeof(*o));
	const struct run_list *open = op->kind == OP_PAUSE ? &pause_op(op)->open : NULL;

	o->job = op->kind == OP_PAUSE ? pause_op(op)->job : resume_op(op)->job;
	o->was_paused =
		op->kind == OP_PAUSE ? pause_op(op)->was == JOB_PAUSED : resume_op(op)->found;
	o->released = op->kind == OP_PAUSE ? 0 : resume_op(op)->released;
	buf_char(&o->running, '[');
	for (size_t i = 0; open && i < open->n; i++) {
		buf_str(&o->running, i ? "," : "");
		store_read_write_run(&o->running, open->v[i]);
	}
	buf_char(&o->running, ']');
	o->q.run = run_outcome;
	o->q.free = free_outcome;
	store_read_start(r, &o->q);
}

static void on_pause_done(struct op *op, void *arg)
{
	struct pause_ctx *w = arg;
	struct request *r = request_ticket_redeem(w->ticket);

	if (op->ok && w->job && !w->ends)
		/* planned runs were withdrawn */
		run_watch_notify(w->run_watch_set, w->job, 0, RUN_CANCELLED);
	if (r && !op->ok)
		request_answer_err(r, &op->err);
	else if (r && w->job)
		answer_job(r, op);
	else if (r && w->ends)
		request_answer_json(r, 200,
			json_pack("{s:b, s:I}", "was_paused", resume_op(op)->found, "released",
				(json_int_t)resume_op(op)->released));
	else if (r)
		request_answer_json(r, 200, row_json_pause(&w->pause));
	op_free(op);
	pause_ctx_free(w);
}

/* ---- operation ---- */

static void submit_pause(struct request *r, struct store_read *q)
{
	struct pause_ctx *w = STEAL(((struct pause_query *)q)->pause_ctx);
	struct op *op = op_new(w->ends ? OP_RESUME : OP_PAUSE, on_pause_done, w);
	const char *who = client_user_name(r);

	w->pause.by_uid = r->who.uid;
	w->pause.by_name = who ? xstrdup(who) : xprintf("uid %u", r->who.uid);
	w->pause.at = request_now(r);
	if (w->ends)
		op_fill(resume_op(op), .uid = w->scope,
			.job = w->job,
			.scope = w->pause.scope,
			.key = w->pause.key,
			.of_uid = w->pause.uid,
			.reason = w->pause.reason,
			.now = w->pause.at,
			.until = w->pause.until,
			.by_uid = w->pause.by_uid,
			.by_name = w->pause.by_name,
			.fn = schedule_cache_plan,
			.fn_arg = planner_schedule_cache(r->context->planner),
			.limit = client_user_jobs_limit(r));
	else
		op_fill(pause_op(op), .uid = w->scope, .job = w->job, .pause = w->pause,
			.limit = w->scope < 0 ? 0 : PAUSES_MAX);
	w->run_watch_set = r->context->run_watch_set;
	w->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

/* Refuses what only administrators may do before any user is looked up. */
static bool check_own(const struct request *r, const struct pause_ctx *w, struct err *e)
{
	if (w->scope < 0)
		return true;
	if (w->pause.scope == PAUSE_QUEUE)
		return err_set(e, ERR_DENIED,
			"only administrators may pause a queue; 'jobctl pause --all' pauses your "
			"jobs");
	if (w->owner && !client_user_is(r, w->owner))
		return err_set(e, ERR_DENIED,
			"only administrators may pause the jobs of other users");
	return true;
}

static void start_pause(struct request *r, enum pause_scope scope, bool ends)
{
	struct pause_query *q = xcalloc(1, sizeof(*q));
	bool scoped = scope == PAUSE_SCOPE_MAX;
	struct err e = {};

	q->pause_ctx = xcalloc(1, sizeof(*q->pause_ctx));
	*q->pause_ctx = (struct pause_ctx){.ends = ends,
		.scope = request_scope(r),
		.pause.scope = scoped ? PAUSE_ALL : scope,
		.ref = xstrdup(scope == PAUSE_JOB ? r->params[0] : NULL)};
	q->q.run = find_pause_target;
	q->q.then = submit_pause;
	q->q.free = free_pause_query;
	if (!read_pause_body(q->pause_ctx, r, scoped, &e) || !check_own(r, q->pause_ctx, &e)) {
		request_answer_err(r, &e);
		free_pause_query(&q->q);
		return;
	}
	store_read_start(r, &q->q);
}

void route_job_pause(struct request *r)
{
	start_pause(r, PAUSE_JOB, false);
}

void route_job_resume(struct request *r)
{
	start_pause(r, PAUSE_JOB, true);
}

void route_pause(struct request *r)
{
	start_pause(r, PAUSE_SCOPE_MAX, false);
}

void route_resume(struct request *r)
{
	start_pause(r, PAUSE_SCOPE_MAX, true);
}

void route_freeze(struct request *r)
{
	start_pause(r, PAUSE_FREEZE, false);
}

void route_thaw(struct request *r)
{
	start_pause(r, PAUSE_FREEZE, true);
}

/* ---- list ---- */

static bool read_pause_list(struct store *s, struct store_read *q, struct err *e)
{
	AUTO_DONE(pause_list) all = {};

	if (!pause_rows_list(s, q->scope, &all, e))
		return false;
	buf_str(&q->out, "{\"pauses\":[");
	for (size_t i = 0; i < all.n; i++) {
		json_t *o = row_json_pause(&all.v[i]);

		buf_str(&q->out, i ? "," : "");
		json_value_write(o, &q->out);
		json_decref(o);
	}
	buf_str(&q->out, "]}\n");
	return true;
}

static void free_list(struct store_read *q)
{
	free(q);
}

void route_pause_list(struct request *r)
{
	struct store_read *q = xcalloc(1, sizeof(*q));

	q->run = read_pause_list;
	q->free = free_list;
	store_read_start(r, q);
}
