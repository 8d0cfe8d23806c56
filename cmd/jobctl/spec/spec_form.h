/* SPDX-License-Identifier: Apache-2.0 */
/* Job definitions as editable 'key = value' text. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;
struct job_spec;

/*
 * A line is 'key = value' with a key of job_fields[], 'env.NAME', 'tags.KEY' or 'params.NAME'. A
 * list has one line per member; the command is a JSON array on one line. A value in double quotes
 * is a JSON string. '<<WORD' begins a text of several lines that ends before the line WORD. A key
 * that ends in _b64 has a value in base64. Empty lines and lines that begin with '#' are ignored.
 */

/*
 * Writes the fields that differ from their defaults. Values for which 'secret' is true are masked;
 * NULL: none.
 */
void spec_form_write(const struct job_spec *s, bool (*secret)(const char *pair), struct buf *out);
/* Writes the fields that have their defaults, as comments. */
void spec_form_write_defaults(const struct job_spec *s, struct buf *out);

/* Error messages begin with "line 7: ". */
bool spec_form_read(const char *text, struct job_spec *s /* initialised */, struct err *e);
