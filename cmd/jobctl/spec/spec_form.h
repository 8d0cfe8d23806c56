/* SPDX-License-Identifier: Apache-2.0 */
/* A job's definition as lines that people read and edit: 'key = value'. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;
struct job_spec;

/*
 * A line is 'key = value' with a key of job_fields[], 'env.NAME', 'tags.KEY' or 'params.NAME'. Lists have a line for each
 * member, but the command is an array of JSON on one line. A value is the rest of its line; one in double quotes is a
 * text of JSON; '<<WORD' means the following lines up to one that is WORD, joined by newlines; behind a key that ends
 * in _b64 it is base64. Empty lines and those that begin with '#' count for nothing.
 */

/* All that differs from the default; nothing of the template. 'secret' tells which pairs to mask; NULL: none. */
void spec_form_write(const struct job_spec *s, bool (*secret)(const char *pair), struct buf *out);
/* The fields with their defaults, as comments: what else can be said. */
void spec_form_write_defaults(const struct job_spec *s, struct buf *out);

/* An error begins with "line 7: ". */
bool spec_form_read(const char *text, struct job_spec *s /* initialised */, struct err *e);
