/* SPDX-License-Identifier: Apache-2.0 */
/* Reads archived runs and output from S3-compatible storage. */
#pragma once
#include "daemon/archive/archive_query.h"

struct archive_search;
struct err;
struct s3_client;

/* 'e' is NULL on success. The page is borrowed. */
typedef void archive_search_fn(const struct archive_page *p, const struct err *e, void *arg);
/*
 * Finds the next runs, oldest slot first. Lists at most SEARCH_KEYS names; if that was not enough, the page has fewer runs, perhaps none,
 * and a cursor. It ends within the timeouts of its requests.
 */
#define SEARCH_KEYS 5000
void archive_search_start(struct s3_client *s3, struct archive_query *q /* moved */, archive_search_fn *fn, void *arg);

struct archive_read_request {
	const char *name;   /* 'archived_as' of the run; copied */
	int64_t scope;
	int64_t attempt;    /* 0: the newest */
	int64_t from, length;
};
/* 'e' is NULL on success; the bytes are borrowed. */
typedef void archive_read_fn(const char *data, size_t len, const struct err *e, void *arg);
void archive_read_output(struct s3_client *s3, const struct archive_read_request *o, archive_read_fn *fn, void *arg);
