/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the archive of the daemon. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;
struct ref;

/* Adds the job or run of the reference to the path of a search. The job may be deleted, so it is not looked up. */
struct buf;
void archived_filter(struct buf *path, const struct ref *r);
/* Searches the whole archive for a run. */
bool archived_run(struct ctl *c, const struct ref *r /* of a run */, json_t **ret, struct err *e);
