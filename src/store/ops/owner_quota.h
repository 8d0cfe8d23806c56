/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the bytes of the rows of each owner. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct query;
struct store;

/*
 * Fixed bytes per row, which include the index entries; the .sql files add the lengths of the texts
 * ({job_size} ...).
 */
#define JOB_BYTES 1000
#define REVISION_BYTES 200
#define TEMPLATE_BYTES 200
#define RUN_BYTES 400 /* with its attempts */

void owner_quota_add(struct store *s, int64_t uid, int64_t bytes); /* uid below 0: the owner is unknown */
bool owner_quota_subtract_rows(struct store *s, struct query *q);  /* rows of a DELETE with the columns uid and size */
bool owner_quota_used(struct store *s, int64_t uid, int64_t *ret, struct err *e); /* includes this transaction */
void owner_quota_refuse(struct err *why, const char *owner, int64_t used, int64_t limit);
/* Sets *why if 'more' bytes would exceed the owner's limit; 0: no limit. 'job': see owner_count_read(). */
bool owner_quota_check(struct store *s, int64_t uid, int64_t job, const char *owner, int64_t more, int64_t limit, struct err *why,
	struct err *e);
