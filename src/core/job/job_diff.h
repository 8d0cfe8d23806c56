/* SPDX-License-Identifier: Apache-2.0 */
/* What is different between two definitions of a job. */
#pragma once
#include <stdbool.h>

struct buf;
struct job_field;
struct job_spec;

/* Pairs of a map may stand in another order. */
bool job_diff_field_equal(const struct job_field *f, const struct job_spec *a, const struct job_spec *b);

/* Do they have the same slots? Zone, bounds and jitter belong to the schedule. */
bool job_diff_slots_equal(const struct job_spec *a, const struct job_spec *b);

/* "priority 0 → 5, env.PATH changed": one line, without the values of variables. Nothing: no difference. */
void job_diff_words(const struct job_spec *a, const struct job_spec *b, struct buf *out);
