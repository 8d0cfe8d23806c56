/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: a kind, a message and the input field at fault. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum err_kind {
	ERR_NONE,
	ERR_INVALID,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_DENIED,
	ERR_UNAUTHENTICATED, /* no valid token or session */
	ERR_LIMIT,
	ERR_TOO_LARGE,
	ERR_BUSY,        /* nothing was changed; a retry may succeed */
	ERR_FULL,        /* no space left; nothing was changed */
	ERR_FENCED,      /* another node holds the lease */
	ERR_UNCERTAIN,   /* the write may or may not have happened */
	ERR_UNREACHABLE, /* the other process does not answer */
	ERR_REFUSED,     /* the store is corrupt, not a store of jobsched, or of a newer version */
	ERR_INTERNAL,
	ERR_KIND_MAX
};

struct err {
	enum err_kind kind;
	char field[64];  /* the input member at fault, or empty */
	char msg[512];
};

struct err_kind_info {
	const char *code; /* in JSON */
	int http;
	int exit_code;    /* of jobctl */
};

const struct err_kind_info *err_kind_info(enum err_kind kind);
enum err_kind err_kind_from_code(const char *code); /* ERR_INTERNAL when unknown */

/* All of these return false, so that they can end a function. 'e' may be NULL. */
bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool err_field(struct err *e, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* ERR_INVALID with its field */
bool err_errno(struct err *e, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* appends ": strerror"; ENOSPC and EDQUOT are ERR_FULL */
bool err_wrap(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* puts "fmt: " before the message */
