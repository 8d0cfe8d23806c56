/* SPDX-License-Identifier: Apache-2.0 */
/* Has files opened by a child that is their reader: a job's owner. The file goes to jobsched-net, not through the daemon. */
#pragma once
#include "base/deadline.h"
#include "exec/spawner/user_cache.h"
#include <stdbool.h>
#include <stdint.h>

struct admission;
struct err;
struct open_file;
struct workers;

#define OPEN_FILE_PAYLOAD_MAX 8192

struct open_files {
	struct workers *workers;           /* borrowed, as are the next two */
	const struct admission *admission;
	struct user_cache *users;
	struct deadlines deadlines;        /* of the children */
	struct open_file *waiting;         /* for the user database */
	size_t n;
};
void open_files_done(struct open_files *of);
/*
 * 'payload' is a sealed memfd with the owner's name and the path, each with its NUL; borrowed, as is 'socket', which gets one
 * packet: an errno, and the file if that is 0. False: the payload is invalid.
 */
bool open_files_add(struct open_files *of, int64_t uid, int payload, int socket, struct err *e);
void open_files_user_found(struct open_files *of, uid_t uid, const struct user_answer *a);
void open_files_timeouts(struct open_files *of, usec_t now); /* ends children that took too long */
usec_t open_files_next_timeout(const struct open_files *of);

/* In the child, as the owner: the path from descriptor 0, the packet to descriptor 1. */
int open_file_main(void);
