/* SPDX-License-Identifier: Apache-2.0 */
/* The short-lived children of jobsched-net: one downloads, copies, unpacks or removes, and reports to its parent. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum child_task {
	CHILD_DOWNLOAD, /* a URL to a file, with network */
	CHILD_COPY,     /* an open file that arrives through a socket, to a file */
	CHILD_UNPACK,   /* a file to a tree, after a look at its sum if one is given */
	CHILD_REMOVE,   /* entries of a directory whose names begin with ".old-" */
	CHILD_TASK_MAX
};

struct child_request {
	enum child_task task;
	const char *url, *sha256; /* an empty sum of CHILD_UNPACK: it was checked before */
	int64_t limit;            /* bytes */
	int64_t timeout;          /* microseconds, of one try */
	int file;                 /* borrowed; CHILD_REMOVE: -1 */
	int other;                /* borrowed; the tree, the socket or the directory; -1: none */
};
/* The control socket carries struct quota_report from the child, and its answers. It is the caller's. */
bool child_start(const struct child_request *o, pid_t *ret_pid, int *ret_control, struct err *e);

/* In the child, after exec: descriptors 3 to 6 are the order, 'file', 'other' and the control socket. */
int child_main(void);
