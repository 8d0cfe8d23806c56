/* SPDX-License-Identifier: Apache-2.0 */
/* A job on its way into the store: what store_jobs.c and store_jobs_check.c share. */
#pragma once
#include "base/err.h"
#include "store/ops/op.h"

struct actor;
struct store;

struct adding {
	struct job_new *j;
	const struct actor *by;
	struct err err; /* kind ERR_NONE: fine so far */
	bool met;        /* its name is known, and what to do then */
	int64_t replace; /* the job that gets this definition instead; 0: none */
	bool inserted;
};

/* False: the store failed. What is refused has its error in a->err. */
bool job_check_all(struct store *s, struct adding *a, size_t n, struct err *e);      /* limits, time, queues */
bool job_check_name(struct store *s, struct adding *a, struct err *e);           /* refuses one that a live job has */
bool job_check_known(struct store *s, struct adding *a, struct err *e); /* who has as many as allowed may name one that is there */

/* The job that has this key; ret_id 0: none. a->j->existed: it is this one. */
bool job_check_find_key(struct store *s, struct adding *a, int64_t *ret_id, bool *ret_expired, struct err *e);
bool job_check_refuse_key(struct adding *a, int64_t id);                               /* true */
bool job_check_first_run(struct store *s, struct job_new *j, struct err *e);           /* of a job that existed */
int64_t job_key_digest(const struct job_new *j);
