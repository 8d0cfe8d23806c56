/* SPDX-License-Identifier: Apache-2.0 */
/* Failpoints around the commit of a batch; test builds only. */
#pragma once
#include "store/ops/op.h"
#include <stddef.h>

#ifdef JOBSCHED_FAILPOINTS
bool batch_failpoints(struct op *const *ops, size_t n, bool committed, struct err *e);
#else
#define batch_failpoints(ops, n, committed, e) true
#endif
