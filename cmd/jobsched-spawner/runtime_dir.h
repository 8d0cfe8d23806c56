/* SPDX-License-Identifier: Apache-2.0 */
/* Where a spawner lives: its directories, its lock, its id and its sockets. */
#pragma once
#include "base/io.h"
#include <stdbool.h>

struct err;
struct user;

#define SOCKET "spawner.sock"
#define SOCKET_FOR_ALL "warrant.sock" /* where owners approve their own jobs */

struct runtime_dirs {
	const char *runtime_dir, *output_dir, *state_dir; /* borrowed */
	const struct user *engine; /* of the system's spawner, which is root's; NULL: of one user; borrowed */
};

bool runtime_dir_open(const struct runtime_dirs *p, int *ret_lock, int *ret_output, struct err *e); /* ERR_CONFLICT: it has a spawner */
/* Ends what a spawner that died left behind, then takes its place under a new name. */
bool runtime_dir_take_over(const struct runtime_dirs *p, char id[RANDOM_ID_LEN + 1], struct err *e);
bool runtime_dir_listen(const struct runtime_dirs *p, const char *socket, int *ret, struct err *e);
void runtime_dir_socket_remove(const struct runtime_dirs *p, const char *socket); /* takes its name away */
/* Where workers find their artifact: each mounts its own over it. NULL: nowhere; caller frees. */
char *runtime_dir_artifact(const struct runtime_dirs *p);
