/* SPDX-License-Identifier: Apache-2.0 */
/* Has pauses begin or end at their times. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"

struct clock;
struct pause_timer;
struct store_thread;

struct pause_timer *pause_timer_new(const struct clock *clock,
	struct store_thread *store /* borrowed */);
void pause_timer_free(struct pause_timer *p); /* after the store threads have ended */
AUTO_DEFINE(pause_timer);

/* The first begin or end of a pause; USEC_NEVER: none. */
void pause_timer_set_end(struct pause_timer *p, usec_t at);
/* When to call again; USEC_NEVER: after the next commit. */
usec_t pause_timer_pump(struct pause_timer *p);
void pause_timer_stop(struct pause_timer *p);
