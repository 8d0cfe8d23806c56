/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of a claim, one after the other: too late, stopped, no place, not yet; else it starts. */
#include "core/claim.h"
#include "base/text.h"

static const char *const late[][3] = {
	/* what kept it, and what it is then called */
	{"overlap", "deadline (overlap)", "expires (overlap)"},
	{"limit", "deadline (limit)", "expires (limit)"},
	{"paused", "deadline (paused)", "expires (paused)"},
	{"frozen", "deadline (frozen)", "expires (frozen)"},
	{"condition", "deadline (condition)", "expires (condition)"},
	{"condition unknown", "deadline (condition unknown)", "expires (condition unknown)"},
	{"rate", "deadline (rate)", "expires (rate)"},
};

/* The last moment at which it may start, and by which of its two limits; USEC_NEVER: any time. */
static usec_t last_start(const struct claim_facts *f, bool *ret_expires)
{
	usec_t deadline = f->policy.deadline > 0 && f->attempt == 0 ? f->slot + f->policy.deadline : USEC_NEVER;
	usec_t expires = f->policy.expires > 0 ? f->slot + f->policy.expires : USEC_NEVER;

	*ret_expires = expires < deadline;
	return *ret_expires ? expires : deadline;
}

static struct claim_verdict expire(const struct claim_facts *f, bool expires)
{
	for (size_t i = 0; f->held_by && i < ELEMENTS(late); i++)
		if (text_equal(late[i][0], f->held_by))
			return (struct claim_verdict){.verb = CLAIM_EXPIRE, .reason = late[i][expires ? 2 : 1]};
	return (struct claim_verdict){.verb = CLAIM_EXPIRE, .reason = expires ? "expires" : "deadline"};
}

/* A slot of which others follow is passed over; what was begun, asked for or is the last there is waits. */
static struct claim_verdict stop(const struct claim_facts *f)
{
	const char *reason = f->stopped == HOLD_FROZEN ? "frozen" : "paused";

	if (f->kind == RUN_KIND_SCHEDULE && f->attempt == 0 && f->recurs)
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = reason};
	return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = f->stopped, .reason = reason};
}

static struct claim_verdict no_place(const struct claim_facts *f)
{
	/* begun, and without a place: a dead letter that is to be tried again, and stands behind whatever goes on */
	if (f->attempt > 0)
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PLACE, .reason = "overlap"};
	switch (f->policy.overlap) {
	case OVERLAP_QUEUE:
		if (f->waiting < f->policy.overlap_waiting)
			return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PLACE, .reason = "overlap"};
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "limit"};
	case OVERLAP_REPLACE:
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PLACE, .reason = "overlap",
			.replaces = true};
	case OVERLAP_ALLOW:
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PLACE, .reason = "limit"};
	default:
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "overlap"};
	}
}

/* Looked at again at 'at', or when it is too late, whichever comes first. */
static struct claim_verdict wait_until(usec_t at, const char *reason, usec_t last)
{
	return (struct claim_verdict){.verb = CLAIM_WAIT, .reason = reason, .at = at <= last ? at : last + 1};
}

/* At the same moments for all that wait: one claim looks at all of them, and not one at each. */
static usec_t next_look(usec_t now)
{
	return (now / CLAIM_LOOK_AGAIN + 1) * CLAIM_LOOK_AGAIN;
}

struct claim_verdict claim_decide(const struct claim_facts *f)
{
	bool needs_place = f->policy.places > 0 && !f->has_place, expires;
	bool place_free = needs_place && f->taken < f->policy.places;
	usec_t last = last_start(f, &expires);

	if (f->now > last)
		return expire(f, expires);
	if ((f->stopped == HOLD_FROZEN && !f->thaws) || (f->stopped == HOLD_PAUSED && !f->forced))
		return stop(f);
	if (f->overtaken && f->policy.overlap == OVERLAP_REPLACE && f->kind == RUN_KIND_SCHEDULE && f->attempt == 0)
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "overlap"};
	if (needs_place && !place_free && !f->forced)
		return no_place(f);
	if (f->unmet)
		return wait_until(next_look(f->now), f->unknown ? "condition unknown" : "condition", last);
	if (f->rate_at > f->now)
		return wait_until(f->rate_at, "rate", last);
	return (struct claim_verdict){.verb = CLAIM_START, .takes_place = place_free};
}

/* ---- whose turn ---- */

/* Below 0: 'a' comes first. */
static int compare(const struct claim_lane *a, const struct claim_lane *b)
{
	int64_t weight_a = a->weight > 0 ? a->weight : 1, weight_b = b->weight > 0 ? b->weight : 1;
	int64_t use_a = a->active * weight_b, use_b = b->active * weight_a;
	usec_t age_a = a->due_at - a->priority * CLAIM_AGE, age_b = b->due_at - b->priority * CLAIM_AGE;

	if (use_a != use_b)
		return use_a < use_b ? -1 : 1;
	if (a->owner_active != b->owner_active)
		return a->owner_active < b->owner_active ? -1 : 1;
	if (age_a != age_b)
		return age_a < age_b ? -1 : 1;
	return 0;
}

bool claim_pick(const struct claim_lane *v, size_t n, size_t *ret)
{
	const struct claim_lane *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (v[i].open && (!best || compare(&v[i], best) < 0))
			best = &v[i];
	if (best)
		*ret = (size_t)(best - v);
	return best != NULL;
}
