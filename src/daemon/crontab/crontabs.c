/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the crontabs from the spawner and brings the store in step. */
#include "daemon/crontab/crontabs.h"
#include "base/log.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/decide/machine_conditions.h"
#include "daemon/loop/config.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/dispatcher.h"
#include "exec/proto/table_list.h"
#include "store/ops/op.h"
#include "store/ops/owners.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 5 /* attempts in a row if jobs change at the same time */

struct crontabs {
	struct crontabs_options o;
	int64_t configured;            /* enum config_crontabs; a shared store makes o.mode off */
	struct table_list list;        /* of the last plan, which borrows it */
	struct table_list pending;     /* newer */
	bool has_pending, received;
	char *cron, *anacron;          /* owned: of the newest list; NULL: none */
	int64_t parser;                /* the same: enum crontab_mode; -1: not known */
	bool started, stopped;
	bool planning;                 /* a plan is made or applied */
	bool again;                    /* a newer list, or another mode, has come meanwhile */
	size_t open;                   /* operations under way */
	bool refused;                  /* one of them was refused */
	unsigned rounds;
	struct table_states states;
	bool read;                     /* 'states' is set */
	char *problem;                 /* owned; NULL: none */
};

/* ---- whether the jobs run ---- */

static const char *reason_of(const struct crontabs *c, const char *other)
{
	if (c->o.mode == CRONTABS_ON)
		return other ? CRONTABS_HELD_REASON : NULL;
	return c->o.mode == CRONTABS_SHADOW ? CRONTABS_SHADOW_REASON : "crontabs off";
}

static void gate_set(struct crontabs *c)
{
	const struct table_gate gate = {
		.unknown = c->o.mode == CRONTABS_ON && !c->received,
		.cron = reason_of(c, c->cron),
		.anacron = reason_of(c, c->anacron),
	};

	dispatcher_set_tables(c->o.dispatcher, &gate);
	c->o.on_change(c->o.arg);
}

/* ---- keeping in step ---- */

static void plan_start(struct crontabs *c);

static void problem_set(struct crontabs *c, const char *why)
{
	if (why && !text_equal(why, c->problem))
		log_error("the jobs of crontabs are not in step with the files: %s", why);
	free(c->problem);
	c->problem = xstrdup(why);
}

static void plan_end(struct crontabs *c)
{
	bool again = c->again || c->refused;

	c->planning = false;
	if (!again) {
		c->rounds = 0;
		return;
	}
	if (!c->again && ++c->rounds >= ROUNDS_MAX) {
		c->rounds = 0;
		return; /* the next change of a file tries again */
	}
	plan_start(c);
}

static void on_changes_done(struct op *op, void *arg)
{
	struct crontabs *c = arg;

	if (!op->ok) {
		c->refused = true;
		problem_set(c, op->err.msg);
	}
	op_free(op);
	if (--c->open == 0)
		plan_end(c);
}

static void on_owner_done(struct op *op, void *arg)
{
	struct crontabs *c = arg;

	c->refused |= !op->ok;
	if (!op->ok)
		problem_set(c, op->err.msg);
	free((char *)owner_op(op)->name);
	op_free(op);
	if (--c->open == 0)
		plan_end(c);
}

static void submit(struct crontabs *c, struct op *op, void (*done)(struct op *, void *))
{
	op->on_done = done;
	op->arg = c;
	c->open++;
	store_thread_submit(c->o.store, op);
}

/* Owners that the store does not know get a number; then the plan is made again. */
static void owners_add(struct crontabs *c, struct table_plan *p)
{
	c->again = true;
	for (size_t i = 0; i < p->n_missing; i++) {
		struct op *op = op_new(OP_OWNER, NULL, NULL);

		op_fill(owner_op(op), .uid = p->missing[i].uid, .name = STEAL(p->missing[i].name), .now = p->now);
		submit(c, op, on_owner_done);
	}
}

static void plan_apply(struct crontabs *c, struct table_plan *p)
{
	table_states_done(&c->states);
	c->states = p->states;
	p->states = (struct table_states){};
	c->read = true;
	problem_set(c, NULL);
	for (size_t i = 0; i < p->n_changes; i++)
		submit(c, STEAL(p->changes[i]), on_changes_done);
}

static void on_planned(struct read_task *task)
{
	struct table_plan *p = (struct table_plan *)task;
	struct crontabs *c = p->arg;

	c->open = 1; /* so that the operations cannot end the plan before all are submitted */
	c->refused = false;
	if (c->stopped)
		c->again = false;
	else if (!p->ok) {
		c->refused = true;
		problem_set(c, p->err.msg);
	} else if (p->n_missing)
		owners_add(c, p);
	else
		plan_apply(c, p);
	table_plan_free(p);
	if (--c->open == 0 && !c->stopped)
		plan_end(c);
}

