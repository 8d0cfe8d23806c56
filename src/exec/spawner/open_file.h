/* SPDX-License-Identifier: Apache-2.0 */
/* Children that run as the owner of a job: they open a file for jobsched-net, or pack or unpack the state of a run. */
#pragma once
#include "base/deadline.h"
#include "exec/spawner/user_cache.h"
#include <stdbool.h>
#include <stdint.h>

struct admission;
struct err;
struct frame_state;
struct open_file;
struct workers;

#define OPEN_FILE_PAYLOAD_MAX 8192

struct open_files {
	struct workers *workers;           /* borrowed, as are the next two */
	const struct admission *admission;
	struct user_cache *users;
	struct deadlines deadlines;        /* of running children */
	struct open_file *waiting;         /* waiting for a user lookup */
	size_t n;
};
void open_files_done(struct open_files *of);
/*
 * 'payload' is a sealed memfd with the owner's name and the path, each NUL-terminated. 'socket'
 * gets one packet: an errno, with the descriptor of the file if it is 0. Both are borrowed. False:
 * the payload is invalid.
 */
bool open_files_add(struct open_files *of, int64_t uid, int payload, int socket, struct err *e);
/*
 * 'data' is the memory file of the archive. 'socket' gets a struct run_state_report. Both are borrowed.
 * False: the request is invalid.
 */
bool open_files_add_state(struct open_files *of, const struct frame_state *s, int data, int socket, struct err *e);
void open_files_user_found(struct open_files *of, uid_t uid, const struct user_answer *a);
void open_files_timeouts(struct open_files *of, usec_t now); /* kills children that took too long */
usec_t open_files_next_timeout(const struct open_files *of);

/*
 * The main function of the child: reads the path from descriptor 0, sends the packet to descriptor
 * 1.
 */
int open_file_main(void);
