/* SPDX-License-Identifier: Apache-2.0 */
/* State names and the transition table of runs. */
#include "core/job/run.h"
#include <stdlib.h>
#include <string.h>

static const char *const state_names[RUN_STATE_MAX] = {
	[RUN_QUEUED] = "queued",
	[RUN_CLAIMED] = "claimed",
	[RUN_RUNNING] = "running",
	[RUN_SUCCEEDED] = "succeeded",
	[RUN_FAILED] = "failed",
	[RUN_TIMED_OUT] = "timed_out",
	[RUN_CANCELLED] = "cancelled",
	[RUN_LOST] = "lost",
	[RUN_SKIPPED] = "skipped",
	[RUN_EXPIRED] = "expired",
};
static const char *const kind_names[RUN_KIND_MAX] = {
	[RUN_KIND_SCHEDULE] = "schedule",
	[RUN_KIND_MANUAL] = "manual",
	[RUN_KIND_BOOT] = "boot",
	[RUN_KIND_CHAIN] = "chain",
};
static const char *const outcome_names[ATTEMPT_OUTCOME_MAX] = {
	[ATTEMPT_RUNNING] = "running",
	[ATTEMPT_SUCCEEDED] = "succeeded",
	[ATTEMPT_FAILED] = "failed",
	[ATTEMPT_TIMED_OUT] = "timed_out",
	[ATTEMPT_CANCELLED] = "cancelled",
	[ATTEMPT_LOST] = "lost",
	[ATTEMPT_NOT_STARTED] = "not_started",
	[ATTEMPT_DENIED] = "denied",
	[ATTEMPT_STALE] = "stale",
	[ATTEMPT_STALLED] = "stalled",
	[ATTEMPT_GATED] = "gated",
};

#define TO(s) (1u << (s))
#define ENDS (TO(RUN_SUCCEEDED) | TO(RUN_FAILED) | TO(RUN_TIMED_OUT) | TO(RUN_CANCELLED) | TO(RUN_LOST))
#define GATED (TO(RUN_SKIPPED) | TO(RUN_EXPIRED)) /* by the gate of its job */

/* The allowed transitions from each state; final states have none. */
static const unsigned moves[RUN_STATE_MAX] = {
	[RUN_QUEUED] = TO(RUN_CLAIMED) | TO(RUN_CANCELLED) | TO(RUN_SKIPPED) | TO(RUN_EXPIRED),
	[RUN_CLAIMED] = TO(RUN_QUEUED) | TO(RUN_RUNNING) | ENDS | GATED,
	[RUN_RUNNING] = TO(RUN_QUEUED) | ENDS | GATED,
};

static int run_name_index(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

const char *run_state_name(enum run_state s)
{
	return s < RUN_STATE_MAX ? state_names[s] : "unknown";
}

bool run_state_parse(const char *name, enum run_state *ret)
{
	int i = run_name_index(state_names, RUN_STATE_MAX, name);

	if (i >= 0)
		*ret = (enum run_state)i;
	return i >= 0;
}

bool run_state_final(enum run_state s)
{
	return s < RUN_STATE_MAX && moves[s] == 0;
}

bool run_move_allowed(enum run_state from, enum run_state to)
{
	return from < RUN_STATE_MAX && to < RUN_STATE_MAX && moves[from] & TO(to);
}

bool run_revival_allowed(enum run_state from)
{
	return from == RUN_FAILED || from == RUN_TIMED_OUT || from == RUN_LOST;
}

const char *run_kind_name(enum run_kind k)
{
	return k < RUN_KIND_MAX ? kind_names[k] : "unknown";
}

bool run_kind_parse(const char *name, enum run_kind *ret)
{
	int i = run_name_index(kind_names, RUN_KIND_MAX, name);

	if (i >= 0)
		*ret = (enum run_kind)i;
	return i >= 0;
}

const char *attempt_outcome_name(enum attempt_outcome o)
{
	return o < ATTEMPT_OUTCOME_MAX ? outcome_names[o] : "unknown";
}

bool attempt_outcome_parse(const char *name, enum attempt_outcome *ret)
{
	int i = run_name_index(outcome_names, ATTEMPT_OUTCOME_MAX, name);

	if (i >= 0)
		*ret = (enum attempt_outcome)i;
	return i >= 0;
}

void run_free(struct run *r)
{
	if (!r)
		return;
	free(r->job_name);
	free(r->owner);
	free(r->reason);
	free(r->queue);
	free(r->node);
	free(r->node_name);
	free(r->params);
	strv_done(&r->results);
	attempt_free(r->previous);
	free(r->waiting_code);
	free(r->waiting_message);
	free(r);
}

void attempt_free(struct attempt *a)
{
	if (!a)
		return;
	free(a->node);
	free(a->node_name);
	free(a->spawner);
	free(a->error);
	free(a);
}
