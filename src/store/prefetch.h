/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the reads of several operations of a batch together. */
#pragma once
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/*
 * The reads that were sent for operations of this batch. They are as if they were read before the
 * first of these operations. Each of these operations writes one job only.
 */
struct prefetch {
	bool on;         /* some were sent and not discarded */
	struct map jobs; /* that these operations have begun with */
	struct map sent; /* jobs whose reads were sent */
	bool full;       /* no more of them are sent together */
	size_t runs;     /* that they may add */
};

void prefetch_begin(struct store *s); /* the reads of some operations are sent now, see prefetch_send() in ops/batch.c */
void prefetch_drop(struct store *s); /* discards what was not used */
void prefetch_end(struct store *s);  /* the same at the end of the batch */
void prefetch_free(struct store *s);

/*
 * Before the reads of an operation on this job are sent. True: they are not sent, because those of an earlier one of these
 * operations on the same job were sent, and that operation will discard them.
 */
bool prefetch_repeats(struct store *s, int64_t job);

/*
 * For an operation that begins with a job, before it uses anything that was read about the job. If
 * an earlier one of these operations may have written the job, the reads are discarded: true.
 */
bool prefetch_job(struct store *s, int64_t job);
/* For what operations on other jobs may have written: if there was one, the reads are discarded: true. */
bool prefetch_is_late(struct store *s);
