/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the outcome of a past slot or a given time. */
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/decide/why_private.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A run is found by its number, so the job name can be used even if the job has ended. */
static const char *run_ref(const struct run *r, const char *ref)
{
	return r->job_name ? r->job_name : ref;
}

/* Replaces %s in a command of a table by the job. */
static void type_with(struct why_reason *ret, const char *command, const char *ref)
{
	const char *gap = strstr(command, "%s");

	why_type(ret, "%.*s%s%s", (int)(gap - command), command, ref, gap + 2);
}

/* ---- runs that did not start ---- */

static const struct {
	const char *reason;
	enum why_code code;
	const char *words;
	const char *command; /* %s is the job */
} skips[] = {
	{"overlap", WHY_OVERLAP, "it was skipped: an earlier run of the job was still running", "jobctl set %s overlap=queue"},
	{"limit", WHY_LIMIT, "it was skipped: the maximum number of runs of the job was already waiting", "jobctl show %s"},
	{"paused", WHY_PAUSED, "it was skipped: the job was paused then", "jobctl events %s --what job,pause,resume"},
	{"frozen", WHY_FROZEN, "it was skipped: everything was frozen then", "jobctl events --what freeze,thaw"},
	{"condition", WHY_CONDITION, "it was skipped: its condition did not hold before the next slot came", "jobctl show %s"},
	{"gate", WHY_GATE, "it was skipped: its gate exited with 77", "jobctl log %s"},
	{"held", WHY_CRON, "it was skipped: another cron daemon runs the crontabs of this machine", "jobctl cron status"},
	{"shadow", WHY_CRON, "it was skipped: crontabs are in shadow mode, in which they are planned and not run", "jobctl cron status"},
	{"missed", WHY_MISSED, "the scheduler was down, and the catch-up policy did not run it later", "jobctl show %s"},
};

static void say_missed(const struct run *r, const char *ref, struct why_reason *ret)
{
	char from[RFC3339_MAX], to[RFC3339_MAX];

	if (r->slot_count <= 1)
		return;
	why_say(ret, WHY_MISSED, "%" PRId64 " slots from %s to %s: the scheduler was down, and the catch-up policy did not run them later",
		r->slot_count, rfc3339_format(r->slot, from), rfc3339_format(r->slot_last, to));
	why_type(ret, "jobctl show %s", ref);
}

static void say_skipped(const struct run *r, const char *ref, struct why_reason *ret)
{
	for (size_t i = 0; i < ELEMENTS(skips); i++)
		if (text_equal(r->reason, skips[i].reason)) {
			why_say(ret, skips[i].code, "%s", skips[i].words);
			if (strstr(skips[i].command, "%s"))
				type_with(ret, skips[i].command, ref);
			else
				why_type(ret, "%s", skips[i].command);
			say_missed(r, ref, ret);
			return;
		}
	why_say(ret, WHY_NONE, "it was skipped: %s", r->reason ? r->reason : "the reason is unknown");
	why_type(ret, "jobctl show %s", ref);
}

/* "deadline (overlap)": the cause of the delay is in parentheses. */
static void say_expired(const struct run *r, const char *ref, struct why_reason *ret)
{
	bool deadline = r->reason && text_starts(r->reason, "deadline");
	const char *cause = r->reason ? strchr(r->reason, '(') : NULL;

	why_say(ret, deadline ? WHY_DEADLINE : WHY_EXPIRED, "it was too late%s%s: %s", cause ? " " : "", cause ? cause : "",
		deadline ? "its deadline had passed before it could start" : "it had expired before it could start");
	why_type(ret, "jobctl show %s", ref);
}

static void say_run_cancelled(const struct run *r, const char *ref, struct why_reason *ret)
{
	if (text_equal(r->reason, "replaced"))
		why_say(ret, WHY_REPLACED, "a newer run of the job replaced it");
	else
		why_say(ret, WHY_CANCELLED, "it was cancelled%s%s", r->reason && strcmp(r->reason, "cancelled") != 0 ? ": " : "",
			r->reason && strcmp(r->reason, "cancelled") != 0 ? r->reason : "");
	why_type(ret, "jobctl events %s#%" PRId64, run_ref(r, ref), r->id);
}

