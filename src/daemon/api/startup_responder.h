/* SPDX-License-Identifier: Apache-2.0 */
/* Tells those who ask why there is no server yet: the store cannot be reached. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct anteroom;
struct err;
struct sd_event;

bool anteroom_new(struct sd_event *ev, int listen_fd /* borrowed */, struct anteroom **ret, struct err *e);
void anteroom_free(struct anteroom *a); /* who has not been answered stays in the socket's queue */
AUTO_DEFINE(anteroom);

/* The reason from now on. True: it is another one than before. */
bool anteroom_say(struct anteroom *a, const struct err *why);
