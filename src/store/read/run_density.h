/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the runs of a time range by interval, for pictures of ranges with any number of runs. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct store;

#define RUN_DENSITY_MAX 1000 /* intervals */

struct run_density {
	int64_t uid;        /* -1: all owners */
	usec_t since, width; /* of the first interval; of each */
	size_t n;           /* intervals */
	usec_t at;          /* slots before this are counted; begins with 'since' */
	struct run_count {
		int64_t runs, failed; /* failed, timed out and lost */
	} counts[RUN_DENSITY_MAX];
};

/* Counts some more runs; *ret_more: not all are counted. */
bool run_density_step(struct store *s, struct run_density *d, bool *ret_more, struct err *e);
