/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a run: pairs KEY=VALUE that its command wrote. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct strv;

#define RESULTS_MAX 32
#define RESULT_KEY_MAX 48           /* bytes */
#define RESULT_VALUE_MAX 1024       /* bytes */
#define RESULTS_BYTES_MAX (16 << 10) /* of the text that is read */

/* Whether 'len' bytes are a key: a letter or '_', then letters, digits and '_'. */
bool result_key_valid(const char *key, size_t len);
/*
 * Reads lines KEY=VALUE; the value is UTF-8 without control characters. Empty lines are skipped. The
 * last line of a key counts. Other lines are left out, and the first of these is described in *ret_note
 * (owned; NULL: there is none).
 */
void results_parse(const char *text, size_t len, struct strv *ret, char **ret_note);
