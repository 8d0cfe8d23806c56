/* SPDX-License-Identifier: Apache-2.0 */
/* The API's socket: made once per machine or user, and put back when somebody removes it. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct listener;
struct sd_event;

/* The lock of the directory, as a descriptor to be closed. ERR_CONFLICT: another jobschedd has it (exit 69). */
bool listener_lock(const char *runtime_dir, int *ret, struct err *e);

/* Takes the lock, too. */
bool listener_open(const char *runtime_dir, const char *socket_path, mode_t mode, struct listener **ret,
	struct err *e);
void listener_free(struct listener *l); /* removes the socket, if it is still ours */
AUTO_DEFINE(listener);

int listener_fd(const struct listener *l); /* the listening descriptor */
int listener_take_fd(struct listener *l);  /* the same; the caller's from now on */
bool listener_watch(struct listener *l, struct sd_event *ev, struct err *e);
