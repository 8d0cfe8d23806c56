/* SPDX-License-Identifier: Apache-2.0 */
/* Creates inotify descriptors. */
#pragma once
#include <stdbool.h>

struct err;

bool inotify_new(int *ret, struct err *e); /* close-on-exec and non-blocking; -1 on failure */
