/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a run is retried or final after an attempt. */
#pragma once
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

struct retry_policy;

#define RUN_LOST_MAX 3 /* how often a run is started again after a lost attempt */
#define RETRY_AFTER_MAX USEC_HOUR /* a server cannot delay a retry further */
#define RUN_REASON_MAX 96

/* An ended attempt, with the history of its run before it. */
struct judge_case {
	enum attempt_outcome outcome;
	const char *denial;     /* static; reason of a denied attempt, one word; NULL: unknown */
	bool stopped;           /* lost because its spawner was stopped: counts as neither failure nor loss */
	bool final;             /* the failure of a call that a retry cannot change */
	int64_t status;         /* of the response to a call; 0: none */
	usec_t retry_after;     /* the server asks to wait this long before a retry; 0: it does not */
	int64_t exit_code;      /* -1: none */
	int64_t term_signal;    /* 0: none */
	bool cancel_asked;
	int64_t failures, lost;
	int64_t number;         /* of the attempt, from 1 */
	usec_t deadline, expires; /* when the first attempt, or any attempt, may not start any more; 0: no limit */
	usec_t first_start;     /* of the run, including this attempt; 0: never started */
	usec_t now;
	uint64_t random;        /* for the jitter of the backoff */
};

struct judge_verdict {
	enum run_state state;         /* RUN_QUEUED: retry */
	usec_t due_at;                /* of the next attempt */
	enum attempt_outcome outcome; /* of the attempt, after applying the exit rules of the job */
	bool failure, lost;           /* the counter it increments; neither: none */
	bool dead;                    /* the run becomes a dead letter */
	bool pause;                   /* the job is paused */
	char reason[RUN_REASON_MAX];  /* empty: none */
};
struct judge_verdict judge_attempt(const struct retry_policy *p, const struct judge_case *c);

/*
 * The time limit of an attempt that starts now: 'timeout', reduced to the rest of the run timeout.
 * 0: no limit. False: the run timeout is over, the attempt must not start.
 */
bool judge_time_left(const struct retry_policy *p, usec_t first_start, usec_t timeout, usec_t now, usec_t *ret);
