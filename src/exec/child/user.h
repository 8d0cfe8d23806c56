/* SPDX-License-Identifier: Apache-2.0 */
/* The user of a worker. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define USER_NAME_MAX 256
#define USER_PATH_MAX 4096
#define USER_GROUPS_MAX 4096

struct user {
	uid_t uid;
	gid_t gid;
	uint32_t groups_n;
	/* the spawner's own user in user mode; its name is not compared */
	bool unnamed;
	char name[USER_NAME_MAX];
	char home[USER_PATH_MAX];    /* absolute; "/" if the user database has none */
	char shell[USER_PATH_MAX];
	gid_t groups[USER_GROUPS_MAX]; /* groups_n entries, sorted; includes 'gid' */
};
