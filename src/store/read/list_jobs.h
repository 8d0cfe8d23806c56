/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of jobs by filter. */
#pragma once
#include "base/clock.h"
#include "store/lists.h"
#include <stdbool.h>

struct err;
struct store;

/*
 * The order is by id, with a creation range by time and id. Ranges include 'since' and exclude
 * 'until'.
 */
struct job_filter {
	int64_t uid;          /* -1: all owners */
	unsigned states;      /* bits 1 << enum job_state; 0: all except removed */
	const char *owner, *name_glob, *tag_key, *tag_value; /* NULL: any */
	usec_t created_since, created_until; /* 0: open */
	int64_t after;        /* cursor: higher ids follow */
	size_t limit;
	size_t bytes;         /* the page ends with the job whose definition reaches this size; 0: no limit */
};
bool list_jobs_page(struct store *s, const struct job_filter *f, struct job_list *ret, struct err *e);
