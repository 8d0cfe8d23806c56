/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an operation: made, filled with results, cleared for another try, freed. */
#include "store/ops/op.h"
#include "base/text.h"
#include "store/store_private.h"
#include <stdarg.h>
#include <stdio.h>

struct op *op_new(enum op_kind kind, void (*on_done)(struct op *, void *), void *arg)
{
	struct op *op = xcalloc(1, sizeof(*op));

	op->kind = kind;
	op->on_done = on_done;
	op->arg = arg;
	op->act.by = ACTOR_SYSTEM;
	return op;
}

void claim_list_done(struct claim_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		run_free(l->v[i].run);
		free(l->v[i].spec);
	}
	free(l->v);
	*l = (struct claim_list){};
}

void run_changes_done(struct run_changes *l)
{
	free(l->v);
	*l = (struct run_changes){};
}

void job_list_done(struct job_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		job_free(l->v[i]);
	free(l->v);
	*l = (struct job_list){};
}

void run_list_done(struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		run_free(l->v[i]);
	free(l->v);
	*l = (struct run_list){};
}

void attempt_list_done(struct attempt_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		attempt_free(l->v[i]);
	free(l->v);
	*l = (struct attempt_list){};
}

void notice_free(struct notice *n)
{
	if (!n)
		return;
	free(n->job_name);
	free(n->owner);
	free(n->channel);
	free(n->detail);
	free(n->error);
	free(n);
}

void notice_list_done(struct notice_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		notice_free(l->v[i]);
	free(l->v);
	*l = (struct notice_list){};
}

void plan_run_add(struct planned *p, const struct planned_run *run)
{
	p->runs = xgrow(p->runs, p->n, sizeof(*p->runs));
	p->runs[p->n++] = *run;
}

void job_new_reset(struct job_new *j)
{
	j->id = j->run = j->crowd = 0;
	j->existed = j->replaced = false;
}

static void reset_change(struct op_job_change *c)
{
	c->revision = c->unplanned = c->run = 0;
	c->was = c->state = JOB_ACTIVE;
}

static void reset_job_cancel(struct op_job_cancel *c)
{
	free(STEAL(c->name));
	c->was = JOB_ACTIVE;
	c->queued_cancelled = 0;
	run_list_done(&c->open);
}

static void reset_dead(struct op_dead *d)
{
	run_list_done(&d->runs);
	d->refused = d->next = 0;
	d->why = (struct err){};
	d->more = false;
	d->next_at = 0;
}

static void reset_pause(struct op_pause *p)
{
	free(STEAL(p->name));
	p->was = JOB_ACTIVE;
	run_list_done(&p->open);
}

static void reset_resume(struct op_resume *r)
{
	free(STEAL(r->name));
	r->was = JOB_ACTIVE;
	r->found = false;
	r->released = 0;
}

static void reset_lease(struct op_lease *l)
{
	l->displaced = l->leads = l->took = l->draining = false;
	l->now = l->term = l->others = l->leader_remains = 0;
	l->segments = 0;
	l->first_slot = l->worked = 0;
	l->planner[0] = l->leader[0] = '\0';
}

static void reset_relay(struct op_relay *r)
{
	free(STEAL(r->holder));
	free(STEAL(r->name));
	r->gone = false;
	if (r->verb == RELAY_TAKE)
		relay_part_done(&r->part);
}

static void reset_of_node(struct op *op)
{
	switch (op->kind) {
	case OP_NODE_OPEN:
		claim_list_done(&op->node_open.same_spawner);
		claim_list_done(&op->node_open.other_spawner);
		op->node_open.last_seen = 0;
		op->node_open.others = 0;
		break;
	case OP_NODE_COMMAND:
		op->node_command.changed = false;
		op->node_command.others = 0;
		break;
	case OP_LEASE:
		reset_lease(&op->lease);
		break;
	case OP_LEAD:
		claim_list_done(&op->lead.lost);
		op->lead.dead = op->lead.live = op->lead.moved = 0;
		break;
	case OP_NODE_POLL:
		run_changes_done(&op->look.to_end);
		break;
	case OP_RELAY_ADD:
	case OP_RELAY:
		reset_relay(&op->relay);
		break;
	default:
		break;
	}
}

