/* SPDX-License-Identifier: Apache-2.0 */
/* Reads kept counts and the last results of selected jobs; no statement depends on the number of jobs or runs. */
#include "store/read/metric_counts.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/slot_outcome.h"
#include "store/counters.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

#define SCAN_FACTOR 4  /* tagged jobs that are looked at, for each that is shown: most may have finished */
#define OWNER_PART 4   /* one owner has at most this part of the series of jobs */

void metric_counts_done(struct metric_counts *c)
{
	for (size_t i = 0; i < c->n_queues; i++)
		free(c->queues[i].name);
	for (size_t i = 0; i < c->n_jobs; i++) {
		free(c->jobs[i].owner);
		free(c->jobs[i].name);
	}
	free(c->queues);
	free(c->jobs);
	free(c->slots);
	*c = (struct metric_counts){};
}

static bool read_slots(struct store *s, struct metric_counts *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_IN, e);

	c->slots = xcalloc(slot_outcomes_count, sizeof(*c->slots));
	query_int(&q, COUNT_SLOTS);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);
		size_t i = slot_outcome_index(state, query_get_text(&q));

		if (i == slot_outcomes_count) /* the word of a newer version */
			i = slot_outcome_index(state, "other");
		if (i < slot_outcomes_count)
			c->slots[i] += query_get_int(&q);
	}
	return !q.failed;
}

static bool read_sum(struct store *s, enum count_what what, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_SUM, e);

	query_int(&q, what);
	while (query_row(&q)) {
		query_get_int(&q);
		*ret += query_get_int(&q);
	}
	return !q.failed;
}

static struct metric_queue *queue_of(struct metric_counts *c, const char *name)
{
	for (size_t i = 0; i < c->n_queues; i++)
		if (strcmp(c->queues[i].name, name) == 0)
			return &c->queues[i];
	if (c->n_queues >= METRIC_QUEUES_MAX)
		return NULL;
	c->queues = xgrow(c->queues, c->n_queues, sizeof(*c->queues));
	c->queues[c->n_queues] = (struct metric_queue){.name = xstrdup(name)};
	return &c->queues[c->n_queues++];
}

static int queue_compare(const void *a, const void *b)
{
	return strcmp(((const struct metric_queue *)a)->name, ((const struct metric_queue *)b)->name);
}

static bool read_queues(struct store *s, struct metric_counts *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_IN, e);

	queue_of(c, JOB_QUEUE_DEFAULT);
	query_int(&q, COUNT_RUNS);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);
		struct metric_queue *in = queue_of(c, query_get_text(&q));
		int64_t n = query_get_int(&q);

		if (in && state == RUN_QUEUED)
			in->queued += n;
		else if (in && (state == RUN_CLAIMED || state == RUN_RUNNING))
			in->active += n;
	}
	qsort(c->queues, c->n_queues, sizeof(*c->queues), queue_compare);
	return !q.failed;
}

/* Reads one row per lane, independent of the number of runs. */
static bool read_oldest(struct store *s, struct metric_counts *c, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LANES, e);

	c->oldest_due = USEC_NEVER;
	while (query_row(&q)) {
		usec_t due;

		query_get_text(&q);
		query_get_int(&q);
		query_get_int(&q);
		due = query_get_int(&q);
		if (due < c->oldest_due)
			c->oldest_due = due;
	}
	return !q.failed;
}

static usec_t earlier_slot(usec_t a, usec_t b)
{
	usec_t first = a == 0 || (b != 0 && b < a) ? b : a;

	return first == USEC_NEVER ? 0 : first;
}

static struct metric_job job_read(struct query *q, int64_t *ret_uid)
{
	struct metric_job j = {.id = query_get_int(q)};
	usec_t queued;

	*ret_uid = query_get_int(q);
	j.owner = query_get_copy(q);
	j.name = query_get_copy(q);
	queued = query_get_int(q);
	j.next = earlier_slot(queued, query_get_int(q));
	j.success_at = query_get_int(q);
	j.failure_at = query_get_int(q);
	j.missed_at = query_get_int(q);
	j.took = query_get_int(q);
	return j;
}

static bool owner_may(struct map *by_owner, const struct metric_counts_ask *ask, int64_t uid)
{
	size_t part = ask->one_owner || ask->jobs_max < OWNER_PART ? ask->jobs_max : ask->jobs_max / OWNER_PART;
	size_t has = (size_t)(uintptr_t)map_get(by_owner, uid + 1);

	if (has >= part)
		return false;
	map_put(by_owner, uid + 1, (void *)(uintptr_t)(has + 1));
	return true;
}

static bool read_jobs(struct store *s, const struct metric_counts_ask *ask, struct metric_counts *c, struct err *e)
{
	AUTO_DONE(map) by_owner = {};
	AUTO_QUERY q = {};

	if (ask->jobs == METRIC_JOBS_NONE || ask->jobs_max == 0)
		return true;
	q = query_start(s->db, ask->jobs == METRIC_JOBS_ALL ? Q_METRIC_JOBS_ALL : Q_METRIC_JOBS_TAGGED, e);
	if (ask->jobs == METRIC_JOBS_TAGGED)
		query_text(&q, JOB_TAG_METRICS);
	query_int(&q, (int64_t)ask->jobs_max * SCAN_FACTOR);
	while (c->n_jobs < ask->jobs_max && query_row(&q)) {
		int64_t uid;
		struct metric_job j = job_read(&q, &uid);

		if (owner_may(&by_owner, ask, uid)) {
			c->jobs = xgrow(c->jobs, c->n_jobs, sizeof(*c->jobs));
			c->jobs[c->n_jobs++] = j;
		} else {
			free(j.owner);
			free(j.name);
		}
	}
	return !q.failed;
}

bool metric_counts_read(struct store *s, const struct metric_counts_ask *ask, struct metric_counts *ret,
	struct err *e)
{
	struct metric_counts c = {};
	AUTO_TX tx = {};

	if (store_counts(s, &c.counts, e) && tx_begin(&tx, s, false, e) && read_slots(s, &c, e) &&
	    read_sum(s, COUNT_DEAD, &c.dead, e) && read_sum(s, COUNT_OUTPUT, &c.output_bytes, e) &&
	    read_queues(s, &c, e) && read_oldest(s, &c, e) && read_jobs(s, ask, &c, e) && tx_commit(&tx, e)) {
		*ret = c;
		return true;
	}
	metric_counts_done(&c);
	return false;
}
