/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone files of the system, and which of them this machine's users mean by default. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

/* Appends the file of a zone below $TZDIR, else the system's directory. The caller has checked the name. */
bool tzfile_read(const char *name, struct buf *out, struct err *e);

/* The submitter's zone: $TZ, the link at /etc/localtime, /etc/timezone; "UTC" when none says. Caller frees. */
char *tzfile_local_name(void);
