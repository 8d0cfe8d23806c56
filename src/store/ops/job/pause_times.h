/* SPDX-License-Identifier: Apache-2.0 */
/* Starts or ends pauses at their times. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stddef.h>

struct op_pauses_end {
	struct op op;
	usec_t now;
	size_t jobs, scopes, released; /* results */
	size_t begun;                  /* result: jobs whose pause began */
};
OP_DEFINE(pause_times, pauses_end, OP_PAUSES_END, OP_PAUSES_END)