static void plan_start(struct crontabs *c)
{
	struct table_plan *p;

	c->again = c->planning;
	if (!c->started || c->planning || c->stopped || (c->o.mode != CRONTABS_OFF && !c->received))
		return;
	if (c->has_pending) {
		table_list_done(&c->list);
		c->list = c->pending;
		c->pending = (struct table_list){};
		c->has_pending = false;
	}
	p = xcalloc(1, sizeof(*p));
	p->task = (struct read_task){.work = table_plan_work, .done = on_planned};
	p->list = c->o.mode == CRONTABS_OFF ? NULL : &c->list;
	p->now = clock_now(c->o.clock);
	p->arg = c;
	c->planning = true;
	store_thread_read_long(c->o.store, &p->task);
}

static void other_crons_note(struct crontabs *c, const struct table_list *l)
{
	if (c->o.mode == CRONTABS_ON && l->cron && *l->cron && !text_equal(l->cron, c->cron))
		log_warning("%s: the jobs of crontabs are held; 'jobctl cron takeover' stops it", l->cron);
	free(c->cron);
	free(c->anacron);
	c->cron = l->cron && *l->cron ? xstrdup(l->cron) : NULL;
	c->anacron = l->anacron && *l->anacron ? xstrdup(l->anacron) : NULL;
	c->parser = l->mode;
}

static void on_tables(const struct spawn_report *r, void *arg)
{
	struct crontabs *c = arg;
	struct table_list l;

	if (r->kind != SPAWN_TABLES || !spawner_link_tables(c->o.spawner, &l))
		return;
	table_list_done(&c->pending);
	c->pending = l;
	c->has_pending = true;
	if (c->o.mode == CRONTABS_OFF)
		return;
	c->received = true;
	other_crons_note(c, &c->pending);
	gate_set(c);
	plan_start(c);
}

/* ---- start, reload, stop ---- */

static const char shared_problem[] =
	"the store is shared by several machines, and a crontab belongs to one of them, so the tables are not read; add their lines "
	"with 'jobctl import crontab' and 'jobctl set JOB node-label=KEY=VALUE', or run a daemon with a SQLite store for them";

static int64_t mode_allowed(const struct crontabs_options *o, int64_t mode)
{
	if (mode != CRONTABS_OFF && o->shared) {
		log_error("'crontabs = %s' has no effect: %s", config_crontabs_names[mode], shared_problem);
		return CRONTABS_OFF;
	}
	return mode;
}

struct crontabs *crontabs_new(const struct crontabs_options *o)
{
	struct crontabs *c = xcalloc(1, sizeof(*c));

	c->o = *o;
	c->configured = o->mode;
	c->o.mode = mode_allowed(o, o->mode);
	c->parser = -1;
	spawner_link_set_client(o->spawner, SPAWNER_LINK_TABLES, on_tables, c);
	spawner_link_watch_tables(o->spawner, c->o.mode != CRONTABS_OFF);
	gate_set(c);
	return c;
}

void crontabs_start(struct crontabs *c)
{
	c->started = true;
	plan_start(c);
}

void crontabs_set_mode(struct crontabs *c, int64_t mode)
{
	if (mode == c->configured)
		return;
	c->configured = mode;
	mode = mode_allowed(&c->o, mode);
	if (mode == c->o.mode)
		return;
	log_info("crontabs are %s now", config_crontabs_names[mode]);
	c->o.mode = mode;
	c->received &= mode != CRONTABS_OFF;
	spawner_link_watch_tables(c->o.spawner, mode != CRONTABS_OFF);
	gate_set(c);
	plan_start(c);
}

void crontabs_stop(struct crontabs *c)
{
	c->stopped = true;
}

void crontabs_free(struct crontabs *c)
{
	if (!c)
		return;
	table_list_done(&c->list);
	table_list_done(&c->pending);
	table_states_done(&c->states);
	free(c->cron);
	free(c->anacron);
	free(c->problem);
	free(c);
}

void crontabs_status(const struct crontabs *c, struct crontabs_status *ret)
{
	*ret = (struct crontabs_status){
		.mode = c->o.mode,
		.configured = c->configured,
		.cron = c->cron,
		.anacron = c->anacron,
		.held = c->o.mode == CRONTABS_ON && c->cron,
		.read = c->read,
		.parser = c->parser >= 0 && c->parser < CRONTAB_MODE_MAX ? crontab_mode_names[c->parser] : NULL,
		.problem = c->o.shared ? shared_problem : c->problem,
		.tables = &c->states,
	};
}
