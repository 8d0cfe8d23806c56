/* SPDX-License-Identifier: Apache-2.0 */
/* For code that runs between clone and exec, in the memory of the process that made the child: system calls only. */
#pragma once

/* The child borrows our memory and runs on a stack the sanitizer does not know. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))
