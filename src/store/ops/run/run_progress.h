/* SPDX-License-Identifier: Apache-2.0 */
/* Records the progress that the commands of running attempts report. */
#pragma once
#include "core/job/sign.h"
#include "store/ops/op.h"

#define RUN_PROGRESS_MAX 500 /* attempts in one operation */

struct op_progress {
	struct op op;
	struct run_progress_row {
		int64_t run, fence;
		struct progress progress;
		bool event;   /* add an audit event */
	} *v;                 /* owned; at most RUN_PROGRESS_MAX */
	size_t n;
};
OP_DEFINE(run_progress, progress, OP_PROGRESS, OP_PROGRESS)
