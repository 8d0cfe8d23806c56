/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the runs of boot jobs. */
#pragma once
#include "core/job/policy.h"
#include "store/ops/op.h"
#include <stddef.h>
#include <stdint.h>

/*
 * Whether a job with this spec runs after a boot, and when. Pure; on the store thread inside the
 * transaction.
 */
typedef bool boot_fn(int64_t job, const char *spec, usec_t now, usec_t *ret_due, struct start_policy *ret_policy,
	void *arg);

struct op_boot {
	struct op op;
	const char *name, *boot; /* borrowed: node name, the kernel's boot id */
	usec_t now;
	boot_fn *fn;             /* NULL: all, at once */
	void *fn_arg;
	size_t runs;             /* result: runs added; 0 when this boot was known */
};
OP_DEFINE(boot_runs, boot, OP_BOOT, OP_BOOT)
