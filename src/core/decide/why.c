/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a job is waiting or will never run again. */
#include "core/decide/why.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/pause.h"
#include "core/decide/why_private.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define UNPLANNED (5 * USEC_SEC) /* a slot that is not planned this long after its time is reported */

static const char *const names[WHY_CODE_MAX] = {
	[WHY_NONE] = "none",
	[WHY_RUNNING] = "running",
	[WHY_SCHEDULED] = "scheduled",
	[WHY_NOT_DUE] = "not_due",
	[WHY_STARTING] = "starting",
	[WHY_RETRY] = "retry",
	[WHY_GATE] = "gate",
	[WHY_PAUSED] = "paused",
	[WHY_FROZEN] = "frozen",
	[WHY_OVERLAP] = "overlap",
	[WHY_MAX_RUNNING] = "max_running",
	[WHY_QUEUE_FULL] = "queue_full",
	[WHY_OWNER_FULL] = "owner_full",
	[WHY_RATE] = "rate",
	[WHY_CONDITION] = "condition",
	[WHY_CRON] = "cron",
	[WHY_NO_ROOM] = "no_room",
	[WHY_NO_SPAWNER] = "no_spawner",
	[WHY_ARTIFACT] = "artifact",
	[WHY_NET] = "net",
	[WHY_STORE] = "store",
	[WHY_DRAINING] = "draining",
	[WHY_NO_NODE] = "no_node",
	[WHY_DRAINED] = "drained",
	[WHY_CLOCK] = "clock",
	[WHY_MANUAL] = "manual",
	[WHY_AFTER] = "after",
	[WHY_BOOT] = "boot",
	[WHY_FOLLOWS] = "follows",
	[WHY_UNPLANNED] = "unplanned",
	[WHY_FINISHED] = "finished",
	[WHY_CANCELLED] = "cancelled",
	[WHY_REMOVED] = "removed",
	[WHY_SUSPENDED] = "suspended",
	[WHY_SUCCEEDED] = "succeeded",
	[WHY_FAILED] = "failed",
	[WHY_DEAD] = "dead",
	[WHY_TIMED_OUT] = "timed_out",
	[WHY_LOST] = "lost",
	[WHY_REPLACED] = "replaced",
	[WHY_MISSED] = "missed",
	[WHY_DEADLINE] = "deadline",
	[WHY_EXPIRED] = "expired",
	[WHY_LIMIT] = "limit",
	[WHY_DENIED] = "denied",
	[WHY_NO_SLOT] = "no_slot",
	[WHY_BEFORE] = "before",
	[WHY_TO_COME] = "to_come",
	[WHY_NO_RECORD] = "no_record",
};

const char *why_code_name(enum why_code c)
{
	return (size_t)c < WHY_CODE_MAX ? names[c] : "unknown";
}

bool why_is_wait(enum why_code c)
{
	return c >= WHY_STARTING && c <= WHY_CLOCK;
}

void why_say(struct why_reason *r, enum why_code code, const char *fmt, ...)
{
	va_list ap;

	r->code = code;
	r->command[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
}

void why_type(struct why_reason *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->command, sizeof(r->command), fmt, ap);
	va_end(ap);
}

/* ---- what a due run waits for ---- */

static bool say_pause(const struct why_facts *f, struct why_reason *ret)
{
	AUTO_DONE(buf) words = {};
	AUTO_DONE(buf) remedy = {};

	if (!f->pause)
		return false;
	pause_words(f->pause, &words);
	if (f->bound && (f->pause->scope == PAUSE_FREEZE || pause_is_imposed(f->pause, f->owner_number)))
		buf_str(&words, "; only an administrator can end that");
	else
		pause_remedy(f->pause, f->ref, &remedy);
	why_say(ret, f->pause->scope == PAUSE_FREEZE ? WHY_FROZEN : WHY_PAUSED, "%s", words.data);
	why_type(ret, "%s", remedy.data ? remedy.data : "");
	return true;
}

/* A pause that ends before the run is due does not stop it. */
static bool say_pause_at(const struct why_facts *f, usec_t due, struct why_reason *ret)
{
	return f->pause && (!f->pause->until || f->pause->until > due) && say_pause(f, ret);
}

