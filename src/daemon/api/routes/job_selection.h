/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of jobs in the query of a request. */
#pragma once
#include "store/read/list/list_jobs.h"

struct request;

struct job_selection {
	struct job_filter filter; /* borrows the texts; without owner scope, order and place */
	char *owner, *name, *tag_key, *tag_value, *queue; /* owned; NULL: any */
};
void job_selection_read(const struct request *r, struct job_selection *ret);
void job_selection_done(struct job_selection *s);
