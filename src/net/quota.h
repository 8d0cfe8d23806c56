/* SPDX-License-Identifier: Apache-2.0 */
/* The disk space that a child of jobsched-net may use: granted by its parent in steps, from the budget of the cache. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

/* A packet of the child. */
enum quota_report_kind { QUOTA_MORE, QUOTA_DONE, QUOTA_FAILED };
struct quota_report {
	int64_t kind;     /* enum quota_report_kind */
	int64_t error;    /* enum err_kind of QUOTA_FAILED */
	int64_t bytes;    /* QUOTA_MORE: needed in all; QUOTA_DONE: used */
	char text[512];   /* of the error; NUL-terminated */
};
/* The answer of the parent to QUOTA_MORE: bytes granted in all, or one of these. */
#define QUOTA_FULL (-1)      /* other artifacts are in use; trying again later may work */
#define QUOTA_TOO_LARGE (-2) /* it would not fit if it were alone */
#define QUOTA_OWNER (-3)     /* the owner has its share of the budget in use */

struct quota {
	int fd;                  /* socket to the parent, borrowed; -1: no limit */
	int64_t granted, used;
};

/* Counts bytes that are about to be written. ERR_BUSY: the budget is used up by others. */
bool quota_take(struct quota *q, int64_t bytes, struct err *e);
