/* SPDX-License-Identifier: Apache-2.0 */
/* Event-driven simulation: a heap of slots and ends, and a waiting line per limit. */
#include "core/decide/simulate.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/decide/claim.h"
#include "core/time/schedule_set.h"
#include "core/time/zone.h"
#include <string.h>

struct sim_event {
	usec_t at;
	size_t job;
	bool is_slot;        /* an end comes before a slot of the same instant */
	unsigned replacement; /* of an end: the number of replacements of the job at its start */
};

struct sim_waiter {
	size_t job;
	usec_t slot;
};

/* The runs that wait for one limit, oldest first. */
struct sim_line {
	struct sim_waiter *v; /* owned */
	size_t begin, n;      /* the waiters are v[begin] to v[n - 1] */
	int64_t active;
};

/* State of a job that is not part of the result. */
struct sim_job {
	int64_t active, held; /* running runs; runs that wait for one of them to end */
	usec_t started_at;    /* of its newest run; 0: none */
	unsigned replacements;
};

struct sim {
	struct simulate *s;
	struct sim_job *jobs;
	struct sim_line *lines; /* one per limit */
	struct sim_event *heap;
	size_t n_heap;
	size_t waiting;
	int64_t active;
	size_t day;
	struct simulate_minute minute; /* the current one */
};

enum sim_decision { SIM_STARTED, SIM_WAITS, SIM_DROPPED };

/* ---- heap ---- */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	if (a->is_slot != b->is_slot)
		return b->is_slot;
	return a->job < b->job;
}

