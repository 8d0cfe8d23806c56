/* SPDX-License-Identifier: Apache-2.0 */
/* What must be sent to make one definition of another. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job_spec;

/* For PATCH: members that differ, null for those that have their default again. Caller json_decref()s. */
json_t *spec_patch(const struct job_spec *before, const struct job_spec *after);

/*
 * The same from words: KEY=VALUE by the names and options of job_fields[], KEY= for the default, env.NAME, tag.KEY and
 * param.NAME for members, cron, every, at and the like for the schedule; then '--' and a new command.
 */
bool spec_patch_from_words(char *const *words, size_t n, json_t **ret, struct err *e);
