/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the patch between two job definitions. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job_spec;

/*
 * A JSON merge patch: members that differ; null resets a member to its default. Caller
 * json_decref()s.
 */
json_t *spec_patch(const struct job_spec *before, const struct job_spec *after);

/*
 * Builds the patch from the operands of 'jobctl set': KEY=VALUE, where KEY is the name or option of
 * a row of job_fields[] or a schedule option; KEY= for the default; env.NAME, tag.KEY and
 * param.NAME for members; then '--' and a new command.
 */
bool spec_patch_from_words(char *const *words, size_t n, json_t **ret, struct err *e);
