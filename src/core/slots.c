/* SPDX-License-Identifier: Apache-2.0 */
/* Materialising slots: pure arithmetic over a schedule's next(). */
#include "core/slots.h"

#define WALK_MAX 200000 /* slots looked at in one go; the rest comes with the next call */
#define LATE_MAX USEC_DAY

usec_t slot_search_from(usec_t t)
{
	return t % USEC_SEC ? t : t + 1;
}

/* The look-ahead is added, so that this is looked at when 'until' is over and not before. */
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

static void add(struct slot_plan *p, usec_t first, usec_t last, int64_t count, bool missed)
{
	p->v[p->n++] = (struct slot_range){first, last, count, missed};
}

/* Walks over what lies in the past. Returns the first slot not in the past, 0 when there is none. */
static usec_t take_past(slot_next_fn *next, void *arg, usec_t first, usec_t now, struct slot_plan *p,
	bool *ret_cut)
{
	usec_t slot = first, before = 0, following = 0;
	int64_t missed = 0;

	*ret_cut = false;
	for (;;) {
		if (!next(arg, slot, &following))
			following = 0;
		if (following == 0 || following > now)
			break;
		before = slot;
		missed++;
		slot = following;
		if (missed == WALK_MAX) {
			*ret_cut = true;
			add(p, first, before, missed, true);
			return slot;
		}
	}
	if (missed)
		add(p, first, before, missed, true);
	/* the latest one: late, but what was meant; too late only if others follow */
	if (now - slot > LATE_MAX && following)
		add(p, slot, slot, 1, true);
	else
		add(p, slot, slot, 1, false);
	return following;
}

void slots_plan(slot_next_fn *next, void *arg, usec_t first, usec_t now, usec_t horizon,
	struct slot_plan *ret)
{
	usec_t slot = first;

	*ret = (struct slot_plan){};
	if (slot <= now) {
		bool cut;

		slot = take_past(next, arg, first, now, ret, &cut);
		if (cut) {
			ret->next = slot;
			return;
		}
	}
	while (slot && slot <= horizon && ret->n < SLOTS_MAX) {
		add(ret, slot, slot, 1, false);
		if (!next(arg, slot, &slot))
			slot = 0;
	}
	ret->next = slot;
}
