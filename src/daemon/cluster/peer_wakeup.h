/* SPDX-License-Identifier: Apache-2.0 */
/* A file beside the store that a starting node writes to, to wake the nodes that are already running. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct peer_wakeup;
struct err;
struct sd_event;

bool peer_wakeup_new(struct sd_event *ev, const char *store, void (*on_wakeup)(void *arg), void *arg, struct peer_wakeup **ret, struct err *e);
void peer_wakeup_free(struct peer_wakeup *b);
AUTO_DEFINE(peer_wakeup);
void peer_wakeup_send(struct peer_wakeup *b); /* wakes all nodes, this one included */
