/* SPDX-License-Identifier: Apache-2.0 */
/* Updates jobs after their runs or slots have ended. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct map;
struct query;
struct store;

/*
 * For jobs (a JSON array of ids) whose runs or slots have ended: frees the permits of ended runs,
 * makes the planner look at jobs that waited for the end of a run, and finishes jobs without a slot
 * and without an open run. 'ret' gets the ids of finished jobs; NULL: they are not needed.
 */
bool job_finish_idle(struct store *s, const char *ids, usec_t now, struct map *ret, struct err *e);
/*
 * The same without waiting for replies, with the rows of ends_facts. They were read under the locks
 * of the jobs, before the ends were written. 'open': jobs with a run of this batch that is still open, which the
 * rows do not count.
 */
bool job_finish_known(struct store *s, const char *ids, usec_t now, struct query *facts, const struct map *open, struct map *ret,
	struct err *e);

/* An active job that is locked, as this batch leaves it. */
struct job_end {
	int64_t job, uid;
	const char *queue;
	usec_t due; /* its next slot; 0: none */
	bool open;  /* it has an open run */
	bool waits; /* a run waits for a permit */
};
bool job_finish_one(struct store *s, const struct job_end *j, usec_t now, bool *ret, struct err *e); /* the same; *ret: it has finished */
