/* SPDX-License-Identifier: Apache-2.0 */
/* The text that /bin/sh reads when an at job runs. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

struct buf;

struct at_script {
	uid_t uid;
	gid_t gid;
	const char *mail_to;
	int mail;                /* 0: if there is output, 1: always, -1: never */
	mode_t umask;
	char *const *env;        /* NAME=value, ends with NULL */
	const char *cwd;
	const char *commands;    /* as typed */
	size_t len;
};
/* In the form of Debian's at, so that 'at -c' prints the same. */
void at_script_write(const struct at_script *s, struct buf *out);
