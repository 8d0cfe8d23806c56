/* SPDX-License-Identifier: Apache-2.0 */
/* Converts result rows to jobs and runs. */
#pragma once
#include "store/lists.h"
#include "store/store.h"

struct err;
struct query;
struct run;

struct run *row_run(struct query *q);
struct job *row_job(struct query *q, struct err *e); /* NULL: the row is damaged */
uint64_t row_digest(int64_t uid, const char *owner, const char *spec); /* detects damaged job rows */
bool row_runs_read(struct store *s, const char *ids, struct run_list *ret, struct err *e);
bool row_run_read(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e); /* *ret NULL: no such run */
/* The claimed and running runs of a job, in batches that may send statements ahead (db.defer). */
bool row_active_runs_read(struct store *s, int64_t job, struct run_list *ret, struct err *e);
bool row_active_runs_prefetch(struct store *s, int64_t job, struct err *e);
bool row_run_prefetch(struct store *s, int64_t uid, int64_t id, struct err *e);
bool jobs_read(struct store *s, int64_t uid, const char *ids, struct job_list *ret, struct err *e);
void run_list_add(struct run_list *l, struct run *r /* moved */);
