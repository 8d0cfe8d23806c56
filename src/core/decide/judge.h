/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an attempt makes of its run: tried again, and when, or over, and how. Pure. */
#pragma once
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

struct retry_policy;

#define RUN_LOST_MAX 3 /* times a run is started again after its attempt was lost */
#define RUN_REASON_MAX 96

/* An attempt that ended, and what its run had behind it before. */
struct judge_case {
	enum attempt_outcome outcome;
	const char *denial;     /* static, of a denied one: who says no and why, in a word; NULL: nobody knows */
	bool stopped;           /* lost, because its spawner was told to stop: it uses up nothing */
	int64_t exit_code;      /* -1: none */
	int64_t term_signal;    /* 0: none */
	bool cancel_asked;
	int64_t failures, lost;
	usec_t first_start;     /* of the run, this attempt included; 0: it never started */
	usec_t now;
	uint64_t random;        /* for the wait; any number */
};

struct judge_verdict {
	enum run_state state;         /* RUN_QUEUED: try again */
	usec_t due_at;                /* of the next try */
	enum attempt_outcome outcome; /* of the attempt, by its owner's rules for exit codes */
	bool failure, lost;           /* which count it adds to; neither: none */
	bool dead;                    /* it is a dead letter */
	bool pause;                   /* its job is to be paused */
	char reason[RUN_REASON_MAX];  /* empty: nothing to say */
};
struct judge_verdict judge_attempt(const struct retry_policy *p, const struct judge_case *c);

/*
 * How long an attempt may take that starts now: the attempt's own limit, cut to what is left of the run's. 0: as long
 * as it likes. False: the time of the run is over, it must not start.
 */
bool judge_time_left(const struct retry_policy *p, usec_t first_start, usec_t timeout, usec_t now, usec_t *ret);
