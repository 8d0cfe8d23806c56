/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the crontabs with the jobs of the store. */
#include "daemon/crontab/table_plan.h"
#include "base/buf.h"
#include "base/local_zone.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/crontab/anacrontab.h"
#include "core/crontab/crontab.h"
#include "core/crontab/table_job.h"
#include "core/job/job_diff.h"
#include "core/job/policy.h"
#include "core/time/civil.h"
#include "core/time/schedule_set.h"
#include "core/time/slots.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "daemon/loop/user_lookup.h"
#include "exec/proto/table_list.h"
#include "store/lists.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/owners.h"
#include "store/read/list/list_jobs.h"
#include "store/store.h"
#include "wire/spec_json.h"
#include <stdlib.h>
#include <string.h>

#define PAGE 500

/* A job of a table that is in the store. */
struct known {
	struct job *job;  /* owned */
	struct job_spec spec;
	bool seen;        /* a line of a table is this job */
};

struct account {
	char *name;       /* owned */
	uint32_t uid;
	int64_t number;   /* of the owner; -1: not in the store */
	bool exists;
};

struct planning {
	struct store *s;
	struct table_plan *p;
	struct zone_cache *zones;
	char *zone;             /* of the machine */
	struct known *known;    /* sorted by owner and name */
	size_t n_known;
	struct account *accounts;
	size_t n_accounts;
};

void table_states_done(struct table_states *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].user);
		free(l->v[i].problem);
		free(l->v[i].note);
	}
	free(l->v);
	*l = (struct table_states){};
}

void table_plan_free(struct table_plan *p)
{
	for (size_t i = 0; i < p->n_missing; i++)
		free(p->missing[i].name);
	for (size_t i = 0; i < p->n_changes; i++)
		op_free(p->changes[i]);
	free(p->missing);
	free(p->changes);
	table_states_done(&p->states);
	free(p);
}

static void planning_done(struct planning *g)
{
	for (size_t i = 0; i < g->n_known; i++) {
		job_free(g->known[i].job);
		job_spec_done(&g->known[i].spec);
	}
	for (size_t i = 0; i < g->n_accounts; i++)
		free(g->accounts[i].name);
	free(g->known);
	free(g->accounts);
	free(g->zone);
	zone_cache_free(g->zones);
}

/* ---- the jobs of the store ---- */

