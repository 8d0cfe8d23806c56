/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the jobs that share a slot. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job_new;
struct store;

/* Counts the jobs due at a slot, up to 'max'. */
bool slot_density_count(struct store *s, usec_t slot, int64_t max, int64_t *ret, struct err *e);
/*
 * The same for the next slot of a new job; slots that reached the maximum are remembered for a
 * minute.
 */
bool slot_density_of_job(struct store *s, const struct job_new *j, int64_t *ret, struct err *e);
