/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the notices that follow from the final states of runs. */
#include "store/outcomes.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/notice.h"
#include "store/counters.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>

struct noted {
	int64_t job;
	bool judged;      /* the outcome says something about the health of the job */
	bool output;      /* the output is mailed to those who want it */
	struct run_outcome o;
};

struct healths {
	struct map by_job; /* struct job_health, owned */
};

void outcome_note(struct store *s, const struct outcome *o)
{
	enum health health = HEALTH_GOOD;
	bool judged = notice_health_of(o->state, o->reason, &health);

	if ((!o->notifies && !s->note_all) || (!judged && !(o->output && o->notifies)))
		return;
	s->noted = xgrow(s->noted, s->n_noted, sizeof(*s->noted));
	s->noted[s->n_noted++] = (struct noted){o->job, judged, o->output && o->notifies, {o->run, health, o->slot, o->at, o->took}};
}

size_t outcome_mark(const struct store *s)
{
	return s->n_noted;
}

void outcome_rewind(struct store *s, size_t mark)
{
	if (s->n_noted > mark)
		s->n_noted = mark;
}

static void healths_done(struct healths *l)
{
	struct job_health *h;

	for (size_t i = 0; (h = map_next(&l->by_job, &i));)
		free(h);
	map_done(&l->by_job);
}

void outcome_health_read(struct query *q, struct job_health *h)
{
	h->bad = (enum health)query_get_int(q);
	h->since = query_get_int(q);
	h->slot = query_get_int(q);
	h->last_success = query_get_int(q);
	h->typical = query_get_int(q);
}

static bool healths_read(struct store *s, struct healths *ret, struct err *e)
{
	AUTO_DONE(map) seen = {};
	AUTO_SET jobs = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < s->n_noted; i++)
		if (!map_get(&seen, s->noted[i].job)) {
			map_put(&seen, s->noted[i].job, s);
			set_id(&jobs, s->noted[i].job);
		}
	q = query_start(s->db, Q_HEALTH_TAKE, e);
	set_bind(&q, &jobs);
	while (query_row(&q)) {
		struct job_health *h = xcalloc(1, sizeof(*h));
		int64_t job = query_get_int(&q);

		outcome_health_read(&q, h);
		map_put(&ret->by_job, job, h);
	}
	return !q.failed;
}

void outcome_notice_describe(struct set *set, int64_t job, int64_t run, enum notice_kind kind,
	const struct job_health *before, usec_t now)
{
	AUTO_TEXT detail = xprintf("{\"last_success\":%" PRId64 ",\"since\":%" PRId64 ",\"typical\":%" PRId64 "}",
		before->last_success, before->since, before->typical);

	set_item(set);
	set_int(set, "job", job);
	set_int(set, "run", run);
	set_text(set, "what", notice_kind_name(kind));
	set_int(set, "now", now);
	set_text(set, "detail", detail);
}

bool outcome_notices_insert(struct store *s, struct set *set, struct set *ret_ids, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_INSERT, e);
	set_bind(&q, set);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		counter_change(s, COUNT_NOTICES, NOTICE_WAITING, "", 1);
		if (ret_ids)
			set_id(ret_ids, id);
	}
	return !q.failed;
}

static void describe_health(struct set *set, int64_t job, const struct job_health *h)
{
	set_item(set);
	set_int(set, "job", job);
	set_int(set, "bad", h->bad);
	set_int(set, "since", h->since);
	set_int(set, "slot", h->slot);
	set_int(set, "last_success", h->last_success);
	set_int(set, "typical", h->typical);
	set_int(set, "success_at", h->at[HEALTH_GOOD]);
	set_int(set, "failure_at", h->at[HEALTH_FAILED]);
	set_int(set, "missed_at", h->at[HEALTH_MISSED]);
	set_int(set, "took", h->took);
}

bool outcomes_write(struct store *s, struct err *e)
{
	AUTO_DONE(healths) healths = {};
	AUTO_SET notices = {};
	AUTO_SET moved = {};

	if (s->n_noted == 0)
		return true;
	if (!healths_read(s, &healths, e))
		return false;
	for (size_t i = 0; i < s->n_noted; i++) {
		const struct noted *n = &s->noted[i];
		struct job_health *h = map_get(&healths.by_job, n->job), before = *h;
		enum notice_kind kind = n->judged ? notice_health_update(h, &n->o) : NOTICE_KIND_NONE;

		if (n->judged)
			h->at[n->o.health] = n->o.at;
		h->took = n->o.took > 0 ? n->o.took : h->took;
		if (kind != NOTICE_KIND_NONE)
			outcome_notice_describe(&notices, n->job, n->o.run, kind, &before, n->o.at);
		if (n->output)
			outcome_notice_describe(&notices, n->job, n->o.run, NOTICE_KIND_OUTPUT, &before, n->o.at);
	}
	for (size_t i = 0; i < s->n_noted; i++) {
		struct job_health *h = map_take(&healths.by_job, s->noted[i].job);

		if (h)
			describe_health(&moved, s->noted[i].job, h);
		free(h);
	}
	s->n_noted = 0;
	return set_execute(s, Q_HEALTH_PUT, &moved, e) && outcome_notices_insert(s, &notices, NULL, e);
}
