/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon found about a schedule: notes on an added job, and the whole of a dry run. */
#pragma once
#include <jansson.h>

struct ctl;

void dry_run_say_findings(const json_t *findings); /* on standard error, a line each */
int dry_run_show_change(const struct ctl *c, const json_t *job); /* the same for a change of a job */
int dry_run_show(const struct ctl *c, const json_t *job); /* the answer to a dry run; the exit code */
