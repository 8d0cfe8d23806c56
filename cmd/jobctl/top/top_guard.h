/* SPDX-License-Identifier: Apache-2.0 */
/* A parent process that restores the terminal however the screen process ends. */
#pragma once

struct err;

/*
 * Runs fn() in a child process and returns its exit code. Signals that end or stop this process are
 * passed on to the child. If a signal ends the child, the terminal is restored here, and the result
 * is 128 plus the signal. -1: the child could not be started, *e says why.
 */
int top_guard_run(int (*fn)(void *arg), void *arg, struct err *e);
