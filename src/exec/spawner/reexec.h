/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the running spawner with a newer program, in the same process. */
#pragma once
#include <stdbool.h>

struct err;
struct reexec_state_fds;

/* How this program was started. */
struct reexec {
	/* Owned; path of the program file, which may have been replaced by a newer one. */
	char *path;
	char *const *argv; /* borrowed */
};
bool reexec_init(struct reexec *x, char *const *argv, struct err *e);
void reexec_done(struct reexec *x);

/*
 * Asks the program file whether it reads this version of the state. Returns a descriptor of the
 * file, or -1 and sets *e.
 */
int reexec_check(const struct reexec *x, struct err *e);
/* Executes the program. Returns only on failure; FD_CLOEXEC is then set again on 'fds'. */
bool reexec_exec(const struct reexec *x, int program, int state, const struct reexec_state_fds *fds,
	struct err *e);