/* A run whose pause is over stays on hold for a moment, until it is released. */
static bool say_held(const struct why_facts *f, struct why_reason *ret)
{
	if (f->run->hold != HOLD_PAUSED && f->run->hold != HOLD_FROZEN)
		return false;
	if (say_pause(f, ret))
		return true;
	why_say(ret, f->run->hold == HOLD_FROZEN ? WHY_FROZEN : WHY_PAUSED, "it is still on hold after a pause that has ended");
	why_type(ret, "jobctl resume %s", f->ref);
	return true;
}

static bool say_permit(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	if (f->run->hold != HOLD_PERMIT)
		return false;
	if (f->permits > 1) {
		why_say(ret, WHY_MAX_RUNNING, "the maximum number of its runs is running: %" PRId64 " of %" PRId64, f->taken,
			f->permits);
		why_type(ret, "jobctl runs %s --state running", f->ref);
	} else if (f->holder && f->holder->state == RUN_QUEUED) {
		why_say(ret, WHY_OVERLAP, "it waits for the end of run %" PRId64 ", which waits for another attempt at %s",
			f->holder->id, rfc3339_format(f->holder->due_at, at));
		why_type(ret, "jobctl cancel %s#%" PRId64, f->ref, f->holder->id);
	} else if (f->holder && f->holder->started_at) {
		why_say(ret, WHY_OVERLAP, "it waits for the end of run %" PRId64 ", which has been running since %s", f->holder->id,
			rfc3339_format(f->holder->started_at, at));
		why_type(ret, "jobctl cancel %s#%" PRId64, f->ref, f->holder->id);
	} else {
		why_say(ret, WHY_OVERLAP, "it waits for the end of the previous run");
		why_type(ret, "jobctl runs %s", f->ref);
	}
	return true;
}

static void say_condition(const struct why_facts *f, struct why_reason *ret)
{
	why_say(ret, WHY_CONDITION, "it waits for a condition: %s", f->unmet ? f->unmet : "it did not hold at the last check");
	why_type(ret, "jobctl set %s when=", f->ref); /* a forced run waits for the condition, too */
}

static void say_rate(const char *whose, const char *name, usec_t at, const char *command, struct why_reason *ret)
{
	char when[RFC3339_MAX];

	why_say(ret, WHY_RATE, "it waits for the rate of %s%s%s%s; the next run may start at %s", whose, name ? " '" : "",
		name ? name : "", name ? "'" : "", rfc3339_format(at, when));
	why_type(ret, "%s", command);
}

static void say_job_rate(const struct why_facts *f, usec_t at, struct why_reason *ret)
{
	say_rate("the job", NULL, at, "", ret);
	why_type(ret, "jobctl show %s", f->ref);
}

/* Nothing starts on this node, and the spawner is the cause. */
static bool say_spawner(const struct why_facts *f, struct why_reason *ret)
{
	if (!f->node.spawner[0] || f->nodes.elsewhere)
		return false;
	why_say(ret, WHY_NO_SPAWNER, "nothing can be started: %s%s", f->node.spawner,
		f->bound ? "; ask an administrator" : "");
	if (f->bound)
		return true;
	if (f->node.spawner_stopped)
		why_type(ret, "kill -CONT %" PRId64, f->node.spawner_stopped);
	else
		why_type(ret, f->node.user_mode ? "jobctl status" : "systemctl status jobsched-spawner");
	return true;
}

/* The run is due later: its first attempt, a retry, or the next check of its condition or rate. */
static bool say_not_due(const struct why_facts *f, struct why_reason *ret)
{
	const struct run *r = f->run;
	char at[RFC3339_MAX];

	if (r->due_at <= f->now)
		return false;
	if (say_pause_at(f, r->due_at, ret) || say_spawner(f, ret))
		return true;
	rfc3339_format(r->due_at, at);
	if (text_equal(r->reason, "condition")) {
		say_condition(f, ret);
	} else if (text_equal(r->reason, "rate")) {
		say_job_rate(f, r->due_at, ret);
	} else if (text_equal(r->reason, "gate")) {
		why_say(ret, WHY_GATE, "its gate delays it; the gate is run again at %s", at);
		why_type(ret, "jobctl log %s#%" PRId64, f->ref, r->id);
	} else if (r->attempt > 0) {
		why_say(ret, WHY_RETRY, "%" PRId64 " attempt%s failed%s%.200s%s; the next one is due at %s", r->attempt,
			r->attempt == 1 ? "" : "s", f->error ? " (" : "", f->error ? f->error : "", f->error ? ")" : "", at);
		why_type(ret, "jobctl log %s#%" PRId64, f->ref, r->id);
	} else {
		why_say(ret, WHY_NOT_DUE, "its run %" PRId64 " is due at %s", r->id, at);
	}
	return true;
}

