/* SPDX-License-Identifier: Apache-2.0 */
/* Reads archived runs and output from a local directory. The functions block. */
#pragma once
#include "daemon/archive/archive_query.h"

struct archive_read_request;
struct err;

/*
 * Finds the next runs, in the order in which they were archived. Examines at most LOCAL_BYTES; if that was not enough, the page has
 * fewer runs, perhaps none, and a cursor.
 */
#define LOCAL_BYTES ((size_t)16 << 20)
bool archive_local_search(const char *dir, const struct archive_query *q, struct archive_page *ret, struct err *e);
bool archive_local_output(const char *dir, const struct archive_read_request *o, struct buf *ret, struct err *e);
