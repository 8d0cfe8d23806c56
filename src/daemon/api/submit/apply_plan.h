/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a set of definitions with the store: which jobs to add, change and remove. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "daemon/api/submit/submission.h"
#include "store/read/applied.h"
#include <jansson.h>
#include <stdbool.h>

struct op_job_apply;
struct job_change;
struct store;

#define APPLY_SET_MAX 1024 /* bytes of the name of a set */

enum apply_outcome { APPLY_CREATED, APPLY_CHANGED, APPLY_UNCHANGED, APPLY_REFUSED, APPLY_OUTCOME_MAX };

struct apply_entry {
	enum apply_outcome outcome;
	const char *name;            /* borrowed from the body; NULL: none */
	struct applied_job *now;     /* borrowed; NULL: the job does not exist */
	struct job_change *change;   /* owned; of an existing job */
	char *asked;                 /* owned; of an existing job */
	bool adopted;                /* becomes a member of the set */
	bool warrant_missing;
	struct err *err;             /* owned; of a refused entry */
	size_t at;                   /* index in the arrays of the operation */
};

struct apply_plan {
	/* in */
	struct submission s;         /* its body is {"set","prune","adopt","jobs"}; owns the new jobs */
	bool dry_run;                /* nothing will be stored; a missing warrant is not an error */
	bool definitions;            /* write the definitions before and after each change */
	int64_t scope;               /* whose jobs may be changed and removed, see access_scope() */
	/* out */
	json_t *body;                /* owned */
	char *set;                   /* owned */
	bool prune, adopt;
	enum warrant_policy warrants; /* of the spawner; a dry run checks no warrants */
	struct apply_entry *v;       /* owned */
	size_t n, refused;
	struct applied_list known;   /* jobs with the names of the entries */
	struct applied_list pruned;  /* members of the set without an entry */
};

void apply_plan_done(struct apply_plan *p);
/* Reads the body and compares. False: the request is refused as a whole. */
bool apply_plan_make(struct apply_plan *p, struct store *s, struct zone_cache *zones, struct err *e);
/* Fills the operation; it borrows from the plan. */
void apply_plan_fill(struct apply_plan *p, struct op_job_apply *o);
/* The first refused entry as the error of the request. */
void apply_plan_refusal(const struct apply_plan *p, struct err *e);
/* Explains a refusal of the operation with the entry at fault. */
void apply_plan_failed(const struct apply_plan *p, const struct op_job_apply *o, struct err *e);
/* The answer; 'o' has the results, NULL: a dry run. */
void apply_plan_write(const struct apply_plan *p, const struct op_job_apply *o, struct buf *out);
