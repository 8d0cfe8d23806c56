/* SPDX-License-Identifier: Apache-2.0 */
/* Adds jobs, one or many at a time. */
#pragma once
#include "core/job/policy.h"
#include "store/ops/op.h"
#include <stdint.h>

struct set;
struct store;
struct strv;

#define QUEUE_DEFAULT JOB_QUEUE_DEFAULT

/* The action if a live job of the owner has the same name. */
enum if_exists { EXISTS_ERROR, EXISTS_KEEP, EXISTS_REPLACE, IF_EXISTS_MAX };

struct job_new;
/*
 * Replaces next_slot when the number of the job is known: the number is the seed of H. Called on the store thread, inside the
 * transaction. It leaves next_slot unchanged if it cannot compute the slot; then the planner does.
 */
typedef void job_first_slot_fn(struct job_new *j, void *arg);

/* A job to be added. Strings are borrowed from the owner of the op and live as long as the op. */
struct job_new {
	int64_t uid;             /* owner number: core/owner.h */
	const char *owner;
	const char *name;        /* NULL: none */
	const char *spec;        /* canonical JSON */
	const char *key;         /* idempotency key; NULL: none */
	const char *content;     /* as submitted, before relative times became absolute: a repeated key with the same content
				    is the same submission; NULL: the spec is compared */
	const struct strv *tags; /* NULL: none */
	const struct strv *after; /* links to other jobs; NULL: none */
	int64_t after_mode;      /* enum chain_mode */
	int64_t priority;
	const char *queue;       /* NULL: default */
	struct start_policy policy;
	usec_t now;
	usec_t run_at;           /* a run is queued at once for this slot; 0: none */
	usec_t run_delay;        /* the run is due this long after its slot */
	usec_t next_slot;        /* first slot of 'due'; 0: none; USEC_NEVER: waits for a run's end or a boot */
	job_first_slot_fn *first_slot; /* NULL: next_slot does not depend on the number */
	void *first_slot_arg;    /* borrowed */
	bool boots;              /* due at each boot */
	bool paused;             /* by the owner, or by the administrator who adds the job for another user */
	bool by_admin;           /* may use the name of a cancelled job that an administrator had paused */
	int64_t limit;           /* live jobs the owner may have, including this one; 0: no limit */
	int64_t bytes_limit;     /* of all rows of the owner; 0: no limit */
	enum if_exists if_exists;
	const char *asked;       /* as submitted, before relative times became absolute: with EXISTS_REPLACE an equal
				    submission changes nothing; NULL: unknown */
	const struct err *late;  /* borrowed: refusal unless the key is known; NULL: none */
	int64_t density_max;     /* the other jobs due at next_slot are counted up to this; 0: not counted */
	/* results */
	int64_t id;              /* number of the job */
	int64_t run;             /* run that was queued at once; 0: none */
	bool existed;            /* the key with the same content, or the name, was known: nothing was added */
	bool replaced;           /* ... and that job has this definition now */
	int64_t density;         /* other jobs at next_slot; 0 when the batch has too many different slots */
};

struct op_job_add {
	struct op op;
	struct job_new job;
};
OP_DEFINE(job_add, job_add, OP_JOB_ADD, OP_JOB_ADD)

struct op_job_bulk {
	struct op op;
	struct job_new *v; /* owned array */
	size_t n;
	size_t failed;     /* result: index of the job that was refused */
};
OP_DEFINE(job_bulk, job_bulk, OP_JOB_BULK, OP_JOB_BULK)

struct job_add_list {
	struct job_new *v;
	size_t n;
	const struct actor *by;
};
/*
 * Adds the jobs in the transaction of the caller, who rolls back after a refusal (why->kind); its
 * index is *ret_failed.
 */
bool job_add_many(struct store *s, const struct job_add_list *l, struct err *why, size_t *ret_failed, struct err *e);

/* Has the refusals and results of OP_JOB_ADD, but adds nothing and assigns no numbers. */
bool job_dry_run(struct store *s, struct job_new *j, struct err *e);

void job_new_reset(struct job_new *j); /* clears the results */
void job_new_owner(const struct store *s, const struct job_new *j, struct set *owners); /* see op_info.owners */
const char *job_queue(const struct job_new *j);
int64_t job_content_digest(int64_t uid, const char *content);
int64_t job_key_digest(const struct job_new *j);
bool job_tags_insert(struct store *s, const struct job_new *j, struct err *e);
