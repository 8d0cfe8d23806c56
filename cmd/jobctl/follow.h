/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for runs; follows their output. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;

bool follow_run_is_final(const json_t *run); /* the run object has a final state */

/*
 * Finds the run of a job to wait for: its oldest unfinished run, else its next run as soon as that
 * exists, else its newest run. *ret NULL: the job has no run and no next slot. 'until' is a time of
 * clock_boot, -1: no limit; ERR_BUSY: it has passed.
 */
bool follow_find(struct ctl *c, int64_t job, usec_t until, json_t **ret, struct err *e);
/*
 * Finds the newest run of a job and waits until there is one. *ret NULL: the job has ended without
 * a run.
 */
bool follow_first(struct ctl *c, int64_t job, json_t **ret, struct err *e);

/* Waits until a run has ended. ERR_BUSY: 'until' has passed. */
bool follow_wait(struct ctl *c, int64_t run, usec_t until, json_t **ret, struct err *e);

/* Where following begins. */
struct follow_from {
	int64_t run;
	int64_t attempt; /* the first attempt to show; 0: the newest */
	int64_t offset;  /* bytes to skip in that attempt, if it is not 0 */
	bool raw;        /* control characters are not escaped */
};
/* Copies output of this and later attempts until the run has ended; *ret is the run then. */
bool follow_output(struct ctl *c, const struct follow_from *f, json_t **ret, struct err *e);

/*
 * Prints how a run ended, one line to standard error. 'hint': for a failure, also the command that
 * shows the output.
 */
void follow_say(const json_t *run, bool hint);
/*
 * The exit code of jobctl for the result of a run. 'propagate': the exit code of the command if it
 * has one.
 */
int follow_exit(const json_t *run, bool propagate);
