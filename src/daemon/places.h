/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are, for the system's daemon and for a user's own. */
#pragma once
#include <stdbool.h>

struct err;

struct places {
	char *state_dir;      /* the store */
	char *runtime_dir;    /* sockets and locks */
	char *output_dir;     /* written by the spawner */
	char *socket;         /* the API's */
	char *spawner_socket;
	char *net_dir;        /* runtime directory of jobsched-net */
	char *net_socket;
	char *net_state;      /* its state directory: the artifact cache */
	char *config;         /* jobschedd.conf */
};
void places_done(struct places *p);

/* NULL: the usual place. Directories of user mode are made, 0700, and refused if they are somebody else's. */
bool places_find(bool user_mode, const char *instance, const char *state_dir, const char *runtime_dir, const char *output_dir,
	struct places *ret, struct err *e);

/*
 * The programs that a user's daemon starts: the one named in the environment ($JOBSCHED_SPAWNER_PATH, $JOBSCHED_NET_PATH),
 * the one beside this binary, or the installed one. The caller frees the result.
 */
char *places_spawner_program(void);
char *places_net_program(void);
