/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a run on request. */
#pragma once
#include "core/job/policy.h"
#include "store/ops/op.h"
#include <stdint.h>

struct run;
struct strv;

struct op_trigger {
	struct op op;
	int64_t uid;         /* whose jobs may be used; -1: all */
	int64_t job;
	int64_t revision;    /* that policy and tags are from; ERR_BUSY if the job has another one */
	struct start_policy policy;
	const struct strv *tags; /* borrowed */
	const char *params;  /* borrowed JSON; NULL: none */
	bool forced;         /* ignores pauses and active runs of the job */
	bool as_scheduled;   /* as a slot of the schedule: a pause skips the run, and jitter delays it */
	usec_t delay;        /* jitter, with as_scheduled */
	bool overrides_freeze;          /* with forced: also ignores a freeze, for an administrator */
	int64_t limit;       /* live jobs the owner may have if the job is revived; 0: no limit */
	int64_t bytes_limit; /* of all rows of the owner; 0: no limit */
	usec_t now;
	struct run *run;     /* result, owned */
};
OP_DEFINE(trigger, trigger, OP_TRIGGER, OP_TRIGGER)
