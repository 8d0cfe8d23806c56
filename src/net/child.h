/* SPDX-License-Identifier: Apache-2.0 */
/* Short-lived child processes of jobsched-net, one per task. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct aws_keys;
struct err;

enum child_task {
	CHILD_DOWNLOAD, /* a URL to a file, with network */
	CHILD_COPY,     /* an open file, received through a socket, to a file */
	CHILD_UNPACK,   /* a file to a tree; verifies the SHA-256 first if one is given */
	CHILD_REMOVE,   /* entries of a directory whose names begin with ".old-" */
	CHILD_TASK_MAX
};

struct child_request {
	enum child_task task;
	const char *url, *sha256; /* empty for CHILD_UNPACK: already verified */
	const char *s3_url, *s3_region; /* of CHILD_DOWNLOAD from S3-compatible storage; NULL otherwise */
	const struct aws_keys *keys;    /* for it; borrowed */
	int64_t limit;            /* bytes */
	int64_t timeout;          /* microseconds, of one try */
	int file;                 /* borrowed; CHILD_REMOVE: -1 */
	int other;                /* borrowed; tree, socket or directory; -1: none */
};
/*
 * The control socket carries struct quota_report from the child and the answers to it. The caller
 * owns it.
 */
bool child_start(const struct child_request *o, pid_t *ret_pid, int *ret_control, struct err *e);

/*
 * The main function of the child: descriptors 3 to 6 are the request, 'file', 'other' and the
 * control socket.
 */
int child_main(void);
