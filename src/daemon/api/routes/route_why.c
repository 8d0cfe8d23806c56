/* SPDX-License-Identifier: Apache-2.0 */
/* Route that explains why a job runs or waits. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/call.h"
#include "core/job/event.h"
#include "core/time/schedule_set.h"
#include "core/time/slots.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/why_facts.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "store/lists.h"
#include "store/read/list/list_events.h"
#include "store/read/list/list_runs.h"
#include "store/read/single.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <inttypes.h>
#include <stdio.h>

#define NEXT_SLOTS 5
#define NEAR                                                                                       \
	USEC_SEC /* tolerance: slots are whole seconds, and a given time may lack the fraction */

struct why_query {
	struct store_read q;
	char *ref;               /* owned */
	usec_t at;               /* 0: not given */
	int64_t run;             /* 0: not given */
	size_t limit;
	struct why_live live;
	struct zone_cache *zones;
};

static void free_why(struct store_read *q)
{
	free(((struct why_query *)q)->ref);
	free(q);
}

static json_t *reason_to_json(const struct why_reason *r)
{
	return json_pack("{s:s, s:o, s:o}", "code", why_code_name(r->code), "message",
		json_value_text(r->message), "command",
		json_value_text(r->command[0] ? r->command : NULL));
}

/* The name of an ended job may have been reused, so its number is used. */
static const char *route_why_ref(const struct job *j, char number[24])
{
	snprintf(number, 24, "%" PRId64, j->id);
	return j->name && j->state < JOB_FINISHED ? j->name : number;
}

/* A planned run that a pause, a freeze or a missing spawner keeps from starting. */
static bool is_run_held(const struct why_facts_job *l, const struct run *r)
{
	if (r->state != RUN_QUEUED || r->forced)
		return false;
	return l->held.code == WHY_NO_SPAWNER ||
	       (l->held.code != WHY_NONE && l->pause_until > r->due_at);
}

/*
 * A run with its reason. For the open run, the reason of the job is more precise. NULL: the read
 * failed.
 */
static json_t *run_why(struct store *s, const struct why_query *w, const struct job *j,
	const struct why_facts_job *l, const struct run *r, struct err *e)
{
	AUTO_TEXT error = NULL;
	struct why_reason why;
	char number[24];
	json_t *o;

	if (l->open && l->open->id == r->id)
		why = l->now;
	else if (is_run_held(l, r))
		why = l->held;
	else if (why_facts_last_error(s, r, &error, e))
		why_run(r, error, call_kind_of(&l->spec) != CALL_NONE, route_why_ref(j, number), w->live.now, &why);
	else
		return NULL;
	o = row_json_run(r);
	json_object_set_new(o, "why", reason_to_json(&why));
	return o;
}

static bool write_last_runs(struct store *s, const struct why_query *w, const struct job *j,
	const struct why_facts_job *l, json_t *to, struct err *e)
{
	struct run_filter f = {.uid = -1, .job = j->id, .limit = w->limit};
	AUTO_DONE(run_list) runs = {};

	if (w->limit > 0 && !list_runs_page(s, &f, &runs, e))
		return false;
	for (size_t i = 0; i < runs.n; i++)
		if (json_array_append_new(to, run_why(s, w, j, l, runs.v[i], e)) < 0)
			return false;
	return true;
}

/* Writes the slots that will run: none within a pause, and none after the next pause begins. */
static void write_next_slots(const struct why_facts_job *l, const struct job *j, usec_t now,
	json_t *to)
{
	usec_t slot = l->pause_until > now ? l->pause_until - 1 : now;

	if (l->pause_until == USEC_NEVER)
		return;
	if (j->state >= JOB_FINISHED || j->state == JOB_SUSPENDED || !l->set ||
		schedule_set_follows(l->set) ||
		schedule_set_kind(l->set) == SCHEDULE_NOW) /* its only slot was when it was added */
		return;
	for (int i = 0;
		i < NEXT_SLOTS && schedule_set_next(l->set, slot, &slot) && slot < l->pause_from;
		i++)
		json_array_append_new(to, json_value_time(slot));
}

/* ---- a given time ---- */

static usec_t distance(usec_t a, usec_t b)
{
	return a > b ? a - b : b - a;
}

/* The run whose slot, or series of slots, includes the given time; NULL: none. */
static bool read_run_at(struct store *s, const struct why_query *w, const struct job *j,
	struct run **ret, struct err *e)
{
	struct run_filter f = {.uid = -1, .job = j->id, .slot_until = w->at + NEAR, .limit = 1};
	AUTO_DONE(run_list) runs = {};

	if (!list_runs_page(s, &f, &runs, e))
		return false;
	if (runs.n && (distance(runs.v[0]->slot, w->at) < NEAR ||
			(runs.v[0]->slot_count > 1 && runs.v[0]->slot_last + NEAR > w->at)))
		*ret = STEAL(runs.v[0]);
	return true;
}

