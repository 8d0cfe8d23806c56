/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of jobs, runs and attempts. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct attempt;
struct job;
struct run;

struct job_list {
	struct job **v; /* owned */
	size_t n;
	int64_t next;   /* cursor of the next page; 0: this is the last one. A short page may have a next one */
};
struct run_list {
	struct run **v; /* owned */
	size_t n;
	int64_t next;   /* as in job_list */
};
struct attempt_list {
	struct attempt **v; /* owned */
	size_t n;
};
void job_list_done(struct job_list *l);
void run_list_done(struct run_list *l);
void attempt_list_done(struct attempt_list *l);
