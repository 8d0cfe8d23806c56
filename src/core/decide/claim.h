/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a run that is due, and whose turn it is. */
#pragma once
#include "core/job/policy.h"
#include "core/job/run.h"

/* ---- a run that is due ---- */

#define CLAIM_LOOK_AGAIN (15 * USEC_SEC) /* at most, after a condition did not hold */

struct claim_facts {
	usec_t now, slot;
	enum run_kind kind;
	int64_t attempt;            /* tries so far */
	bool overrides_freeze;                 /* forced by an administrator, in spite of a freeze */
	bool forced;
	struct start_policy policy;
	const char *held_by;        /* the reason it was put off before; NULL: it was not */
	enum run_hold stopped;      /* its job now: HOLD_NONE, HOLD_PAUSED or HOLD_FROZEN */
	enum run_hold slot_stopped; /* its job at the slot; a pause that is over counts */
	bool recurs;                /* the job has slots to come */
	bool caught_up;             /* its slot passed before it could be planned, and the job catches up on all slots */
	bool has_permit;             /* since an earlier attempt */
	bool overtaken;             /* it waited for the rate, and a newer slot has come */
	int64_t taken;              /* places of the job that are in use */
	int64_t waiting;            /* runs of the job that wait for one */
	bool unmet;                 /* a condition does not hold */
	bool unknown;               /* ... because the machine does not tell */
	usec_t rate_at;             /* when the job's rate lets it start; now or before: at once */
};

enum claim_verb {
	CLAIM_START,
	CLAIM_SKIP,   /* it ends as skipped */
	CLAIM_EXPIRE, /* it ends as expired */
	CLAIM_HOLD,   /* out of its lane, until somebody releases it */
	CLAIM_WAIT,   /* it is due later */
	CLAIM_VERB_MAX
};
struct claim_verdict {
	enum claim_verb verb;
	const char *reason;  /* static; NULL for a start */
	enum run_hold hold;  /* of CLAIM_HOLD */
	usec_t at;           /* of CLAIM_WAIT */
	bool takes_permit;    /* of CLAIM_START: it has none yet */
	bool replaces;       /* of CLAIM_HOLD: runs of its job that go on must end, those that wait are skipped */
};
struct claim_verdict claim_decide(const struct claim_facts *f);

/*
 * The last moment at which a run may start; USEC_NEVER: there is none. *ret_expires: 'expires' sets it, not 'deadline'.
 * The index runs_last_start has the same rule.
 */
usec_t claim_last_start(const struct start_policy *p, usec_t slot, int64_t attempt, bool *ret_expires);
/* Why such a run ends as expired: static text. 'held_by' is the reason it was put off before; NULL: it was not. */
const char *claim_expiry_reason(const char *held_by, bool expires);

/* ---- whose turn ---- */

#define CLAIM_AGE (60 * USEC_SEC) /* of waiting makes up for one point of priority */

/* What waits in one queue for one owner with one priority. */
struct claim_lane {
	bool open;                 /* something in it may start */
	int64_t active, weight;    /* of its queue */
	int64_t owner_active;      /* of its owner in that queue */
	int64_t priority;
	usec_t due_at;             /* of the first in it */
};
/* The queue that uses the least of its weight, in it the owner with the fewest runs, of these the oldest. */
bool claim_pick(const struct claim_lane *v, size_t n, size_t *ret); /* false: none is open */
