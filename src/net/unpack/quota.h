/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space of a child of jobsched-net, granted by its parent in steps from the budget of the cache. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

/* A packet from the child. */
enum quota_report_kind { QUOTA_MORE, QUOTA_DONE, QUOTA_FAILED };
struct quota_report {
	int64_t kind;     /* enum quota_report_kind */
	int64_t error;    /* enum err_kind of QUOTA_FAILED */
	int64_t bytes;    /* QUOTA_MORE: needed in total; QUOTA_DONE: used */
	char text[512];   /* of the error; NUL-terminated */
};
/* The answer of the parent to QUOTA_MORE: bytes granted in total, or one of these. */
#define QUOTA_FULL (-1)      /* other artifacts are in use; a later retry may succeed */
#define QUOTA_TOO_LARGE (-2) /* it does not fit even into an empty cache */
#define QUOTA_OWNER (-3)     /* the owner uses its share of the budget */

struct quota {
	int fd;                  /* socket to the parent, borrowed; -1: no limit */
	int64_t granted, used;
};

/* Counts bytes before they are written. ERR_BUSY: other artifacts use up the budget. */
bool quota_take(struct quota *q, int64_t bytes, struct err *e);
