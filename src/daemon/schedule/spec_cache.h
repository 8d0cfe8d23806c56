/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed job definitions, found by their text, so that a recurring job is not parsed for each run. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct job_spec;
struct spec_cache;

struct spec_cache *spec_cache_new(void);
void spec_cache_free(struct spec_cache *c);
AUTO_DEFINE(spec_cache);

/* The definition of the JSON text, valid until the next call. NULL: *e has the error. */
const struct job_spec *spec_cache_get(struct spec_cache *c, const char *text, struct err *e);
