/* SPDX-License-Identifier: Apache-2.0 */
/* Collects counter changes, written once per transaction. */
#include "store/counters.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/notice.h"
#include "core/job/run.h"
#include "core/job/slot_outcome.h"
#include "store/set.h"
#include "store/store.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

struct count {
	enum count_what what;
	int64_t state;
	char *queue; /* owned */
	int64_t n;
};

void counter_change(struct store *s, enum count_what what, int64_t state, const char *queue, int64_t n)
{
	for (size_t i = s->counts_kept; i < s->n_counts; i++)
		if (s->counts[i].what == what && s->counts[i].state == state &&
		    strcmp(s->counts[i].queue, queue) == 0) {
			s->counts[i].n += n;
			return;
		}
	s->counts = xrealloc(s->counts, (s->n_counts + 1) * sizeof(*s->counts));
	s->counts[s->n_counts++] = (struct count){what, state, xstrdup(queue), n};
}

void counter_move(struct store *s, enum count_what what, int64_t from, int64_t to, const char *queue)
{
	counter_change(s, what, from, queue, -1);
	counter_change(s, what, to, queue, 1);
}

static bool run_is_active(enum run_state s)
{
	return s == RUN_CLAIMED || s == RUN_RUNNING;
}

void counter_run_moved(struct store *s, enum run_state from, enum run_state to, int64_t uid, const char *queue)
{
	counter_move(s, COUNT_RUNS, from, to, queue);
	if (run_is_active(from) == run_is_active(to))
		return;
	counter_change(s, COUNT_ACTIVE, uid, queue, run_is_active(to) ? 1 : -1);
	if (run_is_active(from) && s->claim_wakeup.full)
		wakeup_claim_by(s, 0);
}

void counter_slots(struct store *s, enum run_state state, const char *reason, int64_t n)
{
	counter_change(s, COUNT_SLOTS, state, slot_outcome_class(state, reason), n);
}

bool counter_next_pending(const struct store *s, enum count_what what, size_t *i, int64_t *ret_state, const char **ret_queue,
	int64_t *ret_n)
{
	while (*i < s->n_counts && s->counts[*i].what != what)
		++*i;
	if (*i >= s->n_counts)
		return false;
	*ret_state = s->counts[*i].state;
	*ret_queue = s->counts[*i].queue;
	*ret_n = s->counts[(*i)++].n;
	return true;
}

int64_t counter_pending(const struct store *s, enum count_what what, int64_t state)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->n_counts; i++)
		if (s->counts[i].what == what && s->counts[i].state == state)
			n += s->counts[i].n;
	return n;
}

int64_t counter_pending_in(const struct store *s, enum count_what what, int64_t state, const char *queue)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->n_counts; i++)
		if (s->counts[i].what == what && s->counts[i].state == state && strcmp(s->counts[i].queue, queue) == 0)
			n += s->counts[i].n;
	return n;
}

size_t counters_mark(struct store *s)
{
	return s->counts_kept = s->n_counts;
}

void counters_rewind(struct store *s, size_t mark)
{
	while (s->n_counts > mark)
		free(s->counts[--s->n_counts].queue);
	s->counts_kept = mark;
}

static int counter_compare(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	return strcmp(x->queue, y->queue);
}

bool counters_write(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET set = {};

	if (s->n_counts == 0)
		return true;
	qsort(s->counts, s->n_counts, sizeof(*s->counts), counter_compare);
	for (size_t i = 0, j; i < s->n_counts; i = j) {
		int64_t sum = 0;

		for (j = i; j < s->n_counts && counter_compare(&s->counts[i], &s->counts[j]) == 0; j++)
			sum += s->counts[j].n;
		if (sum == 0)
			continue;
		owner_count_add(s, s->counts[i].what, s->counts[i].state, sum);
		set_item(&set);
		set_int(&set, "what", s->counts[i].what);
		set_int(&set, "state", s->counts[i].state);
		set_text(&set, "queue", s->counts[i].queue);
		set_int(&set, "n", sum);
	}
	counters_rewind(s, 0);
	if (set.n == 0)
		return true;
	q = query_start(s->db, Q_COUNTERS_ADD, e);
	query_text(&q, s->node_name);
	set_bind(&q, &set);
	return query_finish(&q);
}

bool counters_differ(const struct store *s)
{
	for (size_t i = 0; i < s->n_counts; i++)
		if (s->counts[i].n != 0)
			return true;
	return false;
}

static bool counters_sum(struct store *s, enum count_what what, int64_t *into, int64_t states, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTERS_SUM, e);

	query_int(&q, what);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);

		if (state >= 0 && state < states)
			into[state] = query_get_int(&q);
	}
	return !q.failed;
}

bool store_counts(struct store *s, struct store_counts *ret, struct err *e)
{
	struct store_counts c = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !counters_sum(s, COUNT_JOBS, c.jobs, JOB_STATE_MAX, e) ||
	    !counters_sum(s, COUNT_RUNS, c.runs, RUN_STATE_MAX, e) ||
	    !counters_sum(s, COUNT_NOTICES, c.notices, NOTICE_STATE_MAX, e) || !tx_commit(&tx, e))
		return false;
	*ret = c;
	return true;
}
