/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a set of definitions in one transaction. */
#include "store/ops/job/job_apply.h"
#include "base/err.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op_private.h"
#include "store/set.h"
#include "store/store_private.h"

static bool apply_refused(struct op *op, enum job_apply_part part, size_t i, const struct err *why)
{
	op->ok = false;
	op->err = *why;
	job_apply_op(op)->part = part;
	job_apply_op(op)->failed = i;
	return true;
}

/* A running run of a removed job continues, as with OP_JOB_REMOVE. */
static bool apply_removals(struct store *s, struct op *op, struct err *e)
{
	struct op_job_apply *a = job_apply_op(op);

	for (size_t i = 0; op->ok && i < a->n_remove; i++) {
		AUTO(op) *one = op_new(OP_JOB_REMOVE, NULL, NULL);

		op_fill(job_cancel_op(one), .uid = a->scope, .id = a->remove[i], .now = a->now);
		one->ok = true;
		one->act = op->act;
		if (!job_cancel_apply(s, &one, 1, e))
			return false;
		if (!one->ok)
			apply_refused(op, JOB_APPLY_REMOVE, i, &one->err);
	}
	return true;
}

static bool apply_changes(struct store *s, struct op *op, struct err *e)
{
	struct op_job_apply *a = job_apply_op(op);

	for (size_t i = 0; op->ok && i < a->n_change; i++) {
		struct err why = {};

		if (!job_change(s, a->change[i], &op->act.by, &why, e))
			return false;
		if (why.kind)
			apply_refused(op, JOB_APPLY_CHANGE, i, &why);
	}
	return true;
}

static bool apply_additions(struct store *s, struct op *op, struct err *e)
{
	struct op_job_apply *a = job_apply_op(op);
	struct err why = {};
	size_t failed = 0;

	if (!op->ok || a->n_add == 0)
		return true;
	if (!job_add_many(s, &(struct job_add_list){.v = a->add, .n = a->n_add, .by = &op->act.by}, &why, &failed, e))
		return false;
	return !why.kind || apply_refused(op, JOB_APPLY_ADD, failed, &why);
}

static bool apply_members(struct store *s, struct op *op, struct err *e)
{
	const struct op_job_apply *a = job_apply_op(op);
	AUTO_SET members = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < a->n_add; i++)
		set_id(&members, a->add[i].id);
	for (size_t i = 0; i < a->n_adopt; i++)
		set_id(&members, a->adopt[i]);
	if (!op->ok || !a->set || members.n == 0)
		return true;
	q = query_start(s->db, Q_APPLIED_PUT, e);
	set_bind(&q, &members);
	query_text(&q, a->set);
	return query_finish(&q);
}

/* Removals come first: they make room for new jobs within the limits of the owner. */
static bool apply_parts(struct store *s, struct op *op, struct err *e)
{
	return apply_removals(s, op, e) && apply_changes(s, op, e) && apply_additions(s, op, e) && apply_members(s, op, e);
}

bool job_apply_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	const struct db_ops *db = s->db->ops;

	for (size_t k = 0; k < n; k++) {
		struct op *op = ops[k];
		size_t mark = counters_mark(s), events = event_mark(s);

		if (!db->savepoint(s->db, e) || !apply_parts(s, op, e))
			return false;
		if (!op->ok) {
			counters_rewind(s, mark);
			event_rewind(s, events);
		}
		if (!(op->ok ? db->release : db->rollback_to)(s->db, e))
			return false;
	}
	return true;
}

void job_apply_reset(struct op *op)
{
	struct op_job_apply *a = job_apply_op(op);

	for (size_t i = 0; i < a->n_add; i++)
		job_new_reset(&a->add[i]);
	for (size_t i = 0; i < a->n_change; i++) {
		struct op_job_change *c = a->change[i];

		c->revision = c->unplanned = c->run = 0;
		c->was = c->state = JOB_ACTIVE;
	}
	a->part = JOB_APPLY_REMOVE;
	a->failed = 0;
}

void job_apply_free(struct op *op)
{
	struct op_job_apply *a = job_apply_op(op);

	free(a->add);
	free(a->change);
	free(a->remove);
	free(a->adopt);
	if (a->data_free)
		a->data_free(a->data);
}

void job_apply_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	const struct op_job_apply *o = job_apply_op(op);

	for (size_t i = 0; i < o->n_add; i++)
		job_new_owner(s, &o->add[i], owners);
	for (size_t i = 0; i < o->n_change; i++)
		set_id(jobs, o->change[i]->id);
}
