/* SPDX-License-Identifier: Apache-2.0 */
/* The outcomes of slots that metrics distinguish: a final state and a class of reasons. */
#pragma once
#include "core/job/run.h"
#include <stddef.h>

struct slot_outcome {
	enum run_state state;
	const char *reason;  /* the class: one word, kept in the store and shown as a label */
	const char *matches; /* beginning of the reasons of runs; "": a run without a reason; NULL: all others */
};
extern const struct slot_outcome slot_outcomes[];
extern const size_t slot_outcomes_count;

/* The class of the reason of a run in a final state. */
const char *slot_outcome_class(enum run_state state, const char *reason /* NULL: none */);
/* The row of a state and a class that was stored; slot_outcomes_count: there is none. */
size_t slot_outcome_index(int64_t state, const char *class);