static int known_compare(const void *a, const void *b)
{
	const struct job *x = ((const struct known *)a)->job, *y = ((const struct known *)b)->job;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

/* A tag can be set by anybody, the origin only by the daemon. */
static void known_add(struct planning *g, struct job **job /* moved if used */)
{
	struct known k = {};

	job_spec_init(&k.spec);
	if (!spec_json_from_text((*job)->spec, &k.spec, NULL) || !k.spec.origin) {
		job_spec_done(&k.spec);
		return;
	}
	k.job = STEAL(*job);
	g->known = xgrow(g->known, g->n_known, sizeof(*g->known));
	g->known[g->n_known++] = k;
}

static bool known_read(struct planning *g, struct err *e)
{
	struct job_filter f = {.uid = -1, .tag_key = TABLE_TAG, .limit = PAGE};

	do {
		AUTO_DONE(job_list) page = {};

		if (!list_jobs_page(g->s, &f, &page, e))
			return false;
		for (size_t i = 0; i < page.n; i++)
			known_add(g, &page.v[i]);
		f.after = page.next;
	} while (f.after);
	if (g->n_known)
		qsort(g->known, g->n_known, sizeof(*g->known), known_compare);
	return true;
}

static struct known *known_find(struct planning *g, int64_t uid, const char *name)
{
	struct job wanted = {.uid = uid, .name = (char *)name};
	struct known key = {.job = &wanted};

	return g->n_known ? bsearch(&key, g->known, g->n_known, sizeof(*g->known), known_compare) : NULL;
}

/* ---- users ---- */

/* ERR_NOT_FOUND is no failure: the line is left out, as cron does. */
static bool account_find(struct planning *g, const char *name, const struct account **ret, struct err *e)
{
	struct account a = {.number = -1};
	struct err why = {};

	for (size_t i = 0; i < g->n_accounts; i++)
		if (strcmp(g->accounts[i].name, name) == 0) {
			*ret = &g->accounts[i];
			return true;
		}
	a.exists = user_lookup_uid(name, &a.uid, &why);
	if (!a.exists && why.kind != ERR_NOT_FOUND) {
		*e = why;
		return false;
	}
	if (a.exists && !owner_read_number(g->s, a.uid, name, &a.number, e))
		return false;
	a.name = xstrdup(name);
	if (a.exists && a.number < 0) {
		g->p->missing = xgrow(g->p->missing, g->p->n_missing, sizeof(*g->p->missing));
		g->p->missing[g->p->n_missing++] = (struct table_owner){a.uid, xstrdup(name)};
	}
	g->accounts = xgrow(g->accounts, g->n_accounts, sizeof(*g->accounts));
	g->accounts[g->n_accounts++] = a;
	*ret = &g->accounts[g->n_accounts - 1];
	return true;
}

static bool account_is_known(const char *name, void *arg)
{
	const struct account *a;
	struct err e = {};

	/* a database that does not answer is noticed again when the lines are used */
	return !account_find(arg, name, &a, &e) || a->exists;
}

/* ---- one table ---- */

/* Memory from which the operation of one table borrows. */
struct table_data {
	struct table_jobs jobs;
	struct strv texts;
	struct op **changes;
	size_t n_changes;
};

static void table_data_free(void *arg)
{
	struct table_data *d = arg;

	for (size_t i = 0; i < d->n_changes; i++)
		op_free(d->changes[i]);
	free(d->changes);
	table_jobs_done(&d->jobs);
	strv_done(&d->texts);
	free(d);
}

struct table_work {
	const struct table_file *file;
	struct table_state *state;
	struct table_data *data;
	struct op_job_apply *apply;
};

static void state_note(struct table_work *w, int64_t line, const char *why)
{
	if (!w->state->note)
		w->state->note = xprintf("line %lld is left out: %s", (long long)line, why);
}

static void warrant_set(const struct table_file *f, struct table_job *j)
{
	char text[WARRANT_HEX];

	for (size_t i = 0; i < f->warrants_n; i++)
		if (f->warrants[i].line == j->line && memcmp(f->warrants[i].job, j->identity, WARRANT_JOB_LEN) == 0) {
			free(j->spec.warrant);
			j->spec.warrant = xstrdup(warrant_print(f->warrants[i].job, f->warrants[i].warrant, text));
		}
}

/* Replaces the schedule by its canonical text and finds the first slot after 'now'. */
static bool slots_find(struct planning *g, struct job_spec *s, struct job_new *n, struct err *e)
{
	struct schedule_context c = {.anchor = n->now, .id = s->name, .accepted = true};
	AUTO(schedule_set) *set = NULL;
	AUTO_DONE(strv) texts = {};

	if (!zone_cache_get(g->zones, s->tz, &c.zone, e) || !schedule_set_parse(&s->schedule, &c, &set, e))
		return false;
	schedule_set_print(set, &texts);
	strv_done(&s->schedule);
	s->schedule = texts;
	texts = (struct strv){};
	if (!schedule_set_next(set, n->now, &n->next_slot))
		n->next_slot = 0;
	n->boots = schedule_set_boots(set);
	if (n->boots && !n->next_slot)
		n->next_slot = slot_boot_wait(0, n->now);
	if (!n->next_slot)
		n->next_slot = USEC_NEVER; /* it never fires */
	return true;
}

static void new_fill(struct job_new *n, const struct table_job *j, const char *text)
{
	n->owner = j->user;
	n->name = j->spec.name;
	n->spec = text;
	n->tags = &j->spec.tags;
	n->priority = j->spec.priority;
	policy_start_of(&j->spec, &n->policy);
}

static void job_put(struct table_work *w, struct known *k, const struct table_job *j, const struct job_new *n)
{
	struct op_job_apply *a = w->apply;
	struct op *op;

	if (!k) {
		a->add = xgrow(a->add, a->n_add, sizeof(*a->add));
		a->add[a->n_add++] = *n;
		return;
	}
	op = op_new(OP_JOB_CHANGE, NULL, NULL);
	op_fill(job_change_op(op), .uid = -1, .id = k->job->id, .expect = k->job->revision, .what = "crontab changed",
		.reschedule = !job_diff_slots_equal(&k->spec, &j->spec), .to = *n);
	w->data->changes = xgrow(w->data->changes, w->data->n_changes, sizeof(struct op *));
	w->data->changes[w->data->n_changes++] = op;
	a->change = xgrow(a->change, a->n_change, sizeof(struct op_job_change *));
	a->change[a->n_change++] = job_change_op(op);
}

static bool job_plan(struct planning *g, struct table_work *w, struct table_job *j, const struct account *a, struct err *e)
{
	struct job_new n = {.uid = a->number, .now = g->p->now};
	struct known *k = known_find(g, a->number, j->spec.name);
	AUTO_DONE(job_spec) back;
	AUTO_TEXT text = NULL;

	job_spec_init(&back);
	j->spec.tz = xstrdup(j->zone ? j->zone : g->zone);
	if (j->spec.schedule.n == 0 && k) /* of anacrontab: counts from the last run, so it is kept */
		strv_copy(&j->spec.schedule, &k->spec.schedule);
	warrant_set(w->file, j);
	if (!slots_find(g, &j->spec, &n, e) || !job_spec_check(&j->spec, e))
		return false;
	text = spec_json_to_text(&j->spec);
	if (!spec_json_from_text(text, &back, e))
		return false;
	w->state->jobs++;
	if (k)
		k->seen = true;
	if (k && text_equal(k->job->spec, text))
		return true;
	new_fill(&n, j, text);
	strv_take(&w->data->texts, STEAL(text));
	job_put(w, k, j, &n);
	return true;
}

/* Cron's rule for the owner of a user table. */
static bool owner_fits(struct planning *g, struct table_work *w, struct err *e)
{
	const struct account *a;

	if (w->file->kind != TABLE_USER)
		return true;
	if (!account_find(g, w->file->user, &a, e))
		return false;
	if (!a->exists)
		w->state->problem = xprintf("there is no user '%s'", w->file->user);
	else if (w->file->uid != 0 && w->file->uid != (int64_t)a->uid)
		w->state->problem = xprintf("it does not belong to '%s'", w->file->user);
	return true;
}

static int64_t day_of(const struct table_list *l, const char *id)
{
	for (size_t i = 0; i < l->stamps_n; i++)
		if (strcmp(l->stamps[i].id, id) == 0)
			return l->stamps[i].day;
	return 0;
}

/* New jobs of anacrontab count from the last run of anacron, or from yesterday. */
static bool anacron_schedules(struct planning *g, struct table_work *w, const struct anacrontab *t, struct err *e)
{
	const struct zone *zone;
	int64_t offset, yesterday;
	struct civil c;
	int rest;

	if (!zone_cache_get(g->zones, g->zone, &zone, e))
		return false;
	offset = zone_offset(zone ? zone : &zone_utc, g->p->now / USEC_SEC);
	c = civil_from_days(civil_split(g->p->now / USEC_SEC + offset, &rest) - 1);
	yesterday = c.year * INT64_C(10000) + c.month * 100 + c.day;
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct account *a;
		int64_t day = day_of(g->p->list, t->entries[i].id);

		if (!account_find(g, "root", &a, e))
			return false;
		if (known_find(g, a->number, w->data->jobs.v[i].spec.name))
			continue;
		strv_take(&w->data->jobs.v[i].spec.schedule, anacrontab_schedule(t, &t->entries[i], day ? day : yesterday, offset));
	}
	return true;
}

