/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program and waits for it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

/*
 * The exit status, or -1 with *e: it could not be run, was killed, or wrote more than 'max' bytes.
 * Without 'e' its messages are discarded.
 */
int process_run(const char *const *argv, struct buf *out, size_t max, struct err *e);
