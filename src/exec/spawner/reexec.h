/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a newer program in the place of the one that runs, in the same process. */
#pragma once
#include <stdbool.h>

struct err;
struct reexec_state_fds;

/* How this program was started. */
struct reexec {
	char *path;        /* owned: where it was, and where a newer one is now */
	char *const *argv; /* borrowed */
};
bool reexec_init(struct reexec *x, char *const *argv, struct err *e);
void reexec_done(struct reexec *x);

/* A descriptor of the program there now, which says that it reads our state; or -1. */
int reexec_check(const struct reexec *x, struct err *e);
/* Returns only when it failed. 'fds' are inherited then no more. */
bool reexec_exec(const struct reexec *x, int program, int state, const struct reexec_state_fds *fds, struct err *e);
