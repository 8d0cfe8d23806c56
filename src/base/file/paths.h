/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of a daemon, computed in one place for jobschedd and jobctl. */
#pragma once
#include <stdbool.h>

struct err;

struct paths {
	char *state_dir;      /* holds the SQLite store */
	char *runtime_dir;    /* sockets and locks */
	char *output_dir;     /* written by the spawner */
	char *socket;         /* of the API */
	char *spawner_socket;
	char *net_dir;        /* runtime directory of jobsched-net */
	char *net_socket;
	char *net_state;      /* its state directory: the artifact cache */
	char *config;         /* jobschedd.conf */
	char *socket_file;    /* in the state directory: the path of the socket of the running daemon */
	char *lock_end;       /* of the name of the lock file beside a SQLite store */
};
void paths_done(struct paths *p);

struct paths_options {
	bool user_mode;
	const char *instance;                            /* NULL: the one without a name */
	const char *state_dir, *runtime_dir, *output_dir; /* NULL: the default */
};
/*
 * Computes names only. Relative XDG variables are ignored. ERR_INVALID: a bad instance, or a socket
 * path that is too long.
 */
bool paths_find(const struct paths_options *o, struct paths *ret, struct err *e);

/*
 * An absolute path without symbolic links of a file that need not exist; its directory must. NULL:
 * errno says why. Caller frees.
 */
char *paths_resolve(const char *path);

/*
 * The socket of a daemon that was started in another environment: as the file in the state
 * directory names it, or else the lock file beside the default store. The daemon may have ended
 * since. Caller frees; NULL: none is named.
 */
char *paths_read_socket(const struct paths *p);
