/* SPDX-License-Identifier: Apache-2.0 */
/* Notices: their states, and the rules that decide when one is sent. */
#pragma once
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

enum notice_state {
	NOTICE_WAITING, /* not sent yet, or to be retried */
	NOTICE_SENT,
	NOTICE_FAILED,  /* no further retry */
	NOTICE_STATE_MAX
};
const char *notice_state_name(enum notice_state s);
bool notice_state_parse(const char *name, enum notice_state *ret);

enum notice_kind {
	NOTICE_KIND_NONE,
	NOTICE_KIND_FAILED,    /* the job was healthy, and a run failed after its last attempt */
	NOTICE_KIND_RECOVERED, /* the job was not healthy, and a run succeeded */
	NOTICE_KIND_MISSED,    /* the job was healthy, and a run was missed */
	NOTICE_KIND_LONG,      /* a run takes unusually long */
	NOTICE_KIND_TEST,      /* a test notice was requested */
	NOTICE_KIND_OUTPUT,    /* a run has output; only for the channels output:ADDRESS */
	NOTICE_KIND_MAX
};
const char *notice_kind_name(enum notice_kind k);
bool notice_kind_parse(const char *name, enum notice_kind *ret);

/* The health of a job, from its final runs. */
enum health {
	HEALTH_GOOD,
	HEALTH_MISSED,
	HEALTH_FAILED, /* worse than missed: going from missed to failed is a change of state */
	HEALTH_MAX
};
struct job_health {
	enum health bad;
	usec_t since;         /* time of the last change; 0: never */
	usec_t slot;          /* the newest slot that was not successful */
	int64_t last_success; /* a run; 0: none */
	usec_t typical;       /* moving average of the duration of successful attempts; 0: unknown */
	usec_t at[HEALTH_MAX]; /* the last run of each kind that this update added; 0: none */
	usec_t took;           /* duration of the last of them; 0: unknown */
};

/*
 * The health that a final run implies for its job; false: none, for example of a cancelled run or a
 * paused job.
 */
bool notice_health_of(enum run_state state, const char *reason /* NULL: none */, enum health *ret);

struct run_outcome {
	int64_t run;
	enum health health;
	usec_t slot;          /* the last one, if the run stands for several slots */
	usec_t at;
	usec_t took;          /* duration of the successful attempt */
};
/* Updates the health and returns the notice to send. Only a change of state causes a notice. */
enum notice_kind notice_health_update(struct job_health *h, const struct run_outcome *o);

/*
 * The duration from which an attempt is unusually long; USEC_NEVER: the typical duration is
 * unknown.
 */
usec_t notice_long_after(usec_t typical);

#define NOTICE_TRIES 5
/*
 * The delay after 'tries' failed attempts: 1, 4, 16 and 40 times 'base', with a jitter of a
 * quarter.
 */
usec_t notice_retry_delay(int64_t tries, usec_t base, uint64_t random);
