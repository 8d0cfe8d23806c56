/* SPDX-License-Identifier: Apache-2.0 */
/* The text of 'jobctl show' for jobs and runs. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

/* Values of variables that look like secrets are masked. */
bool verb_show_job_text(const struct ctl *c, const json_t *job, struct buf *out, struct err *e);
void verb_show_run_text(const struct ctl *c, const json_t *run, struct buf *out);
