/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a dry run, or warnings about schedules. */
#pragma once
#include <jansson.h>

struct ctl;

void dry_run_say_findings(const json_t *findings); /* one line each on standard error */

/* Print the answer to 'add --dry-run' and 'set --dry-run'; return the exit code. */
int dry_run_show(const struct ctl *c, const json_t *job);
int dry_run_show_change(const struct ctl *c, const json_t *job);
