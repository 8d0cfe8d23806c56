/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a spawner: lock, ID, sockets. */
#pragma once
#include "base/io.h"
#include <stdbool.h>

struct err;
struct user;

#define SOCKET "spawner.sock"
#define SOCKET_FOR_ALL "warrant.sock" /* for owners who approve their own jobs */

struct runtime_dirs {
	const char *runtime_dir, *output_dir, *state_dir; /* borrowed */
	const struct user *daemon; /* the daemon's user, with --system; NULL: user mode; borrowed */
};

/* ERR_CONFLICT: another spawner holds the lock. */
bool runtime_dir_open(const struct runtime_dirs *p, int *ret_lock, int *ret_output, struct err *e);
/* Kills processes that a crashed spawner has left, then writes a new spawner ID. */
bool runtime_dir_take_over(const struct runtime_dirs *p, char id[RANDOM_ID_LEN + 1], struct err *e);
bool runtime_dir_listen(const struct runtime_dirs *p, const char *socket, int *ret, struct err *e);
/* Unlinks the socket. */
void runtime_dir_socket_remove(const struct runtime_dirs *p, const char *socket);
/*
 * Mount point for artifacts; each worker mounts its own there. NULL: user mode, none. The caller
 * frees it.
 */
char *runtime_dir_artifact(const struct runtime_dirs *p);
