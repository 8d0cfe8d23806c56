/* SPDX-License-Identifier: Apache-2.0 */
/* Table columns of jobs, runs, dead letters. */
#pragma once

struct row_kind;

extern const struct row_kind job_rows, run_rows, dead_rows;
