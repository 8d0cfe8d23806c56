/* SPDX-License-Identifier: Apache-2.0 */
/* The files cron.allow, cron.deny, at.allow and at.deny. */
#pragma once
#include <stdbool.h>

struct err;

struct access_list {
	const char *allow, *deny; /* paths */
	bool none;                /* the answer if neither file exists */
};
/*
 * With an allow file only the users in it are allowed; without one, all users but those in the deny
 * file. False with an error: a file cannot be read.
 */
bool access_list_permits(const struct access_list *l, const char *user, struct err *e);
