/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer, always followed by a NUL byte that is not counted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* NULL while empty */
	size_t len, cap;
};

void buf_done(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
char *buf_steal(struct buf *b); /* caller frees; "" when nothing was written */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buf_room(struct buf *b, size_t len); /* at least len writable bytes after the end */

/*
 * JSON, for the array parameters of SQL statements. Strings are escaped; their encoding is not
 * checked.
 */
void buf_json_str(struct buf *b, const char *s);              /* "quoted", or null for NULL */
void buf_json_int(struct buf *b, int64_t n);

void buf_base64(struct buf *b, const void *data, size_t len);
bool buf_base64_decode(const char *text, size_t len, struct buf *out); /* false: not canonical base64 */
