/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the pauses whose time is over, at that very moment. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"

struct clock;
struct pauses;
struct store_thread;

struct pauses *pauses_new(const struct clock *clock, struct store_thread *store /* borrowed */);
void pauses_free(struct pauses *p); /* after the store thread, which may still work for it */
AUTO_DEFINE(pauses);

void pauses_end_is(struct pauses *p, usec_t at); /* the first that ends by itself; USEC_NEVER: none */
usec_t pauses_pump(struct pauses *p);            /* ends what is over; when to come again */
void pauses_stop(struct pauses *p);
