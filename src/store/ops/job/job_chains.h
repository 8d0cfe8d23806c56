/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and checks the links of jobs to the jobs that they run after. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adding;
struct err;
struct job_new;
struct set;
struct store;

void job_chains_describe(struct set *set, const struct job_new *j);
bool job_chains_rewrite(struct store *s, const struct job_new *j, struct err *e); /* of an existing job */
/* Refuses links to unknown jobs, and cycles. 'id' is the number of an existing job; 0: a new one. */
bool job_chains_check(struct store *s, const struct job_new *j, int64_t id, struct err *why, struct err *e);
/* The same for new jobs, which may refer to each other. */
bool job_chains_check_all(struct store *s, struct adding *a, size_t n, struct err *e);
