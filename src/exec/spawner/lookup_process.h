/* SPDX-License-Identifier: Apache-2.0 */
/* User lookup in a separate process. An NSS module that hangs, leaks or crashes does not affect the spawner. */
#pragma once
#include "exec/child/user.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;

#define LOOKUP_TIMEOUT (5 * USEC_SEC)
#define LOOKUP_ERROR_MAX 256

#define LOOKUP_MAGIC UINT32_C(0x6b6f6c6a) /* "jlok" */
#define LOOKUP_FOUND (-1)

/* The answer of the process; a shorter one is invalid. */
struct lookup_answer {
	uint32_t magic;
	int32_t failure;             /* enum start_failure, or LOOKUP_FOUND */
	char error[LOOKUP_ERROR_MAX];
	struct user user;
};

/*
 * The main function of the lookup process: 'whom' is a name or a uid in digits. Returns the exit
 * status.
 */
int lookup_main(const char *whom, bool pam);

/*
 * Starts a process that writes its answer to *ret_fd. The caller reaps it and owns the descriptor.
 * 0, or -errno.
 */
struct lookup_request {
	const char *whom;
	bool pam;                    /* also call the PAM account check */
};
int lookup_process_start(const struct lookup_request *l, pid_t *ret_pid, int *ret_fd);
bool lookup_process_answer_valid(const struct lookup_answer *a);

/* Starts the process and waits for its answer; for use before the loop runs. */
bool lookup_process_wait(const struct lookup_request *l, struct user *ret, struct err *e);
