/* SPDX-License-Identifier: Apache-2.0 */
/* Applies exit rules, retry policy and time limits to an ended attempt. */
#include "core/decide/judge.h"
#include "core/job/gate.h"
#include "core/job/policy.h"
#include <inttypes.h>
#include <stdio.h>

#define SET_REASON(v, ...) snprintf((v)->reason, sizeof((v)->reason), __VA_ARGS__)

/* When the run timeout ends; USEC_NEVER: no limit, or the run has not started. */
static usec_t run_end(const struct retry_policy *p, usec_t first_start)
{
	if (!p->run_timeout || !first_start)
		return USEC_NEVER;
	return first_start + p->run_timeout;
}

bool judge_time_left(const struct retry_policy *p, usec_t first_start, usec_t timeout, usec_t now, usec_t *ret)
{
	usec_t end = run_end(p, first_start), left = p->run_timeout;

	if (end != USEC_NEVER) {
		if (end <= now)
			return false;
		if (end - now < left)
			left = end - now; /* at most the whole timeout, also after the clock was set back */
	}
	*ret = !left || (timeout && timeout < left) ? timeout : left;
	return true;
}

static enum exit_action action_of(const struct retry_policy *p, const struct judge_case *c)
{
	if (c->exit_code < 0 || c->exit_code > 255)
		return EXIT_RETRY;
	if (p->on_exit.action[c->exit_code] >= 0)
		return (enum exit_action)p->on_exit.action[c->exit_code];
	return c->exit_code == 0 ? EXIT_OK : EXIT_RETRY;
}

static void set_retry_reason(const struct retry_policy *p, const struct judge_case *c, struct judge_verdict *v)
{
	char after[32];

	if (c->outcome == ATTEMPT_STALLED)
		snprintf(after, sizeof(after), "stall");
	else if (c->outcome == ATTEMPT_TIMED_OUT)
		snprintf(after, sizeof(after), "timeout");
	else if (c->outcome == ATTEMPT_GATED)
		snprintf(after, sizeof(after), "failed gate");
	else if (c->term_signal > 0)
		snprintf(after, sizeof(after), "signal %d", (int)c->term_signal);
	else if (c->status > 0)
		snprintf(after, sizeof(after), "status %d", (int)c->status);
	else if (c->outcome == ATTEMPT_FAILED && c->exit_code < 0)
		snprintf(after, sizeof(after), "failed call");
	else if (c->exit_code >= 0)
		snprintf(after, sizeof(after), "exit code %d", (int)c->exit_code);
	else
		snprintf(after, sizeof(after), "failed start");
	SET_REASON(v, "retry %" PRId64 " of %" PRId64 " after %s", c->failures + 1, p->retries, after);
}

/* Queues the run again, unless it was cancelled or the run timeout ends before the next attempt. */
static void requeue_attempt(const struct retry_policy *p, const struct judge_case *c, usec_t due_at, struct judge_verdict *v)
{
	if (c->cancel_asked) {
		v->state = RUN_CANCELLED;
		SET_REASON(v, "cancelled");
	} else if (due_at >= run_end(p, c->first_start)) {
		v->state = RUN_TIMED_OUT;
		v->dead = p->retries > 0;
		SET_REASON(v, "run timeout");
	} else {
		v->state = RUN_QUEUED;
		v->due_at = due_at;
	}
}

/* The delay of the backoff, or the longer one that the server asked for. */
static usec_t retry_delay(const struct retry_policy *p, const struct judge_case *c)
{
	usec_t delay = policy_backoff_delay(&p->backoff, c->failures + 1, c->random);
	usec_t wanted = c->retry_after < RETRY_AFTER_MAX ? c->retry_after : RETRY_AFTER_MAX;

	return delay > wanted ? delay : wanted;
}

/* A failed attempt. 'state' is the state of the run if no retry is left. */
static void judge_failure(const struct retry_policy *p, const struct judge_case *c, enum run_state state,
	struct judge_verdict *v)
{
	v->failure = true;
	if (c->outcome == ATTEMPT_TIMED_OUT && c->now >= run_end(p, c->first_start)) {
		v->state = state;
		v->dead = p->retries > 0;
		SET_REASON(v, "run timeout");
		return;
	}
	if (c->failures < p->retries) {
		set_retry_reason(p, c, v);
		requeue_attempt(p, c, c->now + retry_delay(p, c), v);
		return;
	}
	v->state = state;
	v->dead = p->retries > 0;
	if (v->dead)
		SET_REASON(v, "retries used up");
	else if (c->outcome == ATTEMPT_TIMED_OUT)
		SET_REASON(v, "timeout");
	else if (c->outcome == ATTEMPT_STALLED)
		SET_REASON(v, "stalled");
	else if (c->outcome == ATTEMPT_NOT_STARTED)
		SET_REASON(v, "not_started");
	else if (c->outcome == ATTEMPT_FAILED && c->status > 0)
		SET_REASON(v, "status %d", (int)c->status);
	else if (c->outcome == ATTEMPT_FAILED && c->exit_code < 0 && !c->term_signal) /* a command has one of them */
		SET_REASON(v, "the call failed");
}

