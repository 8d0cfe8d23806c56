/* SPDX-License-Identifier: Apache-2.0 */
/* A file beside a store by which a node that comes wakes one that believes to be alone. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct bell;
struct err;
struct sd_event;

bool bell_new(struct sd_event *ev, const char *store, void (*on_ring)(void *arg), void *arg, struct bell **ret, struct err *e);
void bell_free(struct bell *b);
AUTO_DEFINE(bell);
void bell_ring(struct bell *b); /* everybody hears it, we ourselves too */
