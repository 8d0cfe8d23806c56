/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of crontab(1) and at(1) with jobsched-crontab: one request and one reply per connection. */
/*
 *   request   crontab/1 OPERATION LENGTH \n USER \n LABEL \n BODY
 *   reply     crontab/1 STATUS LENGTH \n BODY
 * LENGTH is the number of bytes of BODY in decimal digits. Both sides close their direction of the
 * connection after BODY.
 */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

#define SPOOL_SOCKET "crontab.sock"             /* in the runtime directory */
#define SPOOL_TABLE_MAX (size_t)(4 << 20)       /* bytes of a file */
#define SPOOL_BODY_MAX (SPOOL_TABLE_MAX - 8192) /* bytes of a new table; its file has a header, too */
#define SPOOL_USER_MAX 64
#define SPOOL_LABEL_MAX 1024
#define SPOOL_REQUEST_MAX (SPOOL_TABLE_MAX + SPOOL_USER_MAX + SPOOL_LABEL_MAX + 64)
#define SPOOL_REPLY_MAX (SPOOL_TABLE_MAX + 64)

enum spool_operation {
	SPOOL_ACCESS,    /* may the user have a table? */
	SPOOL_LIST,
	SPOOL_REPLACE,
	SPOOL_REMOVE,
	SPOOL_AT_ACCESS, /* may the caller use at(1)? */
	SPOOL_OPERATION_MAX
};

struct spool_request {
	enum spool_operation operation;
	char user[SPOOL_USER_MAX + 1];   /* the owner of the table; empty: the caller */
	char label[SPOOL_LABEL_MAX + 1]; /* of a new table: the name of the file it comes from */
	const char *body;                /* borrowed: the new table */
	size_t len;
};
void spool_request_write(const struct spool_request *r, struct buf *out);
/* False: the bytes are not a request. 'body' points into them. */
bool spool_request_read(const char *data, size_t len, struct spool_request *ret);

enum spool_status {
	SPOOL_OK,             /* body: the table, for SPOOL_LIST */
	SPOOL_NO_TABLE,
	SPOOL_NOT_ALLOWED,    /* by the allow and deny files */
	SPOOL_NOT_PRIVILEGED, /* only root may name another user */
	SPOOL_UNKNOWN_USER,
	SPOOL_NO_ACCOUNT,     /* the caller's uid has no account */
	SPOOL_INVALID,        /* the request is malformed */
	SPOOL_BUSY,           /* too many requests of this user at a time */
	SPOOL_FAILED,         /* body: the cause */
	SPOOL_STATUS_MAX
};
struct spool_reply {
	enum spool_status status;
	struct buf body;
};
void spool_reply_done(struct spool_reply *r);
void spool_reply_write(const struct spool_reply *r, struct buf *out);
bool spool_reply_read(const char *data, size_t len, struct spool_reply *ret);
/* Sets SPOOL_FAILED with its cause. */
void spool_reply_fail(struct spool_reply *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
