/* SPDX-License-Identifier: Apache-2.0 */
/* The user of a worker: uid, groups, home directory and shell. */
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
	bool unnamed;                /* the spawner's own user in user mode; its name is not compared */
	char name[USER_NAME_MAX];
	char home[USER_PATH_MAX];    /* absolute; "/" if the user database has none */
	char shell[USER_PATH_MAX];
	gid_t groups[USER_GROUPS_MAX]; /* groups_n entries, sorted; includes 'gid' */
};

/* Reads the user database, which can block for a long time. START_TRANSIENT: no answer; the user may exist. */
bool user_lookup(uid_t uid, struct user *ret, enum start_failure *why, struct err *e);
void user_lookup_self(struct user *ret); /* the effective user; its uid is the name if it has none */
