/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a changed job definition before the transaction. */
#pragma once
#include "core/job/call.h"
#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/warrant.h"
#include "daemon/api/submit/forecast.h"
#include "store/ops/job/job_changes.h"
#include <jansson.h>
#include <stdbool.h>

struct err;
struct sandbox_offers;
struct zone_cache;

struct job_change {
	/* in */
	const struct job *job;    /* borrowed: current definition */
	usec_t now;
	enum warrant_policy warrants; /* which owners' jobs need a warrant */
	bool preview;             /* the forecast includes the next slots */
	const struct sandbox_offers *sandboxes; /* borrowed; NULL: not known yet */
	/* bits by enum limit_kind: limits that the spawner cannot enforce */
	unsigned limits_refused;
	struct call_rules calls;

	/* out */
	struct job_spec spec;     /* new definition */
	char *text;               /* canonical JSON */
	char *what;               /* description of the difference */
	bool warrant_missing; /* with preview: the change needs a new warrant */
	bool changed; /* false: the definition is the same, and no other output is set */
	struct forecast forecast;
	struct op_job_change change; /* borrows from this struct */
};
void job_change_done(struct job_change *a);

/* Applies a merge patch to the job (spec_json_merge). */
bool job_change_merge(struct job_change *a, const json_t *patch, struct zone_cache *zones,
	struct err *e);

/*
 * Replaces the definition. A schedule that has the same meaning as the stored one keeps its slots;
 * the template that the job was made from is kept.
 */
bool job_change_replace(struct job_change *a, struct job_spec *want /* moved */,
	struct zone_cache *zones, struct err *e);

/* Applies the definition of an earlier revision. */
bool job_change_restore(struct job_change *a, const char *spec, int64_t revision,
	struct zone_cache *zones, struct err *e);