/* ---- runs that were refused ---- */

/* The words of start_failure_name(); %s is the owner, and in the command the job. */
static const struct {
	const char *reason, *words, *command;
} denials[] = {
	{"no_such_user", "its owner '%s' no longer exists on this machine", "jobctl resume %s"},
	{"other_user", "the owner name '%s' and its uid no longer belong to the same user", "jobctl resume %s"},
	{"not_allowed", "the spawner's configuration (spawner.conf) does not allow jobs of '%s'", "jobctl show %s"},
	{"no_warrant", "its command as '%s' is not approved, or the node has another warrant.key", "jobctl approve %s"},
	{"account_denied", "the account of '%s' is locked, expired or not permitted here", "jobctl show %s"},
};

bool why_denied(enum why_code code, const char *reason, const char *owner, const char *ref, struct why_reason *ret)
{
	for (size_t i = 0; reason && i < ELEMENTS(denials); i++)
		if (strcmp(reason, denials[i].reason) == 0) {
			const char *gap = strstr(denials[i].words, "%s");

			why_say(ret, code, "%s%.*s%s%s", code == WHY_SUSPENDED ? "it is suspended: " : "it was not started: ",
				(int)(gap - denials[i].words), denials[i].words, owner ? owner : "?", gap + 2);
			type_with(ret, denials[i].command, ref);
			return true;
		}
	return false;
}

/* ---- runs that were started ---- */

/*
 * The codes that shells use: 126 for a program that cannot be executed, 127 for one that was not
 * found.
 */
static const char *exit_words(int64_t code)
{
	return code == 127 ? " (its shell did not find a program; the output names it)"
	     : code == 126 ? " (its shell could not execute a program; the output names it)" : "";
}

static const char *failed_words(const struct run *r, bool call, bool started)
{
	if (r->state == RUN_LOST)
		return "its result is unknown: its node or spawner disappeared";
	if (r->state == RUN_TIMED_OUT)
		return "it exceeded its time limit and was ended";
	if (call)
		return r->reason && strcmp(r->reason, "not_started") == 0 ? "its call was not sent" : "its call failed";
	return started ? "its command failed" : "its command could not be started";
}

/* Whether the message contains the reason already. */
static bool reason_is_said(const char *reason, bool call, const char *how)
{
	return !reason || strcmp(reason, "not_started") == 0 ||
		(call && how[0] && (strcmp(reason, "the call failed") == 0 || strcmp(reason, "timeout") == 0));
}

static void say_failed(const struct run *r, const char *error, bool call, const char *ref, struct why_reason *ret)
{
	enum why_code code = r->dead_at ? WHY_DEAD : r->state == RUN_TIMED_OUT ? WHY_TIMED_OUT
						   : r->state == RUN_LOST ? WHY_LOST : WHY_FAILED;
	bool started = r->state != RUN_FAILED || r->term_signal || r->exit_code >= 0;
	bool error_is_shown = r->state == RUN_FAILED || (call && r->state == RUN_TIMED_OUT);
	char how[400] = "", tries[64] = "";

	if (why_denied(WHY_DENIED, r->reason, r->owner, ref, ret))
		return;
	if (r->term_signal)
		snprintf(how, sizeof(how), "ended by signal %" PRId64, r->term_signal);
	else if (r->exit_code > 0)
		snprintf(how, sizeof(how), "exit code %" PRId64 "%s", r->exit_code, exit_words(r->exit_code));
	if (!started && error)
		snprintf(how, sizeof(how), "%s", error);
	else if (error_is_shown && error) /* a message of the spawner besides the exit code */
		snprintf(how + strlen(how), sizeof(how) - strlen(how), "%s%.260s", how[0] ? "; " : "", error);
	if (!reason_is_said(r->reason, call, how))
		snprintf(how + strlen(how), sizeof(how) - strlen(how), "%s%s", how[0] ? ", " : "", r->reason);
	if (r->attempt > 1)
		snprintf(tries, sizeof(tries), " after %" PRId64 " attempts", r->attempt);
	why_say(ret, code, "%s%s%s%s%s", failed_words(r, call, started), tries, how[0] ? ": " : "", how, r->dead_at ? "; it is a dead letter" : "");
	if (r->dead_at)
		why_type(ret, "jobctl dead show %s#%" PRId64, run_ref(r, ref), r->id);
	else
		why_type(ret, "jobctl log %s#%" PRId64, run_ref(r, ref), r->id);
}

