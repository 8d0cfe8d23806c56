/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a job, for set, undo or edit. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;

/* Sends a patch. The daemon refuses it unless the job still has this revision; 0: not checked. */
bool change_send(struct ctl *c, const json_t *job, json_t *patch, int64_t revision, bool dry_run,
	json_t **ret, struct err *e);
/* Prints the daemon's answer; returns the exit code. */
int change_show(struct ctl *c, const json_t *answer, bool dry_run);
