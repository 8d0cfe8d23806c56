/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the jobs that a set of definitions is compared with. */
#pragma once
#include "base/auto.h"
#include "core/job/job.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct store;

struct applied_job {
	struct job job; /* without the members that depend on runs and pauses */
	int64_t asked;  /* digest of the submission; 0: unknown */
	char *set;      /* owned: the set that it was applied from; NULL: none */
};
struct applied_list {
	struct applied_job *v; /* owned, by number */
	size_t n;
};
void applied_list_done(struct applied_list *l);

/* The jobs of an owner with these names that are neither cancelled nor removed. */
bool applied_by_name(struct store *s, int64_t uid, const struct strv *names, struct applied_list *ret, struct err *e);

/* Number and name of the jobs of a set; the other members are not read. */
bool applied_members(struct store *s, int64_t uid, const char *set, struct applied_list *ret, struct err *e);
