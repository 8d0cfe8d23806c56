/* SPDX-License-Identifier: Apache-2.0 */
/* Computes upcoming, missed and caught-up slots of a schedule. */
#include "core/time/slots.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <string.h>

bool slot_catchup_parse(const char *text, struct catchup *ret, struct err *e)
{
	int64_t newest = CATCHUP_ALL_MAX;

	if (strcmp(text, "none") == 0)
		*ret = (struct catchup){CATCHUP_NONE, 0};
	else if (strcmp(text, "latest") == 0)
		*ret = (struct catchup){CATCHUP_LATEST, 1};
	else if (strcmp(text, "all") == 0 ||
		 (text_starts(text, "all:") && text_parse_int(text + 4, 1, CATCHUP_ALL_MAX, &newest)))
		*ret = (struct catchup){CATCHUP_ALL, newest};
	else
		return err_field(e, "catchup", "'%.40s' is not none, latest, all or all:N (1 to %d)", text,
			CATCHUP_ALL_MAX);
	return true;
}

usec_t slot_search_from(usec_t t)
{
	return t % USEC_SEC ? t : t + 1;
}

/* The look-ahead is added, so that the row is due only after 'until'. */
usec_t slot_boot_wait(usec_t until, usec_t now)
{
	if (!until)
		return USEC_NEVER;
	return now > until ? 0 : slot_search_from(until + SLOTS_LOOKAHEAD);
}

bool slot_known(usec_t slot)
{
	return slot != 0 && slot != USEC_NEVER && slot % USEC_SEC == 0;
}

/* Whether there is a slot after 't' and before 'slot'. */
static bool between(slot_next_fn *next, void *arg, usec_t t, usec_t slot, usec_t *ret)
{
	return next(arg, t, ret) && *ret < slot;
}

/*
 * Doubles the distance back until a slot is found, then bisects: schedules can only be searched
 * forward.
 */
bool slot_before(slot_next_fn *next, void *arg, usec_t slot, usec_t floor, usec_t *ret)
{
	usec_t back = USEC_SEC, low, high, found;

	while (!between(next, arg, slot - back, slot, &found)) {
		if (slot - back < floor)
			return false;
		back *= 2;
	}
	low = slot - back; /* there is a slot between 'low' and 'slot', and none between 'high' and 'slot' */
	high = back > USEC_SEC ? slot - back / 2 : slot - 1;
	while (high - low > 1) {
		usec_t middle = low + (high - low) / 2, seen;

		if (between(next, arg, middle, slot, &seen)) {
			low = middle;
			found = seen;
		} else {
			high = middle;
		}
	}
	if (found < floor)
		return false;
	*ret = found;
	return true;
}

/* How long the latest passed slot is still caught up: until the next slot, at most a day. */
static usec_t window_of(usec_t slot, usec_t following)
{
	return following && following - slot < SLOTS_WINDOW ? following - slot : SLOTS_WINDOW;
}

/* ---- passed slots ---- */

#define RING ELEMENTS(((struct slot_walk *)0)->newest)

static void walk_to(struct slot_walk *w, usec_t slot)
{
	w->at = slot;
	w->newest[(size_t)w->passed++ % RING] = slot;
}

static usec_t walk_slot(const struct slot_walk *w, int64_t i)
{
	return w->newest[(size_t)i % RING];
}

/* The number of newest slots that are still run. */
static int64_t slots_to_run(const struct slot_policy *policy, const struct slot_walk *w, usec_t following, usec_t now)
{
	int64_t n = 0;

	if (policy->always)
		return 1;
	switch (policy->catchup.word) {
	case CATCHUP_LATEST:
		return now - w->at <= window_of(w->at, following);
	case CATCHUP_ALL:
		return w->passed < policy->catchup.newest ? w->passed : policy->catchup.newest;
	default:
		while (n < w->passed && n + 1 < (int64_t)RING && now - walk_slot(w, w->passed - 1 - n) <= SLOTS_GRACE)
			n++;
		return n;
	}
}

static void slot_plan_add(struct slot_plan *p, const struct slot_range *r)
{
	p->v[p->n++] = *r;
}

static void slot_plan_add_passed(const struct slot_policy *policy, const struct slot_walk *w, usec_t following, usec_t now,
	struct slot_plan *p)
{
	int64_t missed = w->passed - slots_to_run(policy, w, following, now);

	if (missed > 0)
		slot_plan_add(p, &(struct slot_range){w->from, walk_slot(w, missed - 1), missed, .missed = true, .passed = true});
	for (int64_t i = missed; i < w->passed; i++)
		slot_plan_add(p, &(struct slot_range){walk_slot(w, i), walk_slot(w, i), 1, .passed = true});
}

/*
 * Advances to the last passed slot; *ret_following is the next one, 0: none. False: no steps left.
 */
static bool walk_on(slot_next_fn *next, void *arg, usec_t now, struct slot_walk *w, int64_t *steps, usec_t *ret_following)
{
	usec_t slot;

	for (;;) {
		if (--*steps < 0)
			return false;
		if (!next(arg, w->at, &slot))
			slot = 0;
		if (slot == 0 || slot > now) {
			*ret_following = slot;
			return true;
		}
		walk_to(w, slot);
	}
}

bool slots_plan(slot_next_fn *next, void *arg, const struct slot_policy *policy, usec_t first, usec_t now, usec_t horizon,
	struct slot_walk *walk, int64_t *steps, struct slot_plan *ret)
{
	usec_t slot = first;

	ret->n = 0;
	ret->next = first;
	if (first <= now) {
		if (walk->from != first) {
			walk->from = first;
			walk->passed = 0;
			walk_to(walk, first);
		}
		if (!walk_on(next, arg, now, walk, steps, &slot))
			return false;
		slot_plan_add_passed(policy, walk, slot, now, ret);
		walk->from = 0;
	}
	for (int i = 0; slot && slot <= horizon && i < SLOTS_AHEAD_MAX; i++) {
		slot_plan_add(ret, &(struct slot_range){slot, slot, 1});
		if (!next(arg, slot, &slot))
			slot = 0;
	}
	ret->next = slot;
	return true;
}

/* ---- slots that passed after they had become runs ---- */

/* The number of slots from 'due' to now, at most 'max'. */
static int64_t count_passed(slot_next_fn *next, void *arg, usec_t due, usec_t now, int64_t max)
{
	int64_t n = 0;

	while (n < max && due && due <= now) {
		n++;
		if (!next(arg, due, &due))
			due = 0;
	}
	return n;
}

size_t slots_missed(slot_next_fn *next, void *arg, const struct slot_policy *policy, const usec_t *slots, size_t n,
	usec_t due, usec_t now)
{
	int64_t newer, room, missed = 0;
	size_t late = 0;

	if (policy->always)
		return 0;
	while (late < n && now - slots[late] > SLOTS_GRACE)
		late++;
	if (late == 0)
		return 0;
	switch (policy->catchup.word) {
	case CATCHUP_LATEST:
		newer = slot_known(due) && due <= now;
		room = !newer && now - slots[n - 1] <= window_of(slots[n - 1], slot_known(due) ? due : 0);
		break;
	case CATCHUP_ALL:
		newer = slot_known(due) ? count_passed(next, arg, due, now, policy->catchup.newest) : 0;
		room = policy->catchup.newest - newer;
		break;
	default:
		room = 0;
	}
	missed = (int64_t)n - room;
	return missed < 0 ? 0 : (size_t)missed < late ? (size_t)missed : late;
}
