/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a request body to jobs, checked before the transaction. */
#pragma once
#include "core/job/call.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/decide/machine_conditions.h"
#include "core/job/job.h"
#include "core/job/warrant.h"
#include "daemon/api/submit/forecast.h"
#include "store/ops/job/jobs.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct sandbox_offers;
struct schedule_set;
struct zone_cache;

struct schedule_cache;

struct submission_job {
	struct job_spec spec;
	char *text;           /* canonical JSON */
	char *key;            /* NULL: none */
	char *content;        /* content compared for the key, if it differs from 'asked' */
	/* canonical JSON before the schedule was resolved; only with a key or a name */
	char *asked;
	struct forecast forecast; /* for a single job */
	struct err late;      /* error of the schedule, reported if the key is new */
	struct schedule_cache *schedule_cache; /* borrowed, used on the store thread; NULL: not needed */
};

/* Makes a job from the template that a submission names; 'spec' is initialised. */
typedef bool template_fn(void *arg, int64_t uid, const json_t *submission, struct job_spec *spec,
	struct err *e);

/* The schedule of the previous job of a bulk: the jobs of a bulk often have the same one. */
struct submission_schedule {
	struct strv texts;    /* owned, as given */
	char *tz;             /* owned */
	int64_t dst_gap, dst_fold;
	usec_t from, until;
	struct schedule_set *set; /* owned; NULL: none */
};

struct submission {
	struct buf body;      /* input */
	bool bulk;
	/* definitions of files: a template is only named, and the warrant is not part of 'asked' */
	bool complete;
	bool dry_run;         /* for a single job; nothing is stored */
	bool paused;          /* the job starts paused */
	size_t max_body, max_jobs;
	template_fn *from_template; /* NULL: templates cannot be used */
	void *template_arg;
	usec_t now;
	bool admin;           /* the caller is an administrator */
	bool foreign;         /* the caller is not the owner */
	bool of_root;         /* the owner is root, in system mode */
	int64_t uid;          /* owner number: core/job/owner.h */
	char *traceparent, *tracestate, *baggage; /* owned: of the request; valid; NULL: none */
	char *owner;          /* owned; must be set before the jobs are stored */
	int64_t jobs_limit, bytes_limit;
	enum warrant_policy warrants; /* which owners' jobs need a warrant */
	struct machine_figures machine; /* for conditions */
	struct forecast_services services; /* borrows its texts */
	/* Computes the slots of H while a job is stored; 'arg' is its struct submission_job. NULL: the planner computes them. */
	job_first_slot_fn *first_slot;
	struct schedule_cache *schedule_cache; /* borrowed, of the store thread */
	struct sandbox_offers *sandboxes; /* owned; NULL: not known yet */
	/* bits by enum limit_kind: limits that the spawner cannot enforce */
	unsigned limits_refused;
	struct call_rules calls;

	struct submission_schedule schedule; /* of submission_prepare() */

	struct submission_job *v; /* output */
	struct job_new *jobs;     /* n elements; borrows from v */
	size_t n;
};

bool submission_needs_store(const struct submission *s); /* the body may name a template */
void submission_init(struct submission *s);
void submission_done(struct submission *s);

/*
 * Reads only zone files. The field of an error is a member, with the prefix "jobs[17]." for a bulk
 * request.
 */
bool submission_prepare(struct submission *s, struct zone_cache *zones, struct err *e);
/* For a caller that reads the body itself: room for n jobs, then one call per job. */
void submission_allocate(struct submission *s, size_t n);
bool submission_prepare_job(struct submission *s, size_t i, json_t *o, struct zone_cache *zones,
	struct err *e);
/*
 * The job has its number, which determines H if it has no name. Computes the first slot and the
 * warnings.
 */
bool submission_set_number(struct submission *s, size_t i, struct job_new *n,
	struct zone_cache *zones, struct err *e);
/* Checks whether the schedules of a job can be combined. */
bool submission_check_kind(const struct schedule_set *set, struct err *e);
void submission_set_owner(struct submission *s); /* copies 'owner' to the jobs */
/* Checks what the caller may not define for this owner; 'had': the variables of the job so far. */
bool submission_check_owner(const struct submission *s, const struct job_spec *spec,
	const struct strv *had /* NULL: none */, struct err *e);
/* The definition as it was written, without its warrant; caller frees. */
char *submission_asked(struct job_spec *spec);
/* Adds the prefix "jobs[17]." to the field. */
void submission_error_field(struct err *e, size_t index);
