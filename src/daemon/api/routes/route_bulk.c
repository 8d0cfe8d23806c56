/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that pause, resume, run or tag all jobs that match a filter, in steps. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/params.h"
#include "core/start/sandbox_offer.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/job_selection.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/submit/job_change.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/planner.h"
#include "daemon/schedule/schedule_cache.h"
#include "store/lists.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/triggers.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <string.h>

#define STEP 500           /* jobs per step, unless the request has a limit */
#define COUNT_PAGE 2000    /* jobs that a preview counts at a time ... */
#define COUNT_PAGES 5      /* ... so many times in one step */

/* A job of the step, prepared on the reader thread; the operations borrow from it. */
struct bulk_job {
	int64_t id;
	struct job *job;         /* owned, to be changed; NULL otherwise */
	struct job_spec spec;    /* to be run */
	struct job_change change;
	struct op_trigger trigger;
	struct err refused;      /* kind ERR_NONE: it is not */
};

/* One step. The last operation frees it. */
struct bulk_ctx {
	enum event_what what;
	struct job_selection select;
	json_t *patch;           /* owned: the tag to set; NULL: none */
	struct zone_cache *zones;
	struct sandbox_offers *sandboxes; /* owned */
	enum warrant_policy warrants;
	unsigned limits_refused;
	usec_t now;
	int64_t scope, jobs_limit, bytes_limit;
	bool dry_run;
	char *by_name;           /* owned */
	struct bulk_job *jobs;   /* owned */
	size_t n;
	int64_t next;            /* cursor of the next step; 0: this was the last one */
	struct run_watch_set *run_watch_set;
	struct ticket *ticket;
	size_t open;             /* operations under way */
	int64_t count, refused;
	struct err why;          /* of the first refusal */
};

struct bulk_query {
	struct store_read q;
	struct bulk_ctx *bulk;   /* owned */
};

static void bulk_ctx_free(struct bulk_ctx *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++) {
		job_change_done(&b->jobs[i].change);
		job_spec_done(&b->jobs[i].spec);
		job_free(b->jobs[i].job);
	}
	free(b->jobs);
	sandbox_offers_free(b->sandboxes);
	job_selection_done(&b->select);
	json_decref(b->patch);
	free(b->by_name);
	free(b);
}

static void free_bulk_query(struct store_read *q)
{
	bulk_ctx_free(((struct bulk_query *)q)->bulk);
	free((struct bulk_query *)q);
}

/* ---- on the reader thread ---- */

/* The states of jobs that an action can change. */
static unsigned states_of(enum event_what what)
{
	static const unsigned live = 1u << JOB_ACTIVE | 1u << JOB_PAUSED | 1u << JOB_SUSPENDED;

	switch (what) {
	case EVENT_JOB_PAUSE:
		return 1u << JOB_ACTIVE;
	case EVENT_JOB_RESUME:
		return 1u << JOB_PAUSED | 1u << JOB_SUSPENDED;
	case EVENT_RUN_TRIGGER:
		return 1u << JOB_ACTIVE | 1u << JOB_PAUSED;
	default:
		return live;
	}
}

static void refuse(struct bulk_ctx *b, const struct err *why)
{
	if (b->refused++ == 0)
		b->why = *why;
}

static bool prepare_trigger(const struct bulk_ctx *b, struct bulk_job *j, const struct job *row, struct err *e)
{
	AUTO_DONE(strv) none = {};
	AUTO_DONE(strv) all = {};

	if (!spec_json_from_text(row->spec, &j->spec, e) || !params_of_run(&j->spec, &none, &all, e))
		return false;
	j->trigger = (struct op_trigger){.uid = b->scope,
		.job = row->id,
		.revision = row->revision,
		.tags = &j->spec.tags,
		.limit = b->jobs_limit,
		.bytes_limit = b->bytes_limit,
		.now = b->now};
	policy_start_of(&j->spec, &j->trigger.policy);
	return true;
}

