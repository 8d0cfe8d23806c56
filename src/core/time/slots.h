/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of a schedule become runs now: those ahead as they are, those that passed by catch-up. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* catchup: none|latest|all[:N]. What becomes of slots that passed while nobody was there. */
enum catchup_word { CATCHUP_NONE, CATCHUP_LATEST, CATCHUP_ALL, CATCHUP_MAX };
#define CATCHUP_ALL_MAX 1000 /* of all: so many of the newest when no number is given, and at most */
struct catchup {
	enum catchup_word word;
	int64_t newest; /* of all: so many run, the older ones are missed */
};
bool slot_catchup_parse(const char *text, struct catchup *ret, struct err *e);

#define SLOTS_LOOKAHEAD (5 * USEC_SEC) /* slots become runs so long before they are due */
#define SLOTS_AHEAD_MAX 64             /* of one job in one go; the rest comes with the next */
#define SLOTS_GRACE (2 * USEC_SEC)     /* a slot so late is not missed yet: the daemon was restarted, or is busy */
#define SLOTS_WINDOW USEC_DAY          /* older than this the latest one is not worth a run any more */
#define SLOTS_MAX (1 + CATCHUP_ALL_MAX + SLOTS_AHEAD_MAX)

/*
 * Slots are whole seconds. What is not, is the moment from which the first slot is still to be found: of a job whose
 * number decides it, or of one that counts from the end of its last run.
 */
usec_t slot_search_from(usec_t t);
/* For a job that waits for boots up to 'until' (0: for ever); 0: that is over. */
usec_t slot_boot_wait(usec_t until, usec_t now);
bool slot_known(usec_t slot); /* neither such a moment, nor 0, nor USEC_NEVER */

/* The first slot after 'after'; false: none. */
typedef bool slot_next_fn(void *arg, usec_t after, usec_t *ret);

/* The last slot before 'slot', not before 'floor'; false: none. */
bool slot_before(slot_next_fn *next, void *arg, usec_t slot, usec_t floor, usec_t *ret);

struct slot_policy {
	struct catchup catchup;
	bool always; /* however late: the only slot there is, or one whose run the next slot counts from */
};

struct slot_range {
	usec_t first, last;
	int64_t count;
	bool missed; /* recorded as skipped, not run */
	bool passed; /* the slot was over when it was planned */
};

struct slot_plan {
	struct slot_range v[SLOTS_MAX]; /* ascending; those to run have count 1 */
	size_t n;
	usec_t next;                    /* the slot to look at next; 0: the schedule has ended */
};

/*
 * The way through slots that passed. A month of seconds takes several calls; nothing is decided before the last of
 * them, so that the whole stretch becomes one range. All zero: not begun.
 */
struct slot_walk {
	usec_t from, at;                         /* the first slot, the last one seen */
	int64_t passed;                          /* from the one to the other */
	usec_t newest[CATCHUP_ALL_MAX + 1];      /* the last of them, as a ring: number i is at i % its size */
};

/*
 * 'first' is the slot that is due by 'horizon'. At most *steps slots that passed are looked at, and taken off; false:
 * they did not suffice, and 'walk' is to be given again. It is cleared when done.
 */
bool slots_plan(slot_next_fn *next, void *arg, const struct slot_policy *policy, usec_t first, usec_t now, usec_t horizon,
	struct slot_walk *walk, int64_t *steps, struct slot_plan *ret);

/*
 * For slots of one job that had become runs before they passed without anybody there, ascending: how many of them, from
 * the oldest on, are missed. 'due' is the slot after them that has no run yet, or 0.
 */
size_t slots_missed(slot_next_fn *next, void *arg, const struct slot_policy *policy, const usec_t *slots, size_t n,
	usec_t due, usec_t now);
