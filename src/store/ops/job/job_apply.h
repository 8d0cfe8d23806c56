/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a set of definitions: adds, changes and removes jobs in one transaction. */
#pragma once
#include "store/ops/op.h"
#include <stddef.h>
#include <stdint.h>

struct job_new;
struct op_job_change;

enum job_apply_part { JOB_APPLY_REMOVE, JOB_APPLY_CHANGE, JOB_APPLY_ADD };

/* The arrays are owned; what their elements point to is borrowed and lives as long as the op or its 'data'. */
struct op_job_apply {
	struct op op;
	int64_t scope;                 /* whose jobs may be changed and removed, see access_scope() */
	const char *set;               /* name of the set; NULL: none, new jobs are members of no set */
	usec_t now;
	struct job_new *add;
	struct op_job_change **change; /* their results are set */
	int64_t *remove;               /* numbers of jobs */
	int64_t *adopt;                /* jobs that exist and become members of the set */
	size_t n_add, n_change, n_remove, n_adopt;
	void *data;                    /* owned: what the elements borrow from; NULL: the submitter keeps it */
	void (*data_free)(void *data);
	/* results: which job was refused */
	enum job_apply_part part;
	size_t failed;
};
OP_DEFINE(job_apply, job_apply, OP_JOB_APPLY, OP_JOB_APPLY)