static bool prepare_change(const struct bulk_ctx *b, struct bulk_job *j, struct err *e)
{
	j->change = (struct job_change){.job = j->job,
		.now = b->now,
		.sandboxes = b->sandboxes,
		.limits_refused = b->limits_refused,
		.warrants = b->warrants};
	if (!job_change_merge(&j->change, b->patch, b->zones, e))
		return false;
	j->change.change.uid = b->scope;
	j->change.change.to.limit = b->jobs_limit;
	j->change.change.to.bytes_limit = b->bytes_limit;
	return true;
}

static void prepare(struct bulk_ctx *b, struct job **row /* taken if needed */)
{
	struct bulk_job *j = &b->jobs[b->n++];

	job_spec_init(&j->spec);
	j->id = (*row)->id;
	if (b->what == EVENT_RUN_TRIGGER) {
		prepare_trigger(b, j, *row, &j->refused);
	} else if (b->what == EVENT_JOB_CHANGE) {
		j->job = STEAL(*row);
		prepare_change(b, j, &j->refused);
	}
}

static bool count_jobs(struct store *s, struct bulk_ctx *b, struct err *e)
{
	for (int pages = 0; pages < COUNT_PAGES && (pages == 0 || b->next); pages++) {
		int64_t *ids = NULL;
		size_t n = 0;

		if (!list_jobs_ids(s, &b->select.filter, &ids, &n, &b->next, e))
			return false;
		free(ids);
		b->count += (int64_t)n;
		b->select.filter.after = b->next;
	}
	return true;
}

static bool prepare_step(struct store *s, struct store_read *q, struct err *e)
{
	struct bulk_ctx *b = ((struct bulk_query *)q)->bulk;
	AUTO_DONE(job_list) rows = {};

	b->select.filter.uid = b->scope;
	if (b->select.filter.states == 0)
		return true;
	if (b->dry_run)
		return count_jobs(s, b, e);
	b->select.filter.bytes = LIST_BYTES;
	if (!list_jobs_page(s, &b->select.filter, &rows, e))
		return false;
	b->next = rows.next;
	b->jobs = xcalloc(rows.n ? rows.n : 1, sizeof(*b->jobs));
	for (size_t i = 0; i < rows.n; i++)
		prepare(b, &rows.v[i]);
	return true;
}

/* ---- on the loop ---- */

static void answer_bulk(struct request *r, const struct bulk_ctx *b)
{
	AUTO_TEXT cursor = b->next ? xprintf("%" PRId64, b->next) : NULL;

	request_answer_json(r, 200,
		json_pack("{s:I, s:I, s:o, s:o}", "count", (json_int_t)b->count, "refused",
			(json_int_t)b->refused, "refused_because",
			json_value_text(b->refused ? b->why.msg : NULL), "next_cursor",
			json_value_text(cursor)));
}

static void bulk_end(struct bulk_ctx *b)
{
	struct request *r;

	if (--b->open > 0)
		return;
	r = request_ticket_redeem(b->ticket);
	if (r)
		answer_bulk(r, b);
	bulk_ctx_free(b);
}

static void on_bulk_done(struct op *op, void *arg)
{
	struct bulk_ctx *b = arg;

	if (op->ok)
		b->count++;
	else
		refuse(b, &op->err);
	if (op->ok && op->kind == OP_PAUSE)
		run_watch_notify(b->run_watch_set, pause_op(op)->job, 0, RUN_CANCELLED);
	op_free(op);
	bulk_end(b);
}

static struct op *make_op(const struct request *r, struct bulk_ctx *b, const struct bulk_job *j)
{
	struct op *op;

	switch (b->what) {
	case EVENT_JOB_PAUSE:
		op = op_new(OP_PAUSE, on_bulk_done, b);
		op_fill(pause_op(op), .uid = b->scope, .job = j->id,
			.pause = {.scope = PAUSE_JOB, .key = (char *)"", .spared = (char *)"", .by_uid = r->who.uid,
				.by_name = b->by_name, .at = b->now});
		return op;
	case EVENT_JOB_RESUME:
		op = op_new(OP_RESUME, on_bulk_done, b);
		op_fill(resume_op(op), .uid = b->scope, .job = j->id, .scope = PAUSE_JOB, .key = "", .now = b->now,
			.by_uid = r->who.uid, .by_name = b->by_name, .fn = schedule_cache_plan,
			.fn_arg = planner_schedule_cache(r->context->planner), .limit = b->jobs_limit);
		return op;
	case EVENT_RUN_TRIGGER:
		op = op_new(OP_TRIGGER, on_bulk_done, b);
		op_copy(trigger_op(op), j->trigger);
		return op;
	default:
		op = op_new(OP_JOB_CHANGE, on_bulk_done, b);
		op_copy(job_change_op(op), j->change.change);
		return op;
	}
}

