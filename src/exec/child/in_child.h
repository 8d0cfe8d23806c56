/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute for functions that run in the child before exec(): system calls only. */
#pragma once

/*
 * The child runs on a stack that the sanitizers do not know, and its writes change the memory of
 * its creator.
 */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))