/* The pause in force at that time: the last pause event before it, unless a resume followed. */
static bool paused_at(struct store *s, const struct job *j, usec_t at, struct event_list *ret,
	struct err *e)
{
	struct event_filter f = {
		.uid = -1, .jobs = &j->id, .n_jobs = 1, .until = at + 1, .limit = 1};

	f.whats = UINT64_C(1) << EVENT_JOB_PAUSE | UINT64_C(1) << EVENT_JOB_RESUME;
	if (!list_events_page(s, &f, ret, e))
		return false;
	if (ret->n > 0 && ret->v[0]->what == EVENT_JOB_RESUME)
		event_list_cut(ret, 0);
	return true;
}

/*
 * The slots around the given time: the previous one from the runs, the next one from the current
 * schedule.
 */
static bool read_neighbours(struct store *s, const struct why_query *w, const struct job *j,
	const struct why_facts_job *l, struct why_moment *m, struct err *e)
{
	struct run_filter f = {.uid = -1, .job = j->id, .slot_until = w->at, .limit = 1};
	AUTO_DONE(run_list) before = {};
	usec_t slot;

	if (!list_runs_page(s, &f, &before, e))
		return false;
	if (before.n)
		m->previous = before.v[0]->slot_last > before.v[0]->slot ? before.v[0]->slot_last
									 : before.v[0]->slot;
	if (l->set && schedule_set_next(l->set, w->at - NEAR, &slot)) {
		m->is_slot = distance(slot, w->at) < NEAR;
		m->next = slot;
	}
	return true;
}

static bool write_moment(struct store *s, const struct why_query *w, const struct job *j,
	const struct why_facts_job *l, json_t *to, struct err *e)
{
	struct why_moment m = {.at = w->at, .now = w->live.now, .created_at = j->created_at};
	AUTO_DONE(event_list) paused = {};
	AUTO(run) *run = NULL;
	struct why_reason why;
	char number[24];
	json_t *o, *shown = json_null();

	if (!read_run_at(s, w, j, &run, e) || !read_neighbours(s, w, j, l, &m, e) ||
		!paused_at(s, j, w->at, &paused, e) ||
		(run && !(shown = run_why(s, w, j, l, run, e))))
		return false;
	m.ref = route_why_ref(j, number);
	m.paused = paused.n ? paused.v[0] : NULL;
	why_at(&m, &why);
	o = json_pack("{s:o, s:o, s:o, s:o}", "at", json_value_time(w->at), "run", shown,
		"previous", json_value_time(m.previous), "next", json_value_time(m.next));
	json_object_set_new(o, "why",
		run ? json_incref(json_object_get(json_object_get(o, "run"), "why"))
		    : reason_to_json(&why));
	json_object_set_new(to, "at", o);
	return true;
}

/* ---- response ---- */

static bool write_one_run(struct store *s, const struct why_query *w, const struct job *j,
	const struct why_facts_job *l, json_t *to, struct err *e)
{
	AUTO(run) *r = NULL;
	json_t *shown;

	if (!store_run_get(s, -1, w->run, &r, e))
		return false;
	if (r->job != j->id)
		return err_set(e, ERR_NOT_FOUND, "job %" PRId64 " has no run %" PRId64, j->id,
			w->run);
	shown = run_why(s, w, j, l, r, e);
	return shown && json_object_set_new(to, "run", shown) == 0;
}

static bool run_why_query(struct store *s, struct store_read *q, struct err *e)
{
	struct why_query *w = (struct why_query *)q;
	AUTO_DONE(why_facts_job) l = {};
	json_auto_t *o = json_object(), *runs = json_array(), *next = json_array();
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, w->ref, &j, e) || !why_waiting_read(s, &j, 1, e) ||
	    !why_facts_read(s, &w->live, w->zones, j, &l, e))
		return false;
	json_object_set_new(o, "job", json_integer(j->id));
	json_object_set_new(o, "name", json_value_text(j->name));
	json_object_set_new(o, "state", json_value_text(job_state_name(j->state)));
	json_object_set_new(o, "now", reason_to_json(&l.now));
	write_next_slots(&l, j, w->live.now, next);
	json_object_set(o, "next", next);
	json_object_set_new(o, "run", json_null());
	json_object_set_new(o, "at", json_null());
	if (!write_last_runs(s, w, j, &l, runs, e) ||
		(w->run && !write_one_run(s, w, j, &l, o, e)) ||
		(w->at && !write_moment(s, w, j, &l, o, e)))
		return false;
	json_object_set(o, "runs", runs);
	json_value_write(o, &q->out);
	buf_char(&q->out, '\n');
	return true;
}

void route_job_why(struct request *r)
{
	struct why_query *w = xcalloc(1, sizeof(*w));

	w->ref = xstrdup(r->params[0]);
	w->at = request_number(r, "at", 0);
	w->run = request_number(r, "run", 0);
	w->limit = (size_t)request_number(r, "limit", 10);
	w->zones = request_reader_zones(r);
	why_facts_live(r, &w->live);
	w->q.run = run_why_query;
	w->q.free = free_why;
	store_read_start(r, &w->q);
}
