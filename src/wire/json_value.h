/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values: strings, times, durations. */
#pragma once
#include <jansson.h>
#include <stdint.h>

struct buf;

/* A string; NULL gives null, and bytes that are not UTF-8 are escaped. */
json_t *json_value_text(const char *s);
json_t *json_value_time(int64_t t /* usec_t; 0 gives null */);
json_t *json_value_seconds(int64_t d /* usec_t */);

void json_value_write_text(struct buf *out, const char *s, size_t len);
/* Compact, with sorted members: equal values give equal texts. NULL: nothing is written. */
void json_value_write(const json_t *j, struct buf *out);
