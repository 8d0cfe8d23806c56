/* SPDX-License-Identifier: Apache-2.0 */
/* Reads earlier definitions of a job. */
#pragma once
#include "store/revision.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job;
struct store;

struct revision_list {
	struct revision *v; /* owned */
	size_t n;
	bool more;          /* the page was ended by its size, and more revisions follow */
};
void revision_list_done(struct revision_list *l);
/*
 * Newest first, those before 'before' (0: all). The current revision is included, also of an
 * unchanged job.
 */
bool revisions_page(struct store *s, const struct job *j, int64_t before, size_t limit, struct revision_list *ret,
	struct err *e);
