/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the jobs that share a slot. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_DENSITIES_MAX 8 /* slots of a chunk whose jobs are counted */

struct adding;
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

/*
 * The same for a chunk of inserted jobs, on a server: the query is sent now, before the rows of 'due'
 * are inserted, and its rows are taken after COMMIT.
 */
bool slot_density_send(struct store *s, const struct adding *a, size_t n, struct err *e);
void slot_density_take(struct store *s);
void slot_density_done(struct store *s);
