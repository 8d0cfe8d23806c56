/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the run of a parent to the job that runs after it. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct active_run;
struct judge_verdict;
struct start_plan;

/* Lines NAME=VALUE about a run that ends with this verdict; caller frees. NULL: the run is not final. */
char *chain_start_parent(const struct active_run *a, const struct judge_verdict *v);
/* The callback of OP_ENDED: see store/ops/run/chains.h. */
struct op_ended;
struct chain_start;
bool chain_start_child(const struct op_ended *parent, const char *spec, usec_t now, struct chain_start *ret);
/* Adds the variables JOBSCHED_PARENT_… to the plan of a child. 'params' is JSON; NULL: none. */
void chain_start_vars(const char *params, struct start_plan *plan);
