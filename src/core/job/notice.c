/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks job health and decides when a notice is due. */
#include "core/job/notice.h"
#include "base/auto.h"
#include <string.h>

#define LONG_FACTOR 3
#define LONG_EXTRA (60 * USEC_SEC)
#define TYPICAL_WEIGHT 8 /* weight of a new duration in the moving average is 1/8 */

static const char *const state_names[NOTICE_STATE_MAX] = {
	[NOTICE_WAITING] = "waiting",
	[NOTICE_SENT] = "sent",
	[NOTICE_FAILED] = "failed",
};
static const char *const kind_names[NOTICE_KIND_MAX] = {
	[NOTICE_KIND_NONE] = "nothing",
	[NOTICE_KIND_FAILED] = "failed",
	[NOTICE_KIND_RECOVERED] = "recovered",
	[NOTICE_KIND_MISSED] = "missed",
	[NOTICE_KIND_LONG] = "long",
	[NOTICE_KIND_TEST] = "test",
	[NOTICE_KIND_OUTPUT] = "output",
};
/* Reasons of skipped slots that count as missed. */
static const char *const missed_reasons[] = {"overlap", "limit", "missed", "condition"};

static int notice_name_index(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

const char *notice_state_name(enum notice_state s)
{
	return s < NOTICE_STATE_MAX ? state_names[s] : "unknown";
}

bool notice_state_parse(const char *name, enum notice_state *ret)
{
	int i = notice_name_index(state_names, NOTICE_STATE_MAX, name);

	if (i >= 0)
		*ret = (enum notice_state)i;
	return i >= 0;
}

const char *notice_kind_name(enum notice_kind k)
{
	return k < NOTICE_KIND_MAX ? kind_names[k] : "unknown";
}

bool notice_kind_parse(const char *name, enum notice_kind *ret)
{
	int i = notice_name_index(kind_names, NOTICE_KIND_MAX, name);

	if (i >= 0)
		*ret = (enum notice_kind)i;
	return i >= 0;
}

bool notice_health_of(enum run_state state, const char *reason, enum health *ret)
{
	switch (state) {
	case RUN_SUCCEEDED:
		*ret = HEALTH_GOOD;
		return true;
	case RUN_FAILED:
	case RUN_TIMED_OUT:
		*ret = HEALTH_FAILED;
		return true;
	case RUN_LOST:
	case RUN_EXPIRED:
		*ret = HEALTH_MISSED;
		return true;
	case RUN_SKIPPED:
		*ret = HEALTH_MISSED;
		return reason && notice_name_index(missed_reasons, ELEMENTS(missed_reasons), reason) >= 0;
	default:
		return false;
	}
}

static usec_t typical_after(usec_t typical, usec_t took)
{
	if (took <= 0)
		return typical;
	return typical ? typical + (took - typical) / TYPICAL_WEIGHT : took;
}

static enum notice_kind move_good(struct job_health *h, const struct run_outcome *o)
{
	bool was_bad = h->bad != HEALTH_GOOD;

	h->last_success = o->run;
	h->typical = typical_after(h->typical, o->took);
	/*
	 * the success of an older run does not make up for a newer slot that was skipped by overlap
	 */
	if (!was_bad || o->slot < h->slot)
		return NOTICE_KIND_NONE;
	h->bad = HEALTH_GOOD;
	h->since = o->at;
	return NOTICE_KIND_RECOVERED;
}

enum notice_kind notice_health_update(struct job_health *h, const struct run_outcome *o)
{
	if (o->health == HEALTH_GOOD)
		return move_good(h, o);
	if (o->slot > h->slot)
		h->slot = o->slot;
	if (o->health <= h->bad)
		return NOTICE_KIND_NONE;
	h->bad = o->health;
	h->since = o->at;
	return o->health == HEALTH_FAILED ? NOTICE_KIND_FAILED : NOTICE_KIND_MISSED;
}

usec_t notice_long_after(usec_t typical)
{
	if (typical <= 0 || typical > USEC_NEVER / LONG_FACTOR)
		return USEC_NEVER;
	return LONG_FACTOR * typical > typical + LONG_EXTRA ? LONG_FACTOR * typical : typical + LONG_EXTRA;
}

usec_t notice_retry_delay(int64_t tries, usec_t base, uint64_t random)
{
	static const int factors[] = {1, 4, 16, 40};
	size_t at = tries < 1 ? 0 : tries > (int64_t)ELEMENTS(factors) ? ELEMENTS(factors) - 1 : (size_t)tries - 1;
	usec_t delay = base * factors[at];

	return delay - delay / 4 + (usec_t)(random % (uint64_t)(delay / 2 + 1));
}
