/* SPDX-License-Identifier: Apache-2.0 */
/* Data on standard output, in whatever format was asked for. */
#pragma once
#include "jobctl/ctl.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

bool render_format_parse(const char *name, enum format *ret);
const char *render_format_name(enum format f);
bool render_wants_json(const struct ctl *c); /* FORMAT_JSON or FORMAT_JSONL */
bool render_is_text(const struct ctl *c);    /* FORMAT_TABLE or FORMAT_WIDE: text for people */

/* Writes and empties. Ends the program when nobody reads any more (quietly) or the disk is full (not quietly). */
void render_flush(struct buf *b);
int render_text(struct buf *b); /* flushes; 0 */

/* Control characters, C1 and bidi controls as \uXXXX; 'flags' of jansson. */
void render_json(const json_t *j, size_t flags, struct buf *out);
/* One object, as FORMAT_JSON (indented) or FORMAT_JSONL. */
int render_object(const struct ctl *c, const json_t *j);
