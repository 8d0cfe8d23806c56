/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's side of the PAM session of a worker. */
#pragma once
#include "base/clock.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include <stdbool.h>

struct pam_session_plan;
struct worker;

void worker_session_open(struct worker *w, const struct pam_session_plan *p);
void worker_session_adopt(struct worker *w); /* after a re-exec */
void worker_session_give_up(struct worker *w, enum start_failure reason, const char *why);
/* Begins to close the session. True: there is none, it is closed, or closing took too long. */
bool worker_session_closed(struct worker *w, usec_t now);
