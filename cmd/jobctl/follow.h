/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for runs, and their output as it comes. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;

/* Whether the state of a run object is final. */
bool follow_run_is_final(const json_t *run);

/*
 * The run of a job to wait for: its oldest open one; without one, its next one once it exists;
 * without a next one, its newest. *ret NULL: it never ran and never will. 'until' is on clock_boot,
 * -1: none; ERR_BUSY when it is over.
 */
bool follow_find(struct ctl *c, int64_t job, usec_t until, json_t **ret, struct err *e);
/* The newest run of a job; without one it is waited for, whatever it needs. *ret NULL: the job has ended without a run. */
bool follow_first(struct ctl *c, int64_t job, json_t **ret, struct err *e);

/* Waits until a run is final. ERR_BUSY: 'until' came first. */
bool follow_wait(struct ctl *c, int64_t run, usec_t until, json_t **ret, struct err *e);

/* Writes output until the run is final; *ret is the run then. */
struct follow_from {
	int64_t run;
	int64_t attempt; /* and those after it; 0: from the newest on */
	int64_t offset;  /* in the first of them, where it was named */
	bool raw;
};
bool follow_output(struct ctl *c, const struct follow_from *f, json_t **ret, struct err *e);

/* Says how a final run ended, in one line on standard error; 'hint': and where to look when it failed. */
void follow_say(const json_t *run, bool hint);
/* The exit code for it; with 'propagate' that of the command where there is one. */
int follow_exit(const json_t *run, bool propagate);
