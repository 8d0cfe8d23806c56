/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the rules for a due run in this order: deadline, another cron daemon, pause, overlap, condition, rate. */
#include "core/decide/claim.h"
#include "base/text.h"

static const char *const expiry_reasons[][3] = {
	/* why the run was postponed, and the reasons recorded when it expires */
	{"overlap", "deadline (overlap)", "expires (overlap)"},
	{"limit", "deadline (limit)", "expires (limit)"},
	{"paused", "deadline (paused)", "expires (paused)"},
	{"frozen", "deadline (frozen)", "expires (frozen)"},
	{"condition", "deadline (condition)", "expires (condition)"},
	{"condition unknown", "deadline (condition unknown)", "expires (condition unknown)"},
	{"rate", "deadline (rate)", "expires (rate)"},
};

usec_t claim_last_start(const struct start_policy *p, usec_t slot, int64_t attempt, bool *ret_expires)
{
	usec_t deadline = p->deadline > 0 && attempt == 0 ? slot + p->deadline : USEC_NEVER;
	usec_t expires = p->expires > 0 ? slot + p->expires : USEC_NEVER;

	*ret_expires = expires < deadline;
	return *ret_expires ? expires : deadline;
}

const char *claim_expiry_reason(const char *held_by, bool expires)
{
	for (size_t i = 0; held_by && i < ELEMENTS(expiry_reasons); i++)
		if (text_equal(expiry_reasons[i][0], held_by))
			return expiry_reasons[i][expires ? 2 : 1];
	return expires ? "expires" : "deadline";
}

static const char *stop_reason(enum run_hold stopped)
{
	return stopped == HOLD_FROZEN ? "frozen" : "paused";
}

/*
 * A slot inside a pause is skipped, also if the run is decided later. Runs with an attempt and last
 * slots are not skipped.
 */
static bool slot_is_skipped(const struct claim_facts *f)
{
	return f->slot_stopped != HOLD_NONE && f->kind == RUN_KIND_SCHEDULE && f->attempt == 0 && f->recurs;
}

/* Another cron daemon runs the slots of this job. A run that a user has asked for is started. */
static bool slot_is_withheld(const struct claim_facts *f)
{
	return f->withheld && f->kind != RUN_KIND_MANUAL && f->attempt == 0;
}

/* Other runs, including those of slots before the pause, wait for its end. */
static bool is_paused_now(const struct claim_facts *f)
{
	return (f->stopped == HOLD_FROZEN && !f->overrides_freeze) || (f->stopped == HOLD_PAUSED && !f->forced);
}

static struct claim_verdict no_permit(const struct claim_facts *f)
{
	/*
	 * a dead letter that is retried has an attempt but no permit: it waits for the running runs
	 */
	if (f->attempt > 0)
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PERMIT, .reason = "overlap"};
	switch (f->policy.overlap) {
	case OVERLAP_QUEUE:
		if (f->waiting < f->policy.overlap_waiting)
			return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PERMIT, .reason = "overlap"};
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "limit"};
	case OVERLAP_REPLACE:
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PERMIT, .reason = "overlap",
			.replaces = true};
	case OVERLAP_ALLOW:
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PERMIT, .reason = "limit"};
	default:
		if (f->caught_up) /* catch-up runs start one after another */
			return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = HOLD_PERMIT, .reason = "overlap"};
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "overlap"};
	}
}

/* Decides again at 'at', or just after the last possible start if that is earlier. */
static struct claim_verdict wait_until(usec_t at, const char *reason, usec_t last)
{
	return (struct claim_verdict){.verb = CLAIM_WAIT, .reason = reason, .at = at <= last ? at : last + 1};
}

/* Rounded to common times, so that one claim checks all waiting runs. */
static usec_t next_check_time(usec_t now)
{
	return (now / CLAIM_CHECK_INTERVAL + 1) * CLAIM_CHECK_INTERVAL;
}

struct claim_verdict claim_decide(const struct claim_facts *f)
{
	bool needs_permit = f->policy.permits > 0 && !f->has_permit, expires;
	bool permit_free = needs_permit && f->taken < f->policy.permits;
	usec_t last = claim_last_start(&f->policy, f->slot, f->attempt, &expires);

	if (f->now > last)
		return (struct claim_verdict){.verb = CLAIM_EXPIRE, .reason = claim_expiry_reason(f->held_by, expires)};
	if (slot_is_withheld(f))
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = f->withheld};
	if (slot_is_skipped(f))
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = stop_reason(f->slot_stopped)};
	if (is_paused_now(f))
		return (struct claim_verdict){.verb = CLAIM_HOLD, .hold = f->stopped, .reason = stop_reason(f->stopped)};
	if (f->overtaken && f->policy.overlap == OVERLAP_REPLACE && f->kind == RUN_KIND_SCHEDULE && f->attempt == 0)
		return (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "overlap"};
	if (needs_permit && !permit_free && !f->forced)
		return no_permit(f);
	if (f->unmet)
		return wait_until(next_check_time(f->now), f->unknown ? "condition unknown" : "condition", last);
	if (f->rate_at > f->now)
		return wait_until(f->rate_at, "rate", last);
	return (struct claim_verdict){.verb = CLAIM_START, .takes_permit = permit_free};
}

/* ---- the order of lanes ---- */

/* Negative: 'a' comes first. */
static int lane_compare(const struct claim_lane *a, const struct claim_lane *b)
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
		if (v[i].open && (!best || lane_compare(&v[i], best) < 0))
			best = &v[i];
	if (best)
		*ret = (size_t)(best - v);
	return best != NULL;
}