/*
 * The operations are submitted together, so that the writer commits them in one transaction; each
 * is refused by itself.
 */
static void submit_bulk(struct request *r, struct store_read *q)
{
	struct bulk_ctx *b = STEAL(((struct bulk_query *)q)->bulk);
	const char *who = client_user_name(r);

	b->by_name = who ? xstrdup(who) : xprintf("uid %u", r->who.uid);
	b->run_watch_set = r->context->run_watch_set;
	b->ticket = request_ticket(r, true);
	b->open = 1;
	if (b->what == EVENT_RUN_TRIGGER && b->n > 1)
		client_user_charge(r, b->n - 1);
	for (size_t i = 0; i < b->n; i++) {
		const struct bulk_job *j = &b->jobs[i];
		struct op *op;

		if (j->refused.kind != ERR_NONE)
			refuse(b, &j->refused);
		if (j->refused.kind != ERR_NONE || (b->what == EVENT_JOB_CHANGE && !j->change.changed))
			continue;
		op = make_op(r, b, j);
		request_act(r, op);
		snprintf(op->act.object, sizeof(op->act.object), "%" PRId64, j->id);
		b->open++;
		store_thread_submit(r->context->store, op);
	}
	bulk_end(b);
}

/* A merge patch that sets one tag. */
static bool read_tag(const struct request *r, json_t **ret, struct err *e)
{
	const char *tag = request_text(r, "set"), *eq = tag ? strchr(tag, '=') : NULL;
	AUTO_TEXT key = eq ? xstrndup(tag, (size_t)(eq - tag)) : NULL;

	if (!key)
		return err_field(e, "set", "give the tag to set: set=KEY=VALUE");
	*ret = json_pack("{s:{s:s}}", "tags", key, eq + 1);
	return *ret || err_field(e, "set", "'set' is not valid UTF-8");
}

static bool read_bulk(struct request *r, struct bulk_ctx *b, struct err *e)
{
	struct job_filter *f = &b->select.filter;
	unsigned possible = states_of(b->what);

	job_selection_read(r, &b->select);
	f->states = f->states ? f->states & possible : possible;
	f->limit = b->dry_run ? COUNT_PAGE : (size_t)request_number(r, "limit", STEP);
	if (b->what == EVENT_JOB_CHANGE && !read_tag(r, &b->patch, e))
		return false;
	if (b->what == EVENT_RUN_TRIGGER && !b->dry_run && !client_user_take_submission(r, e))
		return false;
	return list_stream_cursor(r, &f->after, e);
}

void route_bulk(struct request *r)
{
	struct bulk_query *q = xcalloc(1, sizeof(*q));
	struct bulk_ctx *b = q->bulk = xcalloc(1, sizeof(*b));
	struct err e = {};

	b->what = r->route->what;
	b->dry_run = request_number(r, "dry_run", 0);
	b->zones = request_reader_zones(r);
	b->sandboxes = spawner_link_sandboxes(r->context->spawner);
	b->warrants = spawner_link_warrants(r->context->spawner);
	b->limits_refused = spawner_link_limits_refused(r->context->spawner);
	b->now = request_now(r);
	b->scope = request_scope(r);
	b->jobs_limit = client_user_jobs_limit(r);
	b->bytes_limit = client_user_store_limit(r);
	q->q.run = prepare_step;
	q->q.then = submit_bulk;
	q->q.free = free_bulk_query;
	if (!read_bulk(r, b, &e)) {
		request_answer_err(r, &e);
		free_bulk_query(&q->q);
		return;
	}
	store_read_start(r, &q->q);
}
