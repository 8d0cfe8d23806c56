/* SPDX-License-Identifier: Apache-2.0 */
/* What is shared by the verbs that change a job. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;

/* Sends a patch for a job object. 'revision' 0: whichever it is now. */
bool change_send(struct ctl *c, const json_t *job, json_t *patch, int64_t revision, bool dry_run, json_t **ret,
	struct err *e);
/* What became of it, as text or data; the exit code. 'dry_run': nothing was changed. */
int change_show(const struct ctl *c, const json_t *answer, bool dry_run);
