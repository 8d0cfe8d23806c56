/* SPDX-License-Identifier: Apache-2.0 */
/* Confines a child that reads untrusted data: no network, no other files, few system calls. */
#pragma once
#include <stdbool.h>

struct err;

/* Afterwards the process can only use its open descriptors and files below 'tree' (-1: none). */
bool confine_child(int tree, struct err *e);
