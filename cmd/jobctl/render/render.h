/* SPDX-License-Identifier: Apache-2.0 */
/* Output of text or objects in the selected format. */
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

/*
 * Writes the buffer to standard output and empties it. On an error jobctl exits: without a message
 * if the reader has closed the pipe, else with one.
 */
void render_flush(struct buf *b);
int render_text(struct buf *b); /* render_flush(); returns EXIT_SUCCESS */

/*
 * Control characters (C0, C1 and bidirectional ones) are written as \uXXXX. 'flags' are those of
 * jansson.
 */
void render_json(const json_t *j, size_t flags, struct buf *out);
/* Writes one object as FORMAT_JSON (indented) or FORMAT_JSONL; returns EXIT_SUCCESS. */
int render_object(const struct ctl *c, const json_t *j);