static bool say_share(const struct why_share *s, enum why_code code, const char *whose, const char *command, usec_t now,
	struct why_reason *ret)
{
	if (s->running > 0 && s->active >= s->running) {
		why_say(ret, code, "%s '%s' is full: %" PRId64 " of %" PRId64 " are running", whose, s->name, s->active, s->running);
		why_type(ret, "%s", command);
		return true;
	}
	if (s->rate_at > now) {
		say_rate(whose, s->name, s->rate_at, command, ret);
		return true;
	}
	return false;
}

/* Only administrators can undrain a node. */
static void type_undrain(const struct why_facts *f, struct why_reason *ret)
{
	if (f->bound || !f->nodes.drained)
		why_type(ret, "jobctl nodes");
	else
		why_type(ret, "jobctl node undrain %s", f->nodes.drained);
}

/* No node of the cluster can take the run. */
static bool say_nodes(const struct why_facts *f, struct why_reason *ret)
{
	const struct why_nodes *n = &f->nodes;

	if (n->alive == 0 || n->fit_awake > 0)
		return false;
	if (n->fit > 0) {
		why_say(ret, WHY_DRAINED, "every node%s%s is drained and starts no new runs", n->wanted ? " with " : "",
			n->wanted ? n->wanted : "");
		type_undrain(f, ret);
	} else {
		why_say(ret, WHY_NO_NODE, "no available node has %s; %s%s", n->wanted, n->offered ? "there are " : "no node has any label",
			n->offered ? n->offered : "");
		why_type(ret, "jobctl nodes");
	}
	return true;
}

static bool say_node(const struct why_facts *f, struct why_reason *ret)
{
	if (f->nodes.elsewhere) {
		return false;
	} else if (f->node.stopping) {
		why_say(ret, WHY_DRAINING, "this node is shutting down and starts no new runs");
		why_type(ret, "jobctl status");
	} else if (say_spawner(f, ret)) {
		return true;
	} else if (f->node.refused[0]) {
		why_say(ret, WHY_STORE, "nothing can be started: %s", f->node.refused);
		why_type(ret, "jobctl status");
	} else {
		return false;
	}
	return true;
}

/* A run is postponed by a few seconds whenever its artifact cannot be fetched. */
static bool say_artifact(const struct why_facts *f, struct why_reason *ret)
{
	if (!f->artifact || !f->node.artifacts[0] || f->nodes.elsewhere || f->run->attempt > 0 || f->run->slot > f->now)
		return false;
	why_say(ret, WHY_ARTIFACT, "it waits for its artifact: %s", f->node.artifacts);
	why_type(ret, "jobctl status");
	return true;
}

/* The same for a request that cannot be sent. */
static bool say_net(const struct why_facts *f, struct why_reason *ret)
{
	if (!f->call || !f->node.calls[0] || f->nodes.elsewhere || f->run->slot > f->now)
		return false;
	why_say(ret, WHY_NET, "its request cannot be sent: %s", f->node.calls);
	why_type(ret, "jobctl status");
	return true;
}

static bool say_room(const struct why_facts *f, struct why_reason *ret)
{
	if (f->node.room > 0 || f->nodes.elsewhere)
		return false;
	why_say(ret, WHY_NO_ROOM, "this node is full: %" PRId64 " run%s", f->node.active,
		f->node.active == 1 ? " is running" : "s are running");
	why_type(ret, "jobctl status");
	return true;
}

