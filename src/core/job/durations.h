/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of how long the runs of a job take. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DURATIONS_RUNS 200      /* the newest runs of a job that are examined */
#define DURATIONS_UNUSUAL_MIN 5 /* earlier runs that are needed to call a run unusual */

/* One ended run that had started. */
struct duration_sample {
	usec_t took;
	bool succeeded;
};

enum duration_unusual { DURATION_USUAL, DURATION_LONG, DURATION_SHORT, DURATION_UNUSUAL_MAX };
extern const char *const duration_unusual_names[DURATION_UNUSUAL_MAX]; /* DURATION_USUAL: NULL */

struct durations {
	bool known;      /* the statistics were read */
	int64_t count;   /* successful runs that the percentiles are computed from */
	usec_t p50, p95; /* nearest rank; valid if count is not 0 */
	int64_t ended;   /* all samples, successful or not */
	usec_t last;     /* the newest of them; valid if ended is not 0 */
	/*
	 * The newest sample compared with the successful ones before it: longer than twice their
	 * p95, or, if it succeeded, shorter than half of their p5. A difference of less than a
	 * second is never unusual.
	 */
	enum duration_unusual unusual;
};

/* 'v' is ordered from the newest to the oldest; at most DURATIONS_RUNS samples are used. */
void durations_compute(const struct duration_sample *v, size_t n, struct durations *ret);
