/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store to expire queued runs when the first of them may not start any more. */
#pragma once
#include "base/clock.h"

struct expiry;
struct run_watch_set;
struct store_thread;

struct expiry *expiry_new(const struct clock *clock, struct store_thread *store, struct run_watch_set *run_watch_set); /* all borrowed */
void expiry_free(struct expiry *x); /* NULL is fine; after the store threads have ended */
void expiry_set_time(struct expiry *x, usec_t last_start); /* of the first such run; USEC_NEVER: there is none */
void expiry_stop(struct expiry *x);
usec_t expiry_pump(struct expiry *x); /* when to call again; USEC_NEVER: after the next commit */
