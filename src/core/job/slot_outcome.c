/* SPDX-License-Identifier: Apache-2.0 */
/* The table of slot outcomes. The store keeps its words, so a row is never renamed. */
#include "core/job/slot_outcome.h"
#include "base/text.h"
#include <string.h>

const struct slot_outcome slot_outcomes[] = {
	{RUN_SUCCEEDED, "none", NULL},
	{RUN_FAILED, "exit", ""},
	{RUN_FAILED, "retries", "retries used up"},
	{RUN_FAILED, "not_started", "not_started"},
	{RUN_FAILED, "denied", "no_such_user"},
	{RUN_FAILED, "denied", "other_user"},
	{RUN_FAILED, "denied", "not_allowed"},
	{RUN_FAILED, "denied", "no_warrant"},
	{RUN_FAILED, "denied", "account_denied"},
	{RUN_FAILED, "denied", "denied"},
	{RUN_FAILED, "exit_action", "dead letter by exit code"},
	{RUN_FAILED, "exit_action", "job paused"},
	{RUN_FAILED, "other", NULL},
	{RUN_TIMED_OUT, "timeout", "timeout"},
	{RUN_TIMED_OUT, "run_timeout", "run timeout"},
	{RUN_TIMED_OUT, "retries", "retries used up"},
	{RUN_TIMED_OUT, "other", NULL},
	{RUN_CANCELLED, "cancelled", "cancelled"},
	{RUN_CANCELLED, "replaced", "replaced"},
	{RUN_CANCELLED, "job_cancelled", "job cancelled"},
	{RUN_CANCELLED, "job_removed", "job removed"},
	{RUN_CANCELLED, "other", NULL},
	{RUN_LOST, "lost", NULL},
	{RUN_SKIPPED, "overlap", "overlap"},
	{RUN_SKIPPED, "limit", "limit"},
	{RUN_SKIPPED, "missed", "missed"},
	{RUN_SKIPPED, "condition", "condition"},
	{RUN_SKIPPED, "paused", "paused"},
	{RUN_SKIPPED, "frozen", "frozen"},
	{RUN_SKIPPED, "rate", "rate"},
	{RUN_SKIPPED, "other", NULL},
	{RUN_EXPIRED, "deadline", "deadline"},
	{RUN_EXPIRED, "expires", "expires"},
	{RUN_EXPIRED, "other", NULL},
};
const size_t slot_outcomes_count = ELEMENTS(slot_outcomes);

static bool outcome_matches(const struct slot_outcome *o, const char *reason)
{
	if (!o->matches)
		return true;
	return o->matches[0] ? text_starts(reason, o->matches) : reason[0] == '\0';
}

const char *slot_outcome_class(enum run_state state, const char *reason)
{
	for (size_t i = 0; i < slot_outcomes_count; i++)
		if (slot_outcomes[i].state == state && outcome_matches(&slot_outcomes[i], reason ? reason : ""))
			return slot_outcomes[i].reason;
	return "other";
}

size_t slot_outcome_index(int64_t state, const char *class)
{
	for (size_t i = 0; i < slot_outcomes_count; i++)
		if ((int64_t)slot_outcomes[i].state == state && strcmp(slot_outcomes[i].reason, class) == 0)
			return i;
	return slot_outcomes_count;
}
