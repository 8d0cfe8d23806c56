/* SPDX-License-Identifier: Apache-2.0 */
/* A notice is what somebody is to be told about a job: here is when there is one. */
#pragma once
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

enum notice_state {
	NOTICE_WAITING, /* to be sent, or sent again */
	NOTICE_SENT,
	NOTICE_FAILED,  /* given up */
	NOTICE_STATE_MAX
};
const char *notice_state_name(enum notice_state s);
bool notice_state_parse(const char *name, enum notice_state *ret);

enum notice_kind {
	NOTICE_KIND_NONE,
	NOTICE_KIND_FAILED,    /* it was well; a run failed, after its last attempt */
	NOTICE_KIND_RECOVERED, /* it was not; a run succeeded */
	NOTICE_KIND_MISSED,    /* it was well; a run did not happen */
	NOTICE_KIND_LONG,      /* a run goes on for unusually long */
	NOTICE_KIND_TEST,      /* somebody asked for one */
	NOTICE_KIND_MAX
};
const char *notice_kind_name(enum notice_kind k);
bool notice_kind_parse(const char *name, enum notice_kind *ret);

/* How a job is doing, by the runs that are over. */
enum health {
	HEALTH_GOOD,
	HEALTH_MISSED,
	HEALTH_FAILED, /* worse than missed: a job that missed a run and then fails is a change of state */
	HEALTH_MAX
};
struct job_health {
	enum health bad;
	usec_t since;         /* of its last change; 0: never */
	usec_t slot;          /* the newest slot that was bad */
	int64_t last_success; /* a run; 0: none */
	usec_t typical;       /* duration of a successful attempt, a moving mean; 0: unknown */
};

/* What the end of a run says of its job; false: nothing, as one that was cancelled or whose job was paused. */
bool notice_health_of(enum run_state state, const char *reason /* NULL: none */, enum health *ret);

struct run_outcome {
	int64_t run;
	enum health health;
	usec_t slot;          /* the last, of a stretch */
	usec_t at;
	usec_t took;          /* of the attempt that succeeded */
};
/* Takes the outcome into account and says whom it makes us tell. Only a change of state is told. */
enum notice_kind notice_health_update(struct job_health *h, const struct run_outcome *o);

/* How long an attempt may take before it is unusually long; USEC_NEVER: nobody knows what is usual. */
usec_t notice_long_after(usec_t typical);

#define NOTICE_TRIES 5
/* The wait after so many failed tries: longer each time, 1, 4, 16 and 40 times 'base', a quarter more or less. */
usec_t notice_retry_delay(int64_t tries, usec_t base, uint64_t random);