/* Of limits, notices and nodes. */
static void reset_of_house(struct op *op)
{
	switch (op->kind) {
	case OP_LIMIT_SET:
	case OP_LIMIT_RM:
		op->limit.created = false;
		break;
	case OP_NOTICE_ADD:
		notice_list_done(&op->notice_add.added);
		break;
	case OP_NOTICE_TAKE:
		notice_list_done(&op->notice_take.taken);
		op->notice_take.held = false;
		break;
	case OP_NOTICE_DONE:
		op->notice_done.stale = false;
		break;
	default:
		reset_of_node(op);
		break;
	}
}

void op_reset(struct op *op)
{
	op->ok = true;
	op->err = (struct err){};
	switch (op->kind) {
	case OP_JOB_ADD:
		job_new_reset(&op->add);
		break;
	case OP_JOB_BULK:
		for (size_t i = 0; i < op->bulk.n; i++)
			job_new_reset(&op->bulk.v[i]);
		op->bulk.failed = 0;
		break;
	case OP_JOB_CANCEL:
	case OP_JOB_REMOVE:
		reset_job_cancel(&op->job_cancel);
		break;
	case OP_JOB_CHANGE:
		reset_change(&op->change);
		break;
	case OP_TEMPLATE_PUT:
	case OP_TEMPLATE_REMOVE:
		op->template.revision = 0;
		break;
	case OP_RUN_CANCEL:
		run_free(STEAL(op->run_cancel.run));
		op->run_cancel.was_final = false;
		break;
	case OP_PRUNE:
		free(STEAL(op->prune.outputs));
		op->prune.n_outputs = 0;
		op->prune.runs = op->prune.jobs = op->prune.events = 0;
		break;
	case OP_PAUSE:
		reset_pause(&op->pause);
		break;
	case OP_RESUME:
		reset_resume(&op->resume);
		break;
	case OP_PAUSES_END:
		op->pauses_end.jobs = op->pauses_end.scopes = op->pauses_end.released = op->pauses_end.begun = 0;
		break;
	case OP_EXPIRE:
		run_changes_done(&op->expire.expired);
		break;
	case OP_TRIGGER:
		run_free(STEAL(op->trigger.run));
		break;
	case OP_PLAN:
		op->plan.jobs = op->plan.runs = 0;
		break;
	case OP_LATE:
		op->late.missed = op->late.undone = 0;
		op->late.more = 0;
		break;
	case OP_BOOT:
		op->boot.runs = 0;
		break;
	case OP_CLAIM:
		claim_list_done(&op->claim.claimed);
		run_changes_done(&op->claim.settled);
		run_changes_done(&op->claim.replaced);
		break;
	case OP_ENDED:
		op->ended.became = op->ended.state;
		op->ended.stale = op->ended.job_finished = op->ended.job_paused = false;
		op->ended.job = 0;
		break;
	case OP_DEAD_RETRY:
	case OP_DEAD_PURGE:
		reset_dead(&op->dead);
		break;
	default:
		reset_of_house(op);
		break;
	}
}

void op_free(struct op *op)
{
	if (!op)
		return;
	op_reset(op);
	if (op->kind == OP_JOB_BULK)
		free(op->bulk.v);
	if (op->kind == OP_ENDED) {
		free(op->ended.tail);
		free(op->ended.attempt.node);
		free(op->ended.attempt.spawner);
		free(op->ended.attempt.error);
	}
	if (op->kind == OP_RELAY_ADD || op->kind == OP_RELAY) {
		free(op->relay.ran_on);
		relay_part_done(&op->relay.part);
	}
	if (op->kind == OP_NODE_CLOSE)
		free(op->node_close.held);
	if (op->kind == OP_NOTICE_TAKE)
		free(op->notice_take.in_use);
	if (op->kind == OP_NOTICE_DONE)
		free(op->notice_done.error);
	if (op->kind == OP_NOTICE_RESUME)
		free(op->notice_resume.under_way);
	free(op);
}

bool op_refuse(struct op *op, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	op->ok = false;
	op->err = (struct err){.kind = kind};
	va_start(ap, fmt);
	vsnprintf(op->err.msg, sizeof(op->err.msg), fmt, ap);
	va_end(ap);
	return true;
}
