/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out in one query whether the names and keys of new jobs are free. */
#pragma once
#include "base/auto.h"
#include "store/backend/query.h"
#include <stddef.h>

struct adding;
struct err;
struct store;

struct job_names {
	struct query taken;
	bool free; /* no job of the chunk can conflict with another one */
};
void job_names_done(struct job_names *n);

/*
 * Sends the query; its rows arrive with those of the next one. The owners are locked, so that the
 * answer stays true until the commit. Only on a server: elsewhere the insertion itself finds conflicts. Without names and
 * keys there are none.
 */
bool job_names_send(struct job_names *n, struct store *s, const struct adding *a, size_t count, struct err *e);
bool job_names_read(struct job_names *n);
