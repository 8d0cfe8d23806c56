/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine can say of warrants: that one is missing. Whether it holds, only the spawner knows. */
#pragma once
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job;
struct job_spec;
struct start_plan;

/* All of these fail with field "warrant", by which jobctl sees that it has to get one. 'owner' is an owner's number. */
bool warrants_check(enum warrant_policy p, int64_t owner, const char *warrant /* NULL: none */, struct err *e);
/* A change of what is started needs a new one; with any other the job keeps what it has. */
bool warrants_check_change(enum warrant_policy p, const struct job *job, const struct job_spec *before,
	struct job_spec *after, struct err *e);

void warrants_put(struct start_plan *p, const char *warrant /* NULL: none */);
