/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of a schedule become runs now: those ahead as they are, those missed by catch-up. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_MAX 64
#define SLOTS_LOOKAHEAD (5 * USEC_SEC) /* slots become runs so long before they are due */

/*
 * Slots are whole seconds. What is not, is the moment from which the first slot is still to be found: of a job whose
 * number decides it, or of one that counts from the end of its last run.
 */
usec_t slot_search_from(usec_t t);
/* For a job that waits for boots up to 'until' (0: for ever); 0: that is over. */
usec_t slot_boot_wait(usec_t until, usec_t now);
bool slot_known(usec_t slot); /* neither such a moment, nor 0, nor USEC_NEVER */

struct slot_range {
	usec_t first, last;
	int64_t count;
	bool missed; /* recorded as skipped, not run */
};

struct slot_plan {
	struct slot_range v[SLOTS_MAX]; /* ascending; those to run have count 1 */
	size_t n;
	usec_t next;                    /* the slot to look at next; 0: the schedule has ended */
};

/* The first slot after 'after'; false: none. */
typedef bool slot_next_fn(void *arg, usec_t after, usec_t *ret);

/*
 * 'first' is the slot that is due by 'horizon'. Of the slots that lie in the past the latest still runs, if it is
 * younger than a day or the only one there ever is; those before it are one range of missed ones.
 */
void slots_plan(slot_next_fn *next, void *arg, usec_t first, usec_t now, usec_t horizon,
	struct slot_plan *ret);
