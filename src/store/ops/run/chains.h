/* SPDX-License-Identifier: Apache-2.0 */
/* Queues the runs of jobs that run after other jobs. */
#pragma once
#include "core/job/policy.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct op_ended;
struct store;

/* How the run of a child begins. */
struct chain_start {
	struct start_policy policy;
	usec_t due_at;
	char *params; /* owned; JSON: what the child is told about the parent; NULL: nothing */
};
/*
 * On the store thread, inside the transaction. 'spec' is the definition of the child. False: the
 * child does not run for this end.
 */
typedef bool chain_fn(const struct op_ended *parent, const char *spec, usec_t now, struct chain_start *ret);

/* A run that has just reached its final state. */
struct chain_end {
	const struct op_ended *op;
	int64_t job, run;
	usec_t slot;
	enum run_state state;
	int64_t exit_code;
};
/*
 * Adds a run of each child whose links hold now, with the slot of the parent. The slot has at most
 * one run of a child, so that a repeated end adds none. The rows of the ends are already written.
 */
bool chains_fire(struct store *s, const struct chain_end *v, size_t n, usec_t now, struct err *e);
