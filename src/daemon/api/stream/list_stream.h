/* SPDX-License-Identifier: Apache-2.0 */
/* Streams a long list from the store page by page. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct request;
struct store;

/* rows read at a time; a list of one step has an ETag over TCP */
#define LIST_STEP 128
/* a step ends after the row that reaches this size, to limit the memory per client */
#define LIST_BYTES (256 * 1024)

struct list_stream {
	const char *name;   /* name of the JSON member: "jobs" or "runs" */
	/*
	 * Runs on the reader thread. Writes up to n rows after the cursor, up to about LIST_BYTES,
	 * each after list_stream_comma(). Moves the cursor; returns the number of rows, and whether
	 * there may be more.
	 */
	bool (*step)(struct store *s, struct list_stream *l, size_t n, struct buf *out,
		size_t *ret_n, bool *ret_more, struct err *e);
	void (*free)(struct list_stream *l);
	int64_t scope;
	int64_t cursor;     /* the last row written; 0: none */
	char *place;        /* owned: the cursor of a list that is not ordered by number; NULL: 'cursor' */
	size_t left, rows;  /* rows still requested; rows written */
	bool begun, ended, failed;
};

void list_stream_answer(struct request *r, struct list_stream *l /* moved */);
void list_stream_comma(struct list_stream *l, struct buf *out);
bool list_stream_cursor(const struct request *r, int64_t *ret, struct err *e);
