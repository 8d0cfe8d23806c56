/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of claims: slots of a job, expected claims, states of all runs. */
#pragma once
#include "unit/store/store_suite.h"

void sql(void **state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *ask(void **state, const char *text); /* rows as text; caller frees */

/* A job with queued slots; members that are 0 have the default in the comment. */
struct slots {
	usec_t first, step;         /* T0, a second */
	size_t n;
	struct start_policy policy;
	usec_t next;                /* of the schedule after them; 0: none */
	uint32_t uid;               /* 1000 */
	const char *queue, *spec;
	int64_t priority;
};
int64_t add_slots(struct store *s, const struct slots *w); /* the job */

void claim_is(void **state, size_t room, usec_t now, const char *runs);  /* their numbers, in order */
void run_is(const struct run *r, const char *what);
void states_are(void **state, const char *all);                          /* of all runs by number: state[:reason] */
void end_by_number(struct store *s, int64_t run, enum attempt_outcome outcome, usec_t at);
void end_both(struct store *s, int64_t one, int64_t other, usec_t at);   /* in one batch */
void requeue(struct store *s, int64_t run, usec_t due_at);               /* records a failed attempt that is retried */
void give_back(struct store *s, int64_t run, usec_t due_at);

/* Checks that counters, permits and runs agree. */
void kept_is_true(void **state);
