/* SPDX-License-Identifier: Apache-2.0 */
/* Answers 503 while the store cannot be opened. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct startup_responder;
struct err;
struct sd_event;

bool startup_responder_new(struct sd_event *ev, int listen_fd /* borrowed */,
	struct startup_responder **ret, struct err *e);
/* Connections that were not accepted stay in the queue of the socket. */
void startup_responder_free(struct startup_responder *a);
AUTO_DEFINE(startup_responder);

/* Sets the reason to send. Returns whether it differs from the previous one. */
bool startup_responder_set_reason(struct startup_responder *a, const struct err *why);