static bool table_read(struct planning *g, struct table_work *w, struct err *e)
{
	const struct table_file *f = w->file;
	const struct crontab_finding *bad;
	AUTO(anacrontab) *anacron = NULL;
	AUTO(crontab) *t = NULL;
	const char *data = f->content.data ? f->content.data : "";

	if (f->kind == TABLE_ANACRON) {
		anacrontab_parse(data, f->content.len, &anacron);
		table_jobs_build_anacron(anacron, f->path, &w->data->jobs);
		if (anacron->error_line)
			state_note(w, (int64_t)anacron->error_line, anacron->error);
		return anacron_schedules(g, w, anacron, e);
	}
	crontab_parse(data, f->content.len, &(struct crontab_options){.mode = (enum crontab_mode)g->p->list->mode,
		.system = f->kind == TABLE_SYSTEM, .user_exists = account_is_known, .arg = g, .seed = f->path, .no_logging = f->uid == 0}, &t);
	table_jobs_build(t, f->path, f->user, &w->data->jobs);
	for (size_t i = 0; i < w->data->jobs.n; i++) /* the zone is borrowed from the table */
		if (w->data->jobs.v[i].zone) {
			strv_add(&w->data->texts, w->data->jobs.v[i].zone);
			w->data->jobs.v[i].zone = w->data->texts.v[w->data->texts.n - 1];
		}
	bad = crontab_first_error(t);
	if (bad && !t->accepted)
		w->state->problem = xprintf("line %zu: %s; cron ignores the whole table", bad->line, bad->text);
	else if (bad)
		state_note(w, (int64_t)bad->line, bad->text);
	return true;
}

