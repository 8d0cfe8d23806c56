/* SPDX-License-Identifier: Apache-2.0 */
/* Expires queued runs that may not start any more. */
#pragma once
#include "base/clock.h"

struct expiry;
struct run_watch_set;
struct store_thread;

/* All parameters are borrowed. */
struct expiry *expiry_new(const struct clock *clock, struct store_thread *store,
	struct run_watch_set *run_watch_set);
void expiry_free(struct expiry *x); /* after the store threads have ended; NULL is fine */
/* The earliest deadline of a queued run; USEC_NEVER: there is none. */
void expiry_set_time(struct expiry *x, usec_t last_start);
void expiry_stop(struct expiry *x);
usec_t expiry_pump(struct expiry *x); /* when to call again; USEC_NEVER: after the next commit */