static void heap_push(struct sim *m, struct sim_event ev)
{
	size_t i = m->n_heap++;

	m->heap = xgrow(m->heap, i, sizeof(*m->heap));
	while (i > 0 && event_before(&ev, &m->heap[(i - 1) / 2])) {
		m->heap[i] = m->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->heap[i] = ev;
}

static struct sim_event heap_pop(struct sim *m)
{
	struct sim_event top = m->heap[0], last = m->heap[--m->n_heap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->n_heap) {
		if (child + 1 < m->n_heap && event_before(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!event_before(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	if (m->n_heap > 0)
		m->heap[i] = last;
	return top;
}

/* ---- figures ---- */

static struct simulate_day *current_day(struct sim *m, usec_t now)
{
	while (m->day + 1 < m->s->n_days && m->s->days[m->day + 1].from <= now) {
		m->day++;
		m->s->days[m->day].peak = m->active;
		m->s->days[m->day].peak_at = m->s->days[m->day].from;
	}
	return &m->s->days[m->day];
}

/* Keeps the minute if it is among the busiest. Of equal minutes the earlier one comes first. */
static void close_minute(struct sim *m)
{
	struct simulate *s = m->s;
	size_t i = s->n_busiest;

	if (m->minute.starts == 0)
		return;
	while (i > 0 && s->busiest[i - 1].starts < m->minute.starts) {
		if (i < SIMULATE_BUSIEST)
			s->busiest[i] = s->busiest[i - 1];
		i--;
	}
	if (i < SIMULATE_BUSIEST)
		s->busiest[i] = m->minute;
	if (s->n_busiest < SIMULATE_BUSIEST)
		s->n_busiest++;
}

static void count_start(struct sim *m, const struct simulate_job *j, usec_t now)
{
	struct simulate_day *day = current_day(m, now);
	usec_t minute = now / USEC_MIN * USEC_MIN;

	if (minute != m->minute.at) {
		close_minute(m);
		m->minute = (struct simulate_minute){.at = minute};
	}
	m->minute.starts++;
	m->s->runs++;
	day->runs++;
	day->busy += j->usual;
	if (m->active > day->peak) {
		day->peak = m->active;
		day->peak_at = now;
	}
	if (m->active > m->s->peak) {
		m->s->peak = m->active;
		m->s->peak_at = now;
	}
}

static enum sim_decision count_skip(struct sim *m, struct simulate_job *j, usec_t now)
{
	if (!j->skipped++)
		j->first_skipped = now;
	current_day(m, now)->skipped++;
	return SIM_DROPPED;
}

/* ---- starts ---- */

static void start(struct sim *m, size_t job, usec_t now)
{
	struct simulate_job *j = &m->s->jobs[job];
	struct sim_job *mine = &m->jobs[job];

	for (size_t i = 0; i < j->n_limits; i++) {
		struct simulate_limit *limit = &m->s->limits[j->limits[i]];
		int64_t active = ++m->lines[j->limits[i]].active;

		if (active > limit->peak)
			limit->peak = active;
	}
	m->active++;
	mine->active++;
	mine->started_at = now;
	j->runs++;
	count_start(m, j, now);
	heap_push(m, (struct sim_event){.at = now + j->usual,
			     .job = job,
			     .replacement = mine->replacements});
}

static void release(struct sim *m, size_t job)
{
	const struct simulate_job *j = &m->s->jobs[job];

	m->active--;
	m->jobs[job].active--;
	for (size_t i = 0; i < j->n_limits; i++)
		m->lines[j->limits[i]].active--;
}

static bool limit_is_full(const struct sim *m, size_t limit)
{
	int64_t max = m->s->limits[limit].running;

	return max > 0 && m->lines[limit].active >= max;
}

static enum sim_decision wait_for(struct sim *m, size_t limit, struct sim_waiter w)
{
	struct sim_line *line = &m->lines[limit];

	if (line->begin == line->n)
		line->begin = line->n = 0;
	line->v = xgrow(line->v, line->n, sizeof(*line->v));
	line->v[line->n++] = w;
	m->waiting++;
	return SIM_WAITS;
}

/* The overlap policy decides. True: the run may start, because it replaces the running one. */
static bool overlap_allows(struct sim *m, size_t job, usec_t now, enum sim_decision *ret)
{
	struct simulate_job *j = &m->s->jobs[job];
	struct sim_job *mine = &m->jobs[job];

	*ret = SIM_WAITS;
	switch (j->policy.overlap) {
	case OVERLAP_REPLACE:
		release(m, job);
		mine->replacements++;
		j->replaced++;
		return true;
	case OVERLAP_ALLOW:
		mine->held++;
		return false;
	case OVERLAP_QUEUE:
		if (mine->held < j->policy.overlap_waiting) {
			mine->held++;
			return false;
		}
		break;
	default:
		break;
	}
	*ret = count_skip(m, j, now);
	return false;
}

static enum sim_decision decide(struct sim *m, struct sim_waiter w, usec_t now)
{
	struct simulate_job *j = &m->s->jobs[w.job];
	enum sim_decision d;
	bool expires;

	if (now > claim_last_start(&j->policy, w.slot, 0, &expires)) {
		j->expired++;
		return SIM_DROPPED;
	}
	if (j->policy.permits > 0 && m->jobs[w.job].active >= j->policy.permits &&
		!overlap_allows(m, w.job, now, &d))
		return d;
	for (size_t i = 0; i < j->n_limits; i++)
		if (limit_is_full(m, j->limits[i]))
			return wait_for(m, j->limits[i], w);
	start(m, w.job, now);
	return SIM_STARTED;
}

/* Starts runs that wait for this limit. A run that another limit holds moves to that line. */
static void drain(struct sim *m, size_t limit, usec_t now)
{
	struct simulate_limit *l = &m->s->limits[limit];
	struct sim_line *line = &m->lines[limit];

	while (line->begin < line->n && !limit_is_full(m, limit)) {
		struct sim_waiter w = line->v[line->begin++];

		m->waiting--;
		if (decide(m, w, now) != SIM_STARTED)
			continue;
		current_day(m, now)->delayed++;
		if (!l->delayed++)
			l->first_at = w.slot;
		if (now - w.slot > l->longest)
			l->longest = now - w.slot;
	}
}

/* ---- events ---- */

static void push_slot(struct sim *m, size_t job, usec_t at)
{
	if (at < m->s->until)
		heap_push(m, (struct sim_event){.at = at, .job = job, .is_slot = true});
}

static void on_slot(struct sim *m, size_t job, usec_t now)
{
	struct simulate_job *j = &m->s->jobs[job];
	struct sim_job *mine = &m->jobs[job];
	usec_t next;

	j->slots++;
	m->s->slots++;
	if (now < j->resumes_at)
		j->paused++;
	else {
		if (mine->active == 0 && mine->started_at && now - mine->started_at < j->slow)
			j->possible++;
		decide(m, (struct sim_waiter){job, now}, now);
	}
	if (schedule_set_next(j->set, now, &next))
		push_slot(m, job, next);
}

static void on_end(struct sim *m, const struct sim_event *ev)
{
	const struct simulate_job *j = &m->s->jobs[ev->job];
	struct sim_job *mine = &m->jobs[ev->job];
	usec_t next;

	if (ev->replacement != mine->replacements)
		return; /* the run was replaced */
	release(m, ev->job);
	if (mine->held > 0) {
		mine->held--;
		decide(m, (struct sim_waiter){ev->job, ev->at}, ev->at);
	}
	for (size_t i = 0; i < j->n_limits; i++)
		drain(m, j->limits[i], ev->at);
	if (schedule_set_follows(j->set) &&
		schedule_set_next_after_finish(j->set, ev->at, ev->at, &next))
		push_slot(m, ev->job, next);
}

static void stop_at(struct sim *m, enum simulate_stop why, usec_t at)
{
	m->s->stop = why;
	m->s->stopped_at = at;
}

static void sim_done(struct sim *m)
{
	for (size_t i = 0; m->lines && i < m->s->n_limits; i++)
		free(m->lines[i].v);
	free(m->lines);
	free(m->jobs);
	free(m->heap);
}

void simulate_run(struct simulate *s)
{
	AUTO_DONE(sim) m = {.s = s};

	m.jobs = xcalloc(s->n_jobs + 1, sizeof(*m.jobs));
	m.lines = xcalloc(s->n_limits + 1, sizeof(*m.lines));
	for (size_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].first)
			push_slot(&m, i, s->jobs[i].first);
	while (m.n_heap > 0 && m.heap[0].at < s->until) {
		struct sim_event ev;

		if (s->slots >= s->slots_max || m.waiting >= SIMULATE_WAITING_MAX) {
			stop_at(&m, s->slots >= s->slots_max ? SIMULATE_SLOTS : SIMULATE_WAITING,
				m.heap[0].at);
			break;
		}
		ev = heap_pop(&m);
		if (ev.is_slot)
			on_slot(&m, ev.job, ev.at);
		else
			on_end(&m, &ev);
	}
	close_minute(&m);
}

/* ---- clock changes ---- */

/*
 * Whether the job normally has a slot in the hour that the change skips or repeats: it is looked
 * for a week before, on the same day of the week.
 */
static bool change_concerns(const struct simulate_change *c, const struct simulate_job *j)
{
	usec_t week_before = c->at - 7 * USEC_DAY, slot;
	usec_t begin = c->shift > 0 ? week_before : week_before + c->shift * USEC_SEC;
	usec_t length = (c->shift > 0 ? c->shift : -c->shift) * USEC_SEC;

	return schedule_set_next(j->set, begin - 1, &slot) && slot < begin + length;
}

static struct simulate_change *find_change(struct simulate_change *v, size_t n,
	const struct zone *z, usec_t at)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].zone == z && v[i].at == at)
			return &v[i];
	return NULL;
}

static void add_job_changes(const struct simulate *s, size_t job, struct simulate_change *v,
	size_t *n, size_t max)
{
	const struct simulate_job *j = &s->jobs[job];
	const struct zone *z = j->zone;

	for (size_t i = zone_find(z, s->from / USEC_SEC) + 1; i < z->n; i++) {
		usec_t at = z->v[i].from * USEC_SEC;
		struct simulate_change *c;

		if (z->v[i].from >= s->until / USEC_SEC)
			break;
		c = find_change(v, *n, z, at);
		if (!c && *n >= max)
			break;
		if (!c) {
			c = &v[(*n)++];
			*c = (struct simulate_change){.zone = z,
				.at = at,
				.shift = z->v[i].offset - z->v[i - 1].offset};
		}
		if (!change_concerns(c, j))
			continue;
		if (c->jobs < SIMULATE_CHANGE_JOBS)
			c->some[c->jobs] = job;
		c->jobs++;
	}
}

size_t simulate_changes(const struct simulate *s, struct simulate_change *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_jobs; i++)
		add_job_changes(s, i, ret, &n, max);
	return n;
}
