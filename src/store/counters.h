/* SPDX-License-Identifier: Apache-2.0 */
/* Counters per state, owner or queue; changes are written once per transaction. */
#pragma once
#include "core/job/run.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

enum count_what {
	COUNT_JOBS,
	COUNT_RUNS,
	COUNT_OWNER,   /* live jobs; the "state" is the uid */
	COUNT_ACTIVE,  /* claimed and running runs; the "state" is the uid */
	COUNT_OUTPUT,  /* bytes of kept output; the "state" is the uid */
	COUNT_NOTICES, /* by their state */
	COUNT_STORE,   /* bytes of rows (ops/owner_quota.h); the "state" is the uid */
	COUNT_SLOTS,   /* slots that were decided, since the store exists; the "queue" is the class of the reason */
	COUNT_DEAD,    /* dead letters; the "state" is 0 */
	COUNT_WHAT_MAX
};
void counter_change(struct store *s, enum count_what what, int64_t state, const char *queue, int64_t n);
void counter_move(struct store *s, enum count_what what, int64_t from, int64_t to, const char *queue);
/*
 * Counts the move of a run in COUNT_RUNS, and in COUNT_ACTIVE if it becomes or stops being active.
 */
void counter_run_moved(struct store *s, enum run_state from, enum run_state to, int64_t uid, const char *queue);
/* Counts slots whose run reached a final state in COUNT_SLOTS. Deleting the run does not change the number. */
void counter_slots(struct store *s, enum run_state state, const char *reason /* NULL: none */, int64_t n);

/* Iterates over changes that are not written yet: for (size_t i = 0; counter_next_pending(...);) */
bool counter_next_pending(const struct store *s, enum count_what what, size_t *i, int64_t *ret_state,
	const char **ret_queue, int64_t *ret_n);
int64_t counter_pending(const struct store *s, enum count_what what, int64_t state); /* not written yet */
int64_t counter_pending_in(const struct store *s, enum count_what what, int64_t state, const char *queue);

size_t counters_mark(struct store *s);
void counters_rewind(struct store *s, size_t mark); /* discards the changes after that mark */
bool counters_write(struct store *s, struct err *e);
bool counters_differ(const struct store *s); /* the collected changes are not all zero */
