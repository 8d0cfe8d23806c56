/* SPDX-License-Identifier: Apache-2.0 */
/* Tells those who ask why there is no server yet: the store cannot be reached. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct startup_responder;
struct err;
struct sd_event;

bool startup_responder_new(struct sd_event *ev, int listen_fd /* borrowed */, struct startup_responder **ret, struct err *e);
void startup_responder_free(struct startup_responder *a); /* who has not been answered stays in the socket's queue */
AUTO_DEFINE(startup_responder);

/* The reason from now on. True: it is another one than before. */
bool startup_responder_set_reason(struct startup_responder *a, const struct err *why);
