/* SPDX-License-Identifier: Apache-2.0 */
/* Expires queued runs that may not start any more. */
#pragma once
#include "store/ops/run/runs.h"

struct op_expire {
	struct op op;
	usec_t now;
	struct run_changes expired; /* result */
};
OP_DEFINE(expired_runs, expire, OP_EXPIRE, OP_EXPIRE)
