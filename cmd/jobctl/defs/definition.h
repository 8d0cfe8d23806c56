/* SPDX-License-Identifier: Apache-2.0 */
/* Converts jobs of the API to definitions that files contain. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct err;
struct job_spec;

/*
 * The definition of a job object: the members that differ from their defaults, without the warrant.
 * Without 'reveal', the value of a variable that looks like a secret is null. NULL: *e has the
 * error.
 */
json_t *definition_of_job(const json_t *job, bool reveal, struct err *e);

/* Appends the lines that only one of two 'key = value' texts has, with '-' and '+'. */
void definition_diff(const struct buf *before, const struct buf *after, struct buf *out);