/* The command exited, or was ended by a signal that the spawner did not send. */
static void judge_exit(const struct retry_policy *p, const struct judge_case *c, struct judge_verdict *v)
{
	enum exit_action action = action_of(p, c);

	v->outcome = action == EXIT_OK ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED;
	if (action == EXIT_OK) {
		v->state = RUN_SUCCEEDED;
		return;
	}
	if (c->final && action == EXIT_RETRY) {
		v->state = RUN_FAILED;
		v->failure = true;
		v->dead = p->retries > 0;
		if (c->status > 0)
			SET_REASON(v, "status %d is final", (int)c->status);
		else
			SET_REASON(v, "the failure is final");
		return;
	}
	if (action == EXIT_RETRY) {
		judge_failure(p, c, RUN_FAILED, v);
		return;
	}
	v->state = RUN_FAILED;
	v->failure = true;
	v->dead = action == EXIT_DEAD;
	v->pause = action == EXIT_PAUSE;
	if (v->dead)
		SET_REASON(v, "dead letter by exit code");
	else if (v->pause)
		SET_REASON(v, "job paused");
}

static void judge_lost(const struct retry_policy *p, const struct judge_case *c, struct judge_verdict *v)
{
	v->lost = !c->stopped;
	if (c->stopped) {
		SET_REASON(v, "rerun after shutdown");
		requeue_attempt(p, c, c->now, v);
	} else if (c->cancel_asked || (p->rerun_lost && c->lost < RUN_LOST_MAX)) {
		SET_REASON(v, "rerun %" PRId64 " of %d after loss", c->lost + 1, RUN_LOST_MAX);
		requeue_attempt(p, c, c->now, v);
	} else {
		v->state = RUN_LOST;
		v->dead = p->retries > 0;
		SET_REASON(v, "lost");
	}
}

/* The time until the gate is asked again: it doubles with each look that did not fail. */
static usec_t gate_delay(const struct judge_case *c)
{
	int64_t looks = c->number - c->failures - c->lost - 1;
	usec_t delay = GATE_LOOK_MIN << (looks < 0 ? 0 : looks > 7 ? 7 : looks);

	return delay < GATE_LOOK_MAX ? delay : GATE_LOOK_MAX;
}

/* A run that is delayed beyond its deadline expires. The last look is at the deadline. */
static void judge_delay(const struct retry_policy *p, const struct judge_case *c, struct judge_verdict *v)
{
	bool first = c->failures + c->lost == 0;
	usec_t due = c->now + gate_delay(c), last = first && c->deadline ? c->deadline : USEC_NEVER;
	bool expires = c->expires && c->expires < last;

	if (expires)
		last = c->expires;
	if (c->now >= last) {
		v->state = RUN_EXPIRED;
		SET_REASON(v, "%s (gate)", expires ? "expires" : "deadline");
		return;
	}
	SET_REASON(v, "gate");
	requeue_attempt(p, c, due < last ? due : last, v);
}

/* The gate of the job did not let the command start. */
static void judge_gate(const struct retry_policy *p, const struct judge_case *c, struct judge_verdict *v)
{
	if (c->exit_code == GATE_DELAY) {
		judge_delay(p, c, v);
	} else if (c->exit_code == GATE_SKIP) {
		v->state = c->cancel_asked ? RUN_CANCELLED : RUN_SKIPPED;
		SET_REASON(v, "%s", c->cancel_asked ? "cancelled" : "gate");
	} else {
		judge_failure(p, c, RUN_FAILED, v);
		if (v->state == RUN_FAILED && !v->dead)
			SET_REASON(v, "gate");
	}
}

struct judge_verdict judge_attempt(const struct retry_policy *p, const struct judge_case *c)
{
	struct judge_verdict v = {.state = RUN_FAILED, .outcome = c->outcome};

	switch (c->outcome) {
	case ATTEMPT_TIMED_OUT:
	case ATTEMPT_STALLED:
		judge_failure(p, c, RUN_TIMED_OUT, &v);
		break;
	case ATTEMPT_CANCELLED:
		v.state = RUN_CANCELLED;
		SET_REASON(&v, "cancelled");
		break;
	case ATTEMPT_NOT_STARTED:
		judge_failure(p, c, RUN_FAILED, &v);
		break;
	case ATTEMPT_DENIED:
		SET_REASON(&v, "%s", c->denial ? c->denial : "denied");
		break;
	case ATTEMPT_GATED:
		judge_gate(p, c, &v);
		break;
	case ATTEMPT_LOST:
		judge_lost(p, c, &v);
		break;
	default:
		judge_exit(p, c, &v);
		break;
	}
	return v;
}