static bool table_jobs_plan(struct planning *g, struct table_work *w, struct err *e)
{
	for (size_t i = 0; i < w->data->jobs.n; i++) {
		struct table_job *j = &w->data->jobs.v[i];
		const struct account *a;
		struct err why = {};

		if (!account_find(g, j->user, &a, e))
			return false;
		if (!a->exists)
			state_note(w, j->line, "there is no such user");
		else if (a->number >= 0 && !job_plan(g, w, j, a, &why))
			state_note(w, j->line, why.msg);
	}
	return true;
}

/* Jobs of this table whose line is gone. 'path' NULL: of all tables that were not read. */
static void removals_plan(struct planning *g, struct table_work *w, const char *path)
{
	for (size_t i = 0; i < g->n_known; i++) {
		struct known *k = &g->known[i];
		const char *colon = strrchr(k->spec.origin, ':');

		if (k->seen || (path && (!colon || (size_t)(colon - k->spec.origin) != strlen(path) ||
			strncmp(k->spec.origin, path, strlen(path)) != 0)))
			continue;
		k->seen = true;
		w->apply->remove = xgrow(w->apply->remove, w->apply->n_remove, sizeof(*w->apply->remove));
		w->apply->remove[w->apply->n_remove++] = k->job->id;
	}
}

static struct op *work_begin(const struct planning *g, struct table_work *w)
{
	struct op *op = op_new(OP_JOB_APPLY, NULL, NULL);

	w->data = xcalloc(1, sizeof(*w->data));
	w->apply = job_apply_op(op);
	op_fill(w->apply, .scope = -1, .now = g->p->now, .data = w->data, .data_free = table_data_free);
	return op;
}

static void work_end(struct planning *g, struct op *op)
{
	const struct op_job_apply *a = job_apply_op(op);
	struct table_plan *p = g->p;

	if (a->n_add + a->n_change + a->n_remove == 0) {
		op_free(op);
		return;
	}
	p->changes = xgrow(p->changes, p->n_changes, sizeof(struct op *));
	p->changes[p->n_changes++] = op;
}

static struct table_state *state_new(struct planning *g, const struct table_file *f)
{
	struct table_states *l = &g->p->states;

	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct table_state){.path = xstrdup(f->path), .user = f->user[0] ? xstrdup(f->user) : NULL,
		.problem = f->problem[0] ? xstrdup(f->problem) : NULL};
	return &l->v[l->n++];
}

static bool table_plan_one(struct planning *g, const struct table_file *f, struct err *e)
{
	struct table_work w = {.file = f, .state = state_new(g, f)};
	struct op *op = work_begin(g, &w);
	bool ok = w.state->problem || owner_fits(g, &w, e);

	if (ok && !w.state->problem)
		ok = table_read(g, &w, e) && (w.state->problem || table_jobs_plan(g, &w, e));
	if (ok)
		removals_plan(g, &w, f->path);
	work_end(g, op);
	return ok;
}

static bool plan_all(struct planning *g, struct err *e)
{
	struct table_work rest = {};
	struct op *op;

	if (!known_read(g, e))
		return false;
	for (size_t i = 0; g->p->list && i < g->p->list->n; i++)
		if (!table_plan_one(g, &g->p->list->files[i], e))
			return false;
	op = work_begin(g, &rest);
	removals_plan(g, &rest, NULL);
	work_end(g, op);
	return true;
}

void table_plan_work(struct store *s, struct read_task *task)
{
	struct table_plan *p = (struct table_plan *)task;
	__attribute__((cleanup(planning_done))) struct planning g = {.s = s, .p = p};

	if (!s) {
		err_set(&p->err, ERR_BUSY, "the store is unavailable");
		return;
	}
	g.zones = zone_cache_new(tzfile_read);
	g.zone = local_zone();
	p->ok = plan_all(&g, &p->err);
}
