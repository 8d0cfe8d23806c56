/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp filters of the sandbox profiles. */
#pragma once
#include <linux/filter.h>
#include <stdbool.h>

struct err;

/*
 * Builds the filter of CALLS_STANDARD or CALLS_STRICT. 'no_trace' also denies tracing of other
 * processes, for kernels without Landlock. The caller frees ret->filter.
 */
bool sandbox_seccomp_filter(int calls, bool no_trace, struct sock_fprog *ret, struct err *e);
int sandbox_seccomp_load(const struct sock_fprog *filter); /* in the child; 0, or an errno */
