/* SPDX-License-Identifier: Apache-2.0 */
/* Takes network, other files and most system calls from a child that reads data of strangers. */
#pragma once
#include <stdbool.h>

struct err;

/* Afterwards the process can use its open descriptors and the files below 'tree' (-1: none), and nothing else. */
bool confine_child(int tree, struct err *e);
