/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests for user tables with the rights of root. */
#pragma once
#include "spool/access_list.h"
#include <stddef.h>
#include <sys/types.h>

struct spool_reply;

/* The default paths are those of the cron and at of the distribution: see --with-crontab-mode. */
struct spool_service {
	const char *dir;           /* of the tables */
	const char *group;         /* of the files; the group of root if there is none */
	struct access_list cron, at;
};
#define SPOOL_SERVICE_DEFAULT                                                                      \
	{                                                                                          \
		.dir = CRONTAB_SPOOL, .group = "crontab",                                          \
		.cron = {"/etc/cron.allow", "/etc/cron.deny", true},                               \
		.at = {"/etc/at.allow", "/etc/at.deny", false},                                    \
	}

/*
 * Checks and executes a request of this caller. It uses the user database, so it must run in a
 * process that serves one caller.
 */
void spool_service_answer(const struct spool_service *s, uid_t caller, const char *data, size_t len,
	struct spool_reply *ret);
