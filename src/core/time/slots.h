/* SPDX-License-Identifier: Apache-2.0 */
/* Selects which slots become runs: upcoming ones, and passed ones by catch-up. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* catchup: none|latest|all[:N]. The action for slots that passed during downtime. */
enum catchup_word { CATCHUP_NONE, CATCHUP_LATEST, CATCHUP_ALL, CATCHUP_MAX };
#define CATCHUP_ALL_MAX 1000 /* default and maximum of N */
struct catchup {
	enum catchup_word word;
	int64_t newest; /* of all: the N newest slots run, older ones are missed */
};
bool slot_catchup_parse(const char *text, struct catchup *ret, struct err *e);

#define SLOTS_LOOKAHEAD (5 * USEC_SEC) /* how long before their time slots become runs */
#define SLOTS_AHEAD_MAX 64             /* upcoming slots of one job per call */
#define SLOTS_GRACE (2 * USEC_SEC)     /* a slot that is late by this is not missed yet: the daemon may have been restarted or be busy */
#define SLOTS_WINDOW USEC_DAY          /* maximum age of the latest slot that is caught up */
#define SLOTS_MAX (1 + CATCHUP_ALL_MAX + SLOTS_AHEAD_MAX)

/*
 * Slots are whole seconds. A time with a fraction in 'due' means that the first slot from this time
 * on must still be computed: for a job whose number is the seed of H, or one that counts from the
 * end of its last run.
 */
usec_t slot_search_from(usec_t t);
/* The 'due' time of a job with a boot schedule until 'until' (0: no end); 0: it has ended. */
usec_t slot_boot_wait(usec_t until, usec_t now);
bool slot_known(usec_t slot); /* a slot: no fraction of a second, not 0, not USEC_NEVER */

/* The first slot after 'after'; false: none. */
typedef bool slot_next_fn(void *arg, usec_t after, usec_t *ret);

/* The last slot before 'slot', not before 'floor'; false: none. */
bool slot_before(slot_next_fn *next, void *arg, usec_t slot, usec_t floor, usec_t *ret);

struct slot_policy {
	struct catchup catchup;
	bool always; /* run it however late: it is the only slot, or the next slot counts from the end of its run */
};

struct slot_range {
	usec_t first, last;
	int64_t count;
	bool missed; /* recorded as skipped */
	bool passed; /* the slot had passed when it was planned */
};

struct slot_plan {
	struct slot_range v[SLOTS_MAX]; /* ascending; those to run have count 1 */
	size_t n;
	usec_t next;                    /* the next slot to plan; 0: the schedule has ended */
};

/*
 * The progress of a scan of passed slots. A month of slots every second takes several calls;
 * nothing is decided before the last call, so that all missed slots become one range. All zero: not
 * started.
 */
struct slot_walk {
	usec_t from, at;                         /* the first slot, and the last one reached */
	int64_t passed;                          /* number of slots between them, inclusive */
	usec_t newest[CATCHUP_ALL_MAX + 1];      /* the last of these slots, as a ring buffer */
};

/*
 * Plans the slots from 'first' to 'horizon'. Scans at most *steps passed slots, which are
 * subtracted from it. False: the steps were not sufficient; call again with the same 'walk'. It is
 * cleared at the end.
 */
bool slots_plan(slot_next_fn *next, void *arg, const struct slot_policy *policy, usec_t first, usec_t now, usec_t horizon,
	struct slot_walk *walk, int64_t *steps, struct slot_plan *ret);

/*
 * For ascending slots of one job that had become runs before the downtime in which they passed: how
 * many of them, from the oldest on, are missed. 'due' is the first slot after them without a run,
 * or 0.
 */
size_t slots_missed(slot_next_fn *next, void *arg, const struct slot_policy *policy, const usec_t *slots, size_t n,
	usec_t due, usec_t now);
