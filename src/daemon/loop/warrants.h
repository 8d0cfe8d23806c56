/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a required warrant is present. Only the spawner can check that it is valid. */
#pragma once
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job;
struct job_spec;
struct start_plan;

/*
 * Both fail with the field "warrant", which tells jobctl to request one. 'owner' is an owner
 * number.
 */
bool warrants_check(enum warrant_policy p, int64_t owner, const char *warrant /* NULL: none */, struct err *e);
/*
 * A change of the exec spec needs a new warrant. Any other change keeps the one that the job has.
 */
bool warrants_check_change(enum warrant_policy p, const struct job *job,
	const struct job_spec *before, struct job_spec *after, struct err *e);

void warrants_put(struct start_plan *p, const char *warrant /* NULL: none */);
