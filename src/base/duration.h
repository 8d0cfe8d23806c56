/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as text: 90s, 15m, 1h30m, 2d, 500ms, or ISO 8601 without months and years. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;

bool duration_parse(const char *s, usec_t *ret, struct err *e); /* more than 0, at most 100 years */

#define DURATION_TEXT_MAX 40
char *duration_format(usec_t d, char out[DURATION_TEXT_MAX]); /* 1h30m, in the syntax of duration_parse() */
