/* SPDX-License-Identifier: Apache-2.0 */
/* Runs request reads on the reader thread, answers on the loop. */
#include "daemon/api/store_read.h"
#include "base/auto.h"
#include "base/edit_distance.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include "store/read/single.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>

#define NAMES_MAX 1000   /* names of the user's jobs that are compared for "did you mean" */

static void on_read_work(struct store *s, struct read_task *task)
{
	struct store_read *q = (struct store_read *)task;

	q->ok = s ? q->run(s, q, &q->err)
		  : err_set(&q->err, ERR_BUSY,
			    "the store could not be opened for reading; try again");
	task->charge = q->out.len > q->reserve ? q->out.len : q->reserve;
}

static void on_read_done(struct read_task *task)
{
	struct store_read *q = (struct store_read *)task;
	struct request *r = request_ticket_redeem(q->ticket);

	q->ticket = NULL;
	if (r)
		request_charge(r, task->item.key, task->charge);
	else if (task->charge)
		store_thread_release(q->store, task->item.key, task->charge);
	if (r && !q->ok && q->failed)
		q->failed(r, q);
	else if (r && !q->ok)
		request_answer_err(r, &q->err);
	else if (r && q->then)
		q->then(r, q);
	else if (r)
		request_answer_text(r, 200, &q->out);
	buf_done(&q->out);
	q->free(q);
}

static void prepare_read(struct request *r, struct store_read *q)
{
	q->task.work = on_read_work;
	q->task.done = on_read_done;
	q->task.item.key = r->who.uid;
	q->store = r->context->store;
	q->ticket = request_ticket(r, false);
	q->scope = request_scope(r);
}

void store_read_start(struct request *r, struct store_read *q)
{
	prepare_read(r, q);
	store_thread_read(r->context->store, &q->task);
}

void store_read_start_long(struct request *r, struct store_read *q)
{
	prepare_read(r, q);
	store_thread_read_long(r->context->store, &q->task);
}

/* ---- "did you mean" ---- */

static bool refuse_unknown_job(struct store *s, int64_t scope, const char *name, struct err *e)
{
	AUTO_DONE(strv) names = {};
	const char *best = NULL;

	if (store_job_names(s, scope, NAMES_MAX, &names, NULL))
		best = edit_distance_nearest(name, &names);
	if (best)
		return err_set(e, ERR_NOT_FOUND, "no job '%.128s'; did you mean '%s'?", name, best);
	return err_set(e, ERR_NOT_FOUND, "no job '%.128s'; 'jobctl list' shows yours", name);
}

bool store_read_job(struct store *s, int64_t scope, const char *ref, struct job **ret,
	struct err *e)
{
	int64_t id;

	if (strspn(ref, "0123456789") == strlen(ref)) {
		if (text_parse_int(ref, 1, INT64_MAX, &id) && store_job_get(s, scope, id, ret, e))
			return true;
		if (e && e->kind != ERR_NONE && e->kind != ERR_NOT_FOUND)
			return false;
		return err_set(e, ERR_NOT_FOUND, "no job '%.40s'; 'jobctl list' shows yours", ref);
	}
	if (!job_name_check(ref, NULL))
		return err_set(e, ERR_NOT_FOUND, "no job '%.128s'; 'jobctl list' shows yours", ref);
	if (store_job_find(s, scope, ref, ret, e))
		return true;
	return e && e->kind == ERR_NOT_FOUND ? refuse_unknown_job(s, scope, ref, e) : false;
}

bool store_read_run_id(const char *ref, int64_t *ret, struct err *e)
{
	if (text_parse_int(ref, 1, INT64_MAX, ret))
		return true;
	return err_set(e, ERR_NOT_FOUND, "no run '%.40s'; runs have numbers, see 'jobctl runs'",
		ref);
}

/* ---- rows ---- */

/* A job that cannot be parsed must not hide the others in a list. */
static json_t *broken_job(const struct job *j, const struct err *e)
{
	return json_pack("{s:I, s:o, s:o, s:I, s:s, s:o}", "id", (json_int_t)j->id, "name",
		json_value_text(j->name), "owner", json_value_text(j->owner), "uid",
		(json_int_t)owner_uid(j->uid), "state", job_state_name(j->state), "error",
		json_value_text(e->msg));
}

void store_read_write_job(struct buf *out, const struct job *j)
{
	struct err e = {};
	json_t *o = row_json_job(j, &e);

	if (!o)
		o = broken_job(j, &e);
	json_value_write(o, out);
	json_decref(o);
}

void store_read_write_run(struct buf *out, const struct run *r)
{
	json_t *o = row_json_run(r);

	json_value_write(o, out);
	json_decref(o);
}
