/* SPDX-License-Identifier: Apache-2.0 */
/* References to a job or run: 12, backup, backup#17, 12#17, #17. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

struct ref {
	const char *text; /* as typed; borrowed */
	char name[129];   /* of the job; empty: not given by name */
	int64_t job;      /* number of the job; 0: not given by number */
	int64_t run;      /* 0: a reference to a job */
};
bool ref_parse(const char *text, struct ref *ret, struct err *e);

/*
 * Whether the reference fits the job with this number and name (NULL: none). '#17' fits every job.
 */
bool ref_job_matches(const struct ref *r, int64_t job, const char *name);

/* Append the reference to a job object or run object of the API, by name if it has one. */
void ref_of_job(const json_t *job, struct buf *out);
void ref_of_run(const json_t *run, struct buf *out);
/* Appends "12 'backup'", or "12" without a name. */
void ref_job_words(const json_t *job, struct buf *out);
