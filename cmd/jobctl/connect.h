/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the daemon and connects to it. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;

/* Does nothing if already connected. The message of ERR_UNREACHABLE names the command that starts a daemon. */
bool connect_daemon(struct ctl *c, struct err *e);
