/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts runs, and ends queued runs that never start. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/ops/owner_quota.h"
#include "store/ops/run/runs.h"
#include "store/outcomes.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

void runs_describe(struct set *set, const struct run_new *r)
{
	set_item(set);
	set_int(set, "id", r->id);
	set_int(set, "job", r->job);
	set_int(set, "uid", r->uid);
	set_int(set, "kind", r->kind);
	set_int(set, "state", r->state);
	set_text(set, "reason", r->reason);
	set_int(set, "slot", r->slot);
	set_int(set, "slot_last", r->slot_last ? r->slot_last : r->slot);
	set_int(set, "slot_count", r->slot_count ? r->slot_count : 1);
	set_int(set, "due_at", r->due_at);
	set_int(set, "revision", r->revision);
	set_int(set, "priority", r->priority);
	set_text(set, "queue", r->queue);
	set_int(set, "now", r->now);
	set_int(set, "overlap", r->policy.overlap);
	set_int(set, "overlap_waiting", r->policy.overlap_waiting);
	set_int(set, "places", r->policy.permits);
	set_int(set, "deadline", r->policy.deadline);
	set_int(set, "expires", r->policy.expires);
	set_int(set, "gated", r->policy.gated);
	set_int(set, "notifies", r->policy.notifies);
	set_int(set, "forced", r->forced);
	set_int(set, "caught_up", r->caught_up);
	set_text(set, "params", r->params);
}

/*
 * Adds the outcome of a run that is inserted as skipped; the rest of the row has its notice
 * settings.
 */
static void note_skipped(struct store *s, int64_t id, enum run_state state, struct query *q)
{
	struct outcome o = {.run = id, .state = state};

	o.job = query_get_int(q);
	o.slot = query_get_int(q);
	o.at = query_get_int(q);
	o.reason = query_get_text(q);
	o.notifies = query_get_int(q);
	outcome_note(s, &o);
	counter_slots(s, state, o.reason, query_get_int(q));
}

void run_new_account(struct store *s, const struct run_new *r)
{
	struct outcome o = {.run = r->id, .state = r->state, .job = r->job, .slot = r->slot_last ? r->slot_last : r->slot, .at = r->now,
		.reason = r->reason, .notifies = r->policy.notifies};

	counter_change(s, COUNT_RUNS, r->state, r->queue, 1);
	owner_quota_add(s, r->uid, RUN_BYTES + (r->params ? (int64_t)strlen(r->params) : 0));
	if (r->state == RUN_QUEUED) {
		wakeup_claim_by(s, r->due_at);
		return;
	}
	outcome_note(s, &o);
	counter_slots(s, r->state, r->reason, r->slot_count ? r->slot_count : 1);
}

bool runs_insert(struct store *s, struct set *set, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_INSERT, e);
	set_bind(&q, set);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q), state = query_get_int(&q);
		usec_t due_at;
		int64_t uid;

		counter_change(s, COUNT_RUNS, state, query_get_text(&q), 1);
		due_at = query_get_int(&q);
		uid = query_get_int(&q);
		owner_quota_add(s, uid, query_get_int(&q));
		if (state == RUN_QUEUED)
			wakeup_claim_by(s, due_at);
		else
			note_skipped(s, id, (enum run_state)state, &q);
		if (ret_n)
			++*ret_n;
	}
	return !q.failed;
}

bool run_insert_free(struct store *s, struct set *set, const struct run_new *r, struct err *e)
{
	size_t n = 0;

	if (!s->db->defer)
		return runs_insert(s, set, &n, e) && (n == 1 || err_set(e, ERR_INTERNAL, "the slot of the new run is not free"));
	run_new_account(s, r);
	return set_execute(s, Q_RUNS_INSERT_NEW, set, e);
}

void run_changes_add(struct run_changes *l, const struct run_change *r)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = *r;
}

void runs_describe_end(struct set *set, int64_t run, enum run_state state, const char *reason)
{
	set_item(set);
	set_int(set, "run", run);
	set_int(set, "state", state);
	set_text(set, "reason", reason);
}

bool runs_end_queued(struct store *s, struct set *set, usec_t now, struct run_changes *ret, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_SETTLE, e);
	set_bind(&q, set);
	query_int(&q, now);
	while (query_row(&q)) {
		struct outcome o = {.at = now};
		const char *queue;
		int64_t uid, fence;

		o.run = query_get_int(&q);
		o.job = query_get_int(&q);
		uid = query_get_int(&q);
		queue = query_get_text(&q);
		o.state = (enum run_state)query_get_int(&q);
		fence = query_get_int(&q);
		counter_run_moved(s, RUN_QUEUED, o.state, uid, queue);
		o.slot = query_get_int(&q);
		o.reason = query_get_text(&q);
		o.notifies = query_get_int(&q);
		outcome_note(s, &o);
		counter_slots(s, o.state, o.reason, 1);
		run_changes_add(ret, &(struct run_change){.job = o.job, .run = o.run, .fence = fence, .state = o.state});
		set_id(jobs, o.job);
	}
	return !q.failed;
}

void run_changes_done(struct run_changes *l)
{
	free(l->v);
	*l = (struct run_changes){};
}
