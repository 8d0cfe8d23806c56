/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the user database in a process of its own: modules that hang, leak or crash do so there, not in the spawner. */
#pragma once
#include "exec/child/user.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;

#define LOOKUP_TIMEOUT (5 * USEC_SEC)
#define LOOKUP_ERROR_MAX 256

#define LOOKUP_MAGIC UINT32_C(0x6b6f6c6a) /* "jlok" */
#define LOOKUP_FOUND (-1)

/* What the process writes, whole or not at all. */
struct lookup_answer {
	uint32_t magic;
	int32_t failure;             /* enum start_failure; or LOOKUP_FOUND */
	char error[LOOKUP_ERROR_MAX];
	struct user user;
};

/* In that process: NAME or UID in digits; its exit status. */
int lookup_main(const char *whom, bool pam);

/* Its parent: a process that answers through *ret_fd, both the caller's. 0, or -errno. */
struct lookup_request {
	const char *whom;
	bool pam;                    /* PAM's account check, too */
};
int lookup_process_start(const struct lookup_request *l, pid_t *ret_pid, int *ret_fd);
bool lookup_process_answer_valid(const struct lookup_answer *a);

/* The whole of it, waiting; for before the loop begins. */
bool lookup_process_wait(const struct lookup_request *l, struct user *ret, struct err *e);