static bool say_overlap_to_come(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	if (f->permits == 0 || f->taken < f->permits || f->run->attempt > 0 || f->run->forced || !f->holder)
		return false;
	why_say(ret, WHY_OVERLAP, "run %" PRId64 " of the job has been running since %s", f->holder->id,
		rfc3339_format(f->holder->started_at, at));
	why_type(ret, "jobctl runs %s", f->ref);
	return true;
}

static void say_due(const struct why_facts *f, struct why_reason *ret)
{
	if (say_pause(f, ret) || say_nodes(f, ret) || say_node(f, ret) ||
	    say_share(&f->queue, WHY_QUEUE_FULL, "queue", "jobctl queue list", f->now, ret) ||
	    say_share(&f->owner, WHY_OWNER_FULL, "owner", "jobctl limit list", f->now, ret) ||
	    say_overlap_to_come(f, ret) || say_room(f, ret))
		return;
	if (f->unmet) {
		say_condition(f, ret);
	} else if (f->rate_at > f->now) {
		say_job_rate(f, f->rate_at, ret);
	} else {
		why_say(ret, WHY_STARTING, "it is due, and starts when its turn comes");
		why_type(ret, "jobctl queue list");
	}
}

/* A run that a user requested since the daemon started does not wait for the clock. */
static bool starts_with_unsure_clock(const struct why_facts *f)
{
	return f->run && f->run->created_at >= f->node.made_since && !f->rated;
}

static bool say_clock(const struct why_facts *f, struct why_reason *ret)
{
	if (f->node.clock == CLOCK_GOOD || (f->node.clock == CLOCK_UNSURE && starts_with_unsure_clock(f)))
		return false;
	if (f->node.clock == CLOCK_WRONG)
		why_say(ret, WHY_CLOCK, "no slot starts because the clock is not reliable: it shows a time before 2025");
	else
		why_say(ret, WHY_CLOCK, "it waits for the clock, at most %" PRId64 " s: the clock was not synchronised since the boot",
			f->node.clock_left / USEC_SEC + 1);
	why_type(ret, "timedatectl");
	return true;
}

static void say_queued(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];
	size_t len;

	if (!say_clock(f, ret) && !say_held(f, ret) && !say_permit(f, ret) && !say_artifact(f, ret) && !say_net(f, ret) && !say_not_due(f, ret))
		say_due(f, ret);
	len = strlen(ret->message);
	if (f->last_start && f->run->due_at <= f->now)
		snprintf(ret->message + len, sizeof(ret->message) - len, "; it will not start after %s",
			rfc3339_format(f->last_start, at));
}

static void say_started(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	if (!f->run->started_at && say_spawner(f, ret))
		return;
	if (f->run->started_at)
		why_say(ret, WHY_RUNNING, "run %" PRId64 " has been running since %s", f->run->id, rfc3339_format(f->run->started_at, at));
	else
		why_say(ret, WHY_RUNNING, "run %" PRId64 " is being started", f->run->id);
	why_type(ret, "jobctl log -f %s#%" PRId64, f->ref, f->run->id);
	if (f->pause) {
		AUTO_DONE(buf) words = {};
		size_t len = strlen(ret->message);

		pause_words(f->pause, &words);
		snprintf(ret->message + len, sizeof(ret->message) - len, "; other runs do not start: %s", words.data);
	}
}

/* ---- a job without an open run ---- */

static void say_ended(const struct why_facts *f, enum why_code code, const char *word, struct why_reason *ret)
{
	const struct event *ev = f->ended;
	char at[RFC3339_MAX];

	if (ev)
		why_say(ret, code, "it was %s by %s at %s", word, ev->who ? ev->who : "the daemon",
			rfc3339_format(ev->at, at));
	else
		why_say(ret, code, "it was %s", word);
	if (code == WHY_CANCELLED && f->bound && f->pause && f->pause->scope == PAUSE_JOB && pause_is_imposed(f->pause, f->owner_number)) {
		AUTO_DONE(buf) words = {};
		size_t len = strlen(ret->message);

		pause_words(f->pause, &words);
		snprintf(ret->message + len, sizeof(ret->message) - len, "; before that it was %s; only an administrator can end that",
			words.data);
	} else if (code == WHY_CANCELLED)
		why_type(ret, "jobctl resume %s", f->ref);
	else
		why_type(ret, "jobctl events %s", f->ref);
}

