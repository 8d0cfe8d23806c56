/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls a profile refuses, as filters made once and loaded by every child. */
#pragma once
#include <linux/filter.h>
#include <stdbool.h>

struct err;

/* The filter of CALLS_STANDARD or CALLS_STRICT; 'no_trace' refuses to trace others where landlock cannot. Owned. */
bool sandbox_seccomp_filter(int calls, bool no_trace, struct sock_fprog *ret, struct err *e);
int sandbox_seccomp_load(const struct sock_fprog *filter); /* in the child; 0, or an errno */
