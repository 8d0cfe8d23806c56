/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a due run starts, waits, is skipped or expires. */
#pragma once
#include "core/job/policy.h"
#include "core/job/run.h"

/* ---- the decision on a due run ---- */

#define CLAIM_CHECK_INTERVAL (15 * USEC_SEC) /* interval at which an unmet condition is checked again */

struct claim_facts {
	usec_t now, slot;
	enum run_kind kind;
	int64_t attempt;            /* attempts so far */
	bool overrides_freeze;                 /* forced by an administrator: starts in spite of a freeze */
	bool forced;
	struct start_policy policy;
	const char *held_by;        /* the reason why it was postponed before; NULL: it was not */
	enum run_hold stopped;      /* state of its job now: HOLD_NONE, HOLD_PAUSED or HOLD_FROZEN */
	enum run_hold slot_stopped; /* state of its job at the slot, including pauses that are over */
	bool recurs;                /* the job has further slots */
	bool caught_up;             /* its slot passed before it could be planned, and the job catches up on all slots */
	bool has_permit;             /* from an earlier attempt */
	bool overtaken;             /* it waited for the rate, and a newer slot is due */
	int64_t taken;              /* permits of the job that are in use */
	int64_t waiting;            /* runs of the job that wait for a permit */
	const char *withheld;       /* why slots of this job do not run: static; NULL: they run */
	bool unmet;                 /* a condition does not hold */
	bool unknown;               /* ... because the figure is not available */
	usec_t rate_at;             /* when the job's rate allows the start; now or before: at once */
};

enum claim_verb {
	CLAIM_START,
	CLAIM_SKIP,   /* it ends as skipped */
	CLAIM_EXPIRE, /* it ends as expired */
	CLAIM_HOLD,   /* leaves its lane until it is released */
	CLAIM_WAIT,   /* its due time is postponed */
	CLAIM_VERB_MAX
};
struct claim_verdict {
	enum claim_verb verb;
	const char *reason;  /* static; NULL for a start */
	enum run_hold hold;  /* of CLAIM_HOLD */
	usec_t at;           /* of CLAIM_WAIT */
	bool takes_permit;    /* of CLAIM_START: the run needs a new permit */
	bool replaces;       /* of CLAIM_HOLD: running runs of its job are cancelled, waiting ones are skipped */
};
struct claim_verdict claim_decide(const struct claim_facts *f);

/*
 * The last moment at which a run may start; USEC_NEVER: no limit. *ret_expires: the limit is
 * 'expires', not 'deadline'. The index runs_last_start of the store implements the same rule.
 */
usec_t claim_last_start(const struct start_policy *p, usec_t slot, int64_t attempt, bool *ret_expires);
/*
 * The reason recorded for an expired run: static text. 'held_by' is the reason why it was
 * postponed; NULL: it was not.
 */
const char *claim_expiry_reason(const char *held_by, bool expires);

/* ---- the order of lanes ---- */

#define CLAIM_AGE (60 * USEC_SEC) /* this waiting time counts as one point of priority */

/* The waiting runs of one queue, owner and priority. */
struct claim_lane {
	bool open;                 /* its first run may start */
	int64_t active, weight;    /* of its queue */
	int64_t owner_active;      /* of its owner in that queue */
	int64_t priority;
	usec_t due_at;             /* of its first run */
};
/*
 * Selects the queue with the lowest use of its weight, in it the owner with the fewest runs, of
 * these the oldest run.
 */
bool claim_pick(const struct claim_lane *v, size_t n, size_t *ret); /* false: no lane is open */