static bool say_state(const struct why_facts *f, struct why_reason *ret)
{
	switch (f->state) {
	case JOB_FINISHED:
		why_say(ret, WHY_FINISHED, "its schedule has ended: it has no further slots");
		why_type(ret, "jobctl run %s", f->ref);
		return true;
	case JOB_CANCELLED:
		say_ended(f, WHY_CANCELLED, "cancelled", ret);
		return true;
	case JOB_REMOVED:
		say_ended(f, WHY_REMOVED, "removed", ret);
		return true;
	case JOB_SUSPENDED:
		if (why_denied(WHY_SUSPENDED, f->state_reason, f->owner.name, f->ref, ret))
			return true;
		if (f->state_reason && strcmp(f->state_reason, "gone") == 0) { /* --on-410 suspend */
			why_say(ret, WHY_SUSPENDED, "it is suspended: gone (the server answered 410 to its call)");
			why_type(ret, "jobctl resume %s", f->ref);
			return true;
		}
		why_say(ret, WHY_SUSPENDED, "it is suspended: %s", f->state_reason ? f->state_reason : "the reason is unknown");
		why_type(ret, "jobctl edit %s", f->ref);
		return true;
	case JOB_PAUSED:
		if (say_pause(f, ret))
			return true;
		why_say(ret, WHY_PAUSED, "it is paused%s%s", f->state_reason ? ": " : "", f->state_reason ? f->state_reason : "");
		why_type(ret, "jobctl resume %s", f->ref);
		return true;
	default:
		return false;
	}
}

/*
 * Slots are planned before their time, so a past slot that is not planned is a problem of its node.
 */
static void say_unplanned(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	why_say(ret, WHY_UNPLANNED, "its slot at %s has passed without being planned: %s", rfc3339_format(f->next_slot, at),
		f->node.refused[0] ? f->node.refused : f->nodes.leader ? "the node that is responsible for it does not plan it" : "no node leads, so it is not assigned to another node");
	why_type(ret, "jobctl nodes");
}

static void say_next(const struct why_facts *f, struct why_reason *ret)
{
	char at[RFC3339_MAX];

	if (f->next_slot && f->nodes.alive > 0 && f->next_slot < f->now - UNPLANNED) {
		say_unplanned(f, ret);
	} else if (f->next_slot && f->nodes.fit > 0 && f->nodes.fit_awake == 0) {
		why_say(ret, WHY_DRAINED, "nothing is due; its next slot is %s, and every node that could take it is drained",
			rfc3339_format(f->next_slot, at));
		type_undrain(f, ret);
	} else if (f->next_slot) {
		why_say(ret, WHY_SCHEDULED, "nothing is due; its next slot is %s", rfc3339_format(f->next_slot, at));
		why_type(ret, "jobctl next %s", f->ref);
	} else if (f->follows) {
		why_say(ret, WHY_FOLLOWS, "its next slot counts from the end of its run and is being computed");
		why_type(ret, "jobctl runs %s", f->ref);
	} else if (f->boots) {
		why_say(ret, WHY_BOOT, "it waits for the next boot of the machine");
		why_type(ret, "jobctl run %s", f->ref);
	} else if (f->after) {
		why_say(ret, WHY_AFTER, "it runs %s", f->after);
		why_type(ret, "jobctl show --graph %s", f->ref);
	} else if (f->manual) {
		why_say(ret, WHY_MANUAL, "it runs only when it is triggered");
		why_type(ret, "jobctl run %s", f->ref);
	} else {
		why_say(ret, WHY_SCHEDULED, "its next slot is being computed");
		why_type(ret, "jobctl next %s", f->ref);
	}
}

void why_held(const struct why_facts *f, struct why_reason *ret)
{
	*ret = (struct why_reason){};
	if (!say_pause(f, ret))
		say_spawner(f, ret);
}

void why_now(const struct why_facts *f, struct why_reason *ret)
{
	*ret = (struct why_reason){};
	if (f->run && f->run->state == RUN_QUEUED)
		say_queued(f, ret);
	else if (f->run)
		say_started(f, ret);
	else if (!say_state(f, ret) && !say_pause(f, ret) && !say_clock(f, ret) && !say_spawner(f, ret))
		say_next(f, ret);
}
