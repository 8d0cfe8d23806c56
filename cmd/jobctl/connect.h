/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the daemon. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;

/*
 * Does nothing if already connected. The message of ERR_UNREACHABLE names the command that starts a
 * daemon.
 */
bool connect_daemon(struct ctl *c, struct err *e);
