/* SPDX-License-Identifier: Apache-2.0 */
/* How people name things: '12' and 'backup' are jobs, 'backup#17', '12#17' and '#17' are runs. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

struct ref {
	const char *text; /* as typed; borrowed */
	char name[129];   /* of the job; empty: by number */
	int64_t job;      /* 0: by name, or of a run without a job */
	int64_t run;      /* 0: a job is meant */
};
bool ref_parse(const char *text, struct ref *ret, struct err *e);

/* Whether the job of that number and name (NULL: none) is the one meant; true when none was named. */
bool ref_job_matches(const struct ref *r, int64_t job, const char *name);

/* What to type for a job object or a run object of the API: its name, else its number. */
void ref_of_job(const json_t *job, struct buf *out);
void ref_of_run(const json_t *run, struct buf *out);
/* 12 'backup', or 12 */
void ref_job_words(const json_t *job, struct buf *out);
