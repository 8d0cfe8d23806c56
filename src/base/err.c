/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error kinds; formats messages. */
#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_kind_info kinds[ERR_KIND_MAX] = {
	/* kind                 code            HTTP  exit */
	[ERR_NONE] =        {"ok",           200, 0},
	[ERR_INVALID] =     {"invalid",      400, 2},
	[ERR_NOT_FOUND] =   {"not_found",    404, 3},
	[ERR_CONFLICT] =    {"conflict",     409, 6},
	[ERR_DENIED] =      {"denied",       403, 4},
	[ERR_UNAUTHENTICATED] = {"unauthenticated", 401, 4},
	[ERR_LIMIT] =       {"limit",        429, 7},
	[ERR_TOO_LARGE] =   {"too_large",    413, 2},
	[ERR_BUSY] =        {"busy",         503, 1},
	[ERR_FULL] =        {"store_full",   507, 1},
	[ERR_FENCED] =      {"fenced",       503, 1},
	[ERR_UNCERTAIN] =   {"uncertain",    504, 1},
	[ERR_UNREACHABLE] = {"unreachable",  502, 5},
	[ERR_REFUSED] =     {"refused",      500, 1},
	[ERR_INTERNAL] =    {"internal",     500, 1},
};

const struct err_kind_info *err_kind_info(enum err_kind kind)
{
	return &kinds[kind < ERR_KIND_MAX ? kind : ERR_INTERNAL];
}

enum err_kind err_kind_from_code(const char *code)
{
	for (int k = 0; k < ERR_KIND_MAX; k++)
		if (strcmp(kinds[k].code, code) == 0)
			return (enum err_kind)k;
	return ERR_INTERNAL;
}

__attribute__((format(printf, 4, 0)))
static void set_v(struct err *e, enum err_kind kind, const char *field, const char *fmt, va_list ap)
{
	char msg[sizeof(e->msg)]; /* the arguments may point into e itself */

	vsnprintf(msg, sizeof(msg), fmt, ap);
	e->kind = kind;
	snprintf(e->field, sizeof(e->field), "%s", field);
	memcpy(e->msg, msg, sizeof(msg));
}

bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return false;
	va_start(ap, fmt);
	set_v(e, kind, "", fmt, ap);
	va_end(ap);
	return false;
}

bool err_field(struct err *e, const char *field, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return false;
	va_start(ap, fmt);
	set_v(e, ERR_INVALID, field, fmt, ap);
	va_end(ap);
	return false;
}

bool err_errno(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;
	bool full = errnum == ENOSPC || errnum == EDQUOT;
	size_t len;

	if (!e)
		return false;
	va_start(ap, fmt);
	set_v(e, full ? ERR_FULL : ERR_INTERNAL, "", fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", strerror(errnum));
	return false;
}

bool err_wrap(struct err *e, const char *fmt, ...)
{
	char before[sizeof(e->msg)], after[sizeof(e->msg)];
	va_list ap;
	int len;

	if (!e)
		return false;
	va_start(ap, fmt);
	vsnprintf(before, sizeof(before), fmt, ap);
	va_end(ap);
	memcpy(after, e->msg, sizeof(after));
	len = snprintf(e->msg, sizeof(e->msg), "%s: ", before);
	if (len >= 0 && (size_t)len < sizeof(e->msg))
		snprintf(e->msg + len, sizeof(e->msg) - (size_t)len, "%s", after);
	return false;
}
