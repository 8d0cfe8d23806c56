/* SPDX-License-Identifier: Apache-2.0 */
/* Checks new jobs: idempotency keys, names, owner limits, queues. */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct actor;
struct job_new;
struct store;

struct adding {
	struct job_new *j;
	const struct actor *by;
	struct err err;  /* kind ERR_NONE: not refused so far */
	bool met;        /* a live job has the name, and if_exists was applied */
	int64_t replace; /* the job that gets this definition instead; 0: none */
	bool inserted;
};

/* These return false if the database failed. A refusal is in a->err. */
bool job_check_all(struct store *s, struct adding *a, size_t n, struct err *e);
bool job_check_name(struct store *s, struct adding *a, struct err *e); /* refuses the name of a live job */
/* Clears the refusal by a limit if a live job has the name and if_exists allows that. */
bool job_check_known(struct store *s, struct adding *a, struct err *e);

/* Finds the job that has this key; *ret_id 0: none. a->j->existed: the content is the same. */
bool job_check_find_key(struct store *s, struct adding *a, int64_t *ret_id, bool *ret_expired, struct err *e);
bool job_check_refuse_key(struct adding *a, int64_t id); /* returns true */
bool job_check_first_run(struct store *s, struct job_new *j, struct err *e); /* sets j->run of a job that existed */
