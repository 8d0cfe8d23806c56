/* SPDX-License-Identifier: Apache-2.0 */
/* Continues a starting program in the background. */
#pragma once

/*
 * Forks. The calling process waits for detach_report() and exits with its status. The new process
 * continues in a session of its own, with standard input and output from /dev/null and standard
 * error to 'log' (borrowed; -1: /dev/null). Returns the descriptor for detach_report(), or -errno.
 */
int detach_start(int log);
void detach_report(int *fd, int status); /* closes the descriptor; -1 is ignored */
