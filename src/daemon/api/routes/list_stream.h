/* SPDX-License-Identifier: Apache-2.0 */
/* A long list as an answer: read from the store in small steps, as fast as the client takes it. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct request;
struct store;

#define LIST_STEP 32               /* rows read at a time */
#define LIST_BYTES (256 * 1024)    /* a step ends with the row that reaches this: bounds the memory of one client */

struct list_stream {
	const char *name;   /* of the member: "jobs" or "runs" */
	/*
	 * Reader's thread: writes up to n rows after the cursor, about LIST_BYTES of them, each behind list_stream_comma(),
	 * moves the cursor and returns how many they were and whether more may follow.
	 */
	bool (*step)(struct store *s, struct list_stream *l, size_t n, struct buf *out, size_t *ret_n, bool *ret_more,
		struct err *e);
	void (*free)(struct list_stream *l);
	int64_t scope;
	int64_t cursor;     /* of the last row written; 0: from the start */
	size_t left, rows;  /* still wanted; written so far */
	bool begun, ended, failed;
};

void list_stream_answer(struct request *r, struct list_stream *l /* moved */);
void list_stream_comma(struct list_stream *l, struct buf *out);
bool list_stream_cursor(const struct request *r, int64_t *ret, struct err *e);
