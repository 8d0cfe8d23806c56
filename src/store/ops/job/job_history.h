/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the past definitions of a job. */
#pragma once
#include "store/revision.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

/*
 * Adds a definition and removes the oldest ones. 'before' is the definition that it replaces: a job
 * that was never changed has no row of it yet.
 */
bool job_history_add(struct store *s, int64_t job, int64_t owner, const struct revision *before, const struct revision *now,
	struct err *e);
bool job_history_prefetch(struct store *s, int64_t job, struct err *e); /* of a locked job */
