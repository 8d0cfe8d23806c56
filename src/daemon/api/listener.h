/* SPDX-License-Identifier: Apache-2.0 */
/* Listening socket of the API, restored when its name is removed. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct listener;
struct sd_event;

/*
 * Locks the directory and returns the descriptor, which the caller closes. ERR_CONFLICT: another
 * jobschedd holds the lock (exit code 69).
 */
bool listener_lock(const char *runtime_dir, int *ret, struct err *e);

/* Also takes the lock. */
bool listener_open(const char *runtime_dir, const char *socket_path, mode_t mode,
	struct listener **ret, struct err *e);
/* Removes the socket name if it still refers to this socket. */
void listener_free(struct listener *l);
AUTO_DEFINE(listener);

int listener_fd(const struct listener *l); /* the listening descriptor */
int listener_take_fd(struct listener *l);  /* the caller owns it afterwards */
/* TCP sockets that systemd passed; the caller owns the descriptors afterwards. */
size_t listener_take_tcp(struct listener *l, const int **ret /* borrowed */);
bool listener_watch(struct listener *l, struct sd_event *ev, struct err *e);
