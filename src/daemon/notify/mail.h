/* SPDX-License-Identifier: Apache-2.0 */
/* A mail message as sendmail(8) reads it. */
#pragma once
#include "base/clock.h"

struct buf;

struct mail {
	const char *from_user, *from_host; /* characters with a meaning in addresses are replaced */
	const char *to;                    /* checked by policy_notify_parse() */
	const char *subject;               /* one line of UTF-8 */
	const char *id;                    /* unique, and the same for each try */
	const char *text;                  /* UTF-8 */
	usec_t date;
};
void mail_write(const struct mail *m, struct buf *out);
