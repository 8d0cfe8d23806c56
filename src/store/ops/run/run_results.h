/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of runs, which count towards the quota of their owner. */
#pragma once
#include "base/clock.h"
#include "store/set.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;
struct strv;

#define RESULT_BYTES 100 /* of a row, without its texts; see owner_quota.h */

/* The results of the runs whose ends are written in one transaction. */
struct results_new {
	struct set drop, put;
};
void results_new_done(struct results_new *n);
/* An attempt replaces the results of those before it. 'lines' has KEY=VALUE; NULL: none. */
void results_new_add(struct store *s, struct results_new *n, int64_t run, int64_t uid, usec_t slot, bool first,
	const struct strv *lines);
bool results_new_write(struct store *s, struct results_new *n, struct err *e);
