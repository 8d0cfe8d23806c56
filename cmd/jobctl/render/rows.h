/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of jobs and runs. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct row_kind;

extern const struct row_kind job_rows, run_rows, dead_rows;

/* A job that is paused or frozen does not run at its next slot, so none is shown. */
bool words_is_held(const json_t *job);
/* The command of a job object on one line: words quoted as for a shell, or the script. */
void words_command(const json_t *job, struct buf *out);
void words_schedule(const json_t *job, struct buf *out);
