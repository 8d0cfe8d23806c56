/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: format, resumption, heartbeat. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct request;
struct sd_event_source;

#define SSE_TYPE "text/event-stream"
#define SSE_START "retry: 2000\n\n" /* milliseconds until a browser connects again */

bool sse_wanted(const struct request *r); /* the client accepts an event stream */
/*
 * The number in the Last-Event-ID header; 'preset' without one. *ret_place is the second number of
 * sse_write_at(), 0 if there is none. ERR_INVALID: not numbers.
 */
bool sse_last_id(const struct request *r, int64_t preset, int64_t *ret, int64_t *ret_place /* may be NULL */,
	struct err *e);

/* One message. 'data' has no newline. */
void sse_write(struct buf *out, int64_t id, const char *event, const char *data);
/* ... whose id has two numbers. */
void sse_write_at(struct buf *out, int64_t id, int64_t place, const char *event, const char *data);
/*
 * A JSON string. Invalid UTF-8 becomes U+FFFD. Returns the number of bytes at the end that are the
 * beginning of a character and were left out; 0 with 'last'.
 */
size_t sse_write_text(struct buf *out, const char *data, size_t len, bool last);

/* A comment every 15 seconds, so that proxies and clients see that the stream is alive. */
struct sse_beat {
	struct request *request;
	struct sd_event_source *timer;
	bool due;
};
void sse_beat_start(struct sse_beat *b, struct request *r);
void sse_beat_stop(struct sse_beat *b);
/*
 * For a stream without data: the length of the comment, 0 if it is not due yet, or STREAM_END if
 * the token of the client is not valid any more.
 */
long sse_beat_read(struct sse_beat *b, char *out, size_t max);
