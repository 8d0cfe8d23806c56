/* SPDX-License-Identifier: Apache-2.0 */
/* Another definition for a job that exists: all the checking before the transaction. */
#pragma once
#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/warrant.h"
#include "daemon/api/submit/forecast.h"
#include "store/ops/op.h"
#include <jansson.h>
#include <stdbool.h>

struct err;
struct sandbox_offers;
struct zone_cache;

struct job_change {
	/* in */
	const struct job *job;    /* borrowed: as it is */
	usec_t now;
	enum warrant_policy warrants; /* for whose jobs the spawner wants one */
	bool look;                /* the forecast has the next slots, too */
	const struct sandbox_offers *sandboxes; /* borrowed; NULL: nobody knows which there are */
	unsigned limits_refused;  /* enum limit_kind: what the spawner cannot enforce */

	/* out */
	struct job_spec spec;     /* as it will be */
	char *text;               /* canonical */
	char *what;               /* in words */
	bool changed;             /* false: it is that already, and nothing else is filled in */
	struct forecast forecast;
	struct op_job_change change; /* borrows from here */
};
void job_change_done(struct job_change *a);

/* The job with these members laid over it (spec_json_merge). */
bool job_change_merge(struct job_change *a, const json_t *patch, struct zone_cache *zones, struct err *e);

/* The definition of an earlier revision, taken up again. */
bool job_change_restore(struct job_change *a, const char *spec, int64_t revision, struct zone_cache *zones,
	struct err *e);
