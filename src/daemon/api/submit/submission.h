/* SPDX-License-Identifier: Apache-2.0 */
/* A request body becomes jobs that the store can take: all the checking before the transaction. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/decide/machine_conditions.h"
#include "core/job/job.h"
#include "core/job/warrant.h"
#include "daemon/api/submit/forecast.h"
#include "store/ops/op.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct sandbox_offers;
struct schedule_set;
struct zone_cache;

struct submission_job {
	struct job_spec spec;
	char *text;           /* canonical */
	char *key;            /* NULL: none */
	char *content;        /* what the key stands for, where that is not 'asked' */
	char *asked;          /* canonical, before the schedule was read; with a key or a name only */
	struct forecast forecast; /* of a single job */
	struct err late;      /* what is wrong with its schedule, if its key is new */
};

/* The job that a submission makes of the template it names; 'spec' is initialised. */
typedef bool template_fn(void *arg, int64_t uid, const json_t *submission, struct job_spec *spec, struct err *e);

struct submission {
	struct buf body;      /* in */
	bool bulk;
	bool dry_run;         /* a single job that nobody will store */
	bool paused;          /* starts nothing before it is resumed */
	size_t max_body, max_jobs;
	template_fn *from_template; /* NULL: no submission may name one */
	void *template_arg;
	usec_t now;
	bool admin;           /* by an administrator */
	bool foreign;         /* by somebody else than the owner */
	bool of_root;         /* and the owner is root, of the system's daemon */
	int64_t uid;          /* the owner's number: core/job/owner.h */
	char *owner;          /* owned; must be known before the jobs go to the store */
	int64_t jobs_limit, bytes_limit;
	enum warrant_policy warrants; /* for whose jobs the spawner wants one */
	struct machine_figures machine; /* what conditions will be held against */
	struct forecast_services means; /* borrowed texts */
	struct sandbox_offers *sandboxes; /* owned; NULL: nobody knows which there are */
	unsigned limits_refused; /* enum limit_kind: what the spawner cannot enforce */

	struct submission_job *v; /* out */
	struct job_new *jobs;     /* as many; borrows from v */
	size_t n;
};

bool submission_needs_store(const struct submission *s); /* the body may name a template */
void submission_init(struct submission *s);
void submission_done(struct submission *s);

/* Pure but for the zone files; an error's field is a member, behind "jobs[17]." in a bulk. */
bool submission_prepare(struct submission *s, struct zone_cache *zones, struct err *e);
/* The job got its number, which decides what H is where it has no name: its first slot is known now. */
bool submission_set_number(struct submission *s, size_t i, struct job_new *n, struct zone_cache *zones, struct err *e);
/* What this daemon has nobody for is refused rather than stored and forgotten. */
bool submission_check_kind(const struct schedule_set *set, struct err *e);
void submission_set_owner(struct submission *s); /* the owner is known now */
void submission_error_field(struct err *e, size_t index); /* puts "jobs[17]." before the field */
