/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for untrusted JSON with limits. */
#pragma once
#include <jansson.h>
#include <stddef.h>

struct err;

#define JSON_DEPTH_MAX 64
#define JSON_MEMBERS_MAX 10000 /* in one request, except bulk requests */

/*
 * Accepts only valid UTF-8 without NUL, without duplicate members, of limited depth and of at most
 * 'max' bytes. NULL: ERR_INVALID or ERR_TOO_LARGE. The caller calls json_decref().
 */
json_t *json_read(const char *text, size_t len, size_t max, struct err *e);

/* The same for untrusted input: members and elements at any depth are counted before parsing. */
json_t *json_read_bounded(const char *text, size_t len, size_t max, size_t members, struct err *e);
