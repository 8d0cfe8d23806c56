/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between two definitions of a job. */
#pragma once
#include <stdbool.h>

struct buf;
struct job_field;
struct job_spec;

/* Compares one field; the order of the pairs of a map does not matter. */
bool job_diff_field_equal(const struct job_field *f, const struct job_spec *a, const struct job_spec *b);

/* Compares the schedules, including zone, bounds and jitter. */
bool job_diff_slots_equal(const struct job_spec *a, const struct job_spec *b);

/*
 * "priority 0 → 5, env.PATH changed": one line, without the values of variables; empty if nothing
 * differs.
 */
void job_diff_words(const struct job_spec *a, const struct job_spec *b, struct buf *out);