static void say_open(const struct run *r, const char *ref, usec_t now, struct why_reason *ret)
{
	struct why_facts f = {.now = now, .ref = ref, .run = r, .node = {.room = 1}};

	why_now(&f, ret);
}

void why_run(const struct run *r, const char *error, bool call, const char *ref, usec_t now, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	*ret = (struct why_reason){};
	switch (r->state) {
	case RUN_SUCCEEDED:
		why_say(ret, WHY_SUCCEEDED, "it succeeded, and ended at %s", rfc3339_format(r->ended_at, at));
		why_type(ret, "jobctl log %s#%" PRId64, run_ref(r, ref), r->id);
		break;
	case RUN_FAILED:
	case RUN_TIMED_OUT:
	case RUN_LOST:
		say_failed(r, error, call, ref, ret);
		break;
	case RUN_CANCELLED:
		say_run_cancelled(r, ref, ret);
		break;
	case RUN_SKIPPED:
		say_skipped(r, ref, ret);
		break;
	case RUN_EXPIRED:
		say_expired(r, ref, ret);
		break;
	default:
		say_open(r, ref, now, ret);
	}
}

/* ---- times without a run ---- */

static void say_around(const struct why_moment *m, struct why_reason *ret)
{
	char before[RFC3339_MAX], after[RFC3339_MAX];
	size_t len = strlen(ret->message);

	if (m->previous && m->next)
		snprintf(ret->message + len, sizeof(ret->message) - len, "; its slots around it are %s and %s",
			rfc3339_format(m->previous, before), rfc3339_format(m->next, after));
	else if (m->previous || m->next)
		snprintf(ret->message + len, sizeof(ret->message) - len, "; the slot %s it is %s", m->next ? "after" : "before",
			rfc3339_format(m->next ? m->next : m->previous, after));
}

void why_at(const struct why_moment *m, struct why_reason *ret)
{
	char at[RFC3339_MAX], since[RFC3339_MAX];

	*ret = (struct why_reason){};
	rfc3339_format(m->at, at);
	if (m->at < m->created_at) {
		why_say(ret, WHY_BEFORE, "the job did not exist at %s: it was added at %s", at,
			rfc3339_format(m->created_at, since));
	} else if (m->is_slot && m->at > m->now) {
		why_say(ret, WHY_TO_COME, "%s is a slot in the future", at);
	} else if (m->paused) {
		why_say(ret, WHY_PAUSED, "the job was paused at %s, by %s since %s", at,
			m->paused->who ? m->paused->who : "the daemon", rfc3339_format(m->paused->at, since));
		why_type(ret, "jobctl events %s", m->ref);
		return;
	} else if (m->is_slot) {
		why_say(ret, WHY_NO_RECORD, "%s is a slot of the current schedule, but there is no record of it: the schedule "
			"was different then, or its history was deleted", at);
		why_type(ret, "jobctl history %s", m->ref);
		return;
	} else {
		why_say(ret, WHY_NO_SLOT, "%s is not a slot of the job", at);
		say_around(m, ret);
	}
	why_type(ret, "jobctl next %s", m->ref);
}
