/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads a batch of objects, several at a time. */
#pragma once
#include "base/auto.h"

struct archive_batch;
struct archive_upload;
struct err;
struct s3_client;

/* 'e' is NULL if the storage has confirmed every object. */
typedef void archive_upload_fn(const struct err *e, void *arg);
struct archive_upload_options {
	struct s3_client *s3;              /* borrowed */
	const struct archive_batch *batch; /* borrowed until the callback; not empty */
	int output_dir;
	archive_upload_fn *fn;             /* never called from inside archive_upload_new() */
	void *arg;
};
struct archive_upload *archive_upload_new(const struct archive_upload_options *o, struct err *e); /* NULL: see *e */
void archive_upload_free(struct archive_upload *u); /* without the callback; NULL is fine */
AUTO_DEFINE(archive_upload);
