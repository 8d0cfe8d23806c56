/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the final states of runs; the notices that follow from them are written once per
 * transaction.
 */
#pragma once
#include "base/clock.h"
#include "core/job/notice.h"
#include "core/job/run.h"

struct err;
struct job_health;
struct query;
struct set;
struct store;

struct outcome {
	int64_t job, run;
	enum run_state state;
	const char *reason; /* NULL: none */
	bool notifies;      /* of the run's row; false: the outcome is ignored, unless note_all */
	usec_t slot;        /* slot_last */
	usec_t at;
	usec_t took;        /* duration of an attempt that succeeded */
	bool output;        /* its last attempt has written something */
};
void outcome_note(struct store *s, const struct outcome *o);
size_t outcome_mark(const struct store *s);
void outcome_rewind(struct store *s, size_t mark); /* discards the outcomes after that mark */
bool outcomes_write(struct store *s, struct err *e);

/* Parts that the operations on notices use as well. */
void outcome_health_read(struct query *q, struct job_health *h);
void outcome_notice_describe(struct set *set, int64_t job, int64_t run, enum notice_kind kind,
	const struct job_health *before, usec_t now);
bool outcome_notices_insert(struct store *s, struct set *set, struct set *ret_ids, struct err *e); /* ret_ids may be NULL */
