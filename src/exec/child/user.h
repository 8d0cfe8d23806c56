/* SPDX-License-Identifier: Apache-2.0 */
/* A user as the user database has it: who a worker becomes. */
#pragma once
#include "core/job/start_plan.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define USER_NAME_MAX 256
#define USER_PATH_MAX 4096
#define USER_GROUPS_MAX 4096

struct user {
	uid_t uid;
	gid_t gid;
	uint32_t groups_n;
	bool unnamed;                /* our own, of one user's spawner: what it is called does not matter */
	char name[USER_NAME_MAX];
	char home[USER_PATH_MAX];    /* absolute; "/" when the database has none */
	char shell[USER_PATH_MAX];
	gid_t groups[USER_GROUPS_MAX]; /* the first groups_n, its own among them */
};

/*
 * Asks the user database, which may take long. START_TRANSIENT: it did not answer, which does not mean that there is
 * no such user.
 */
bool user_lookup(uid_t uid, struct user *ret, enum start_failure *why, struct err *e);
void user_lookup_self(struct user *ret); /* who we are, with the number for a name where there is none */
