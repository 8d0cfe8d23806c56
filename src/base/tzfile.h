/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone files of the system, as bytes; what they mean is decided elsewhere. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

/* Appends the file of a zone below $TZDIR, else the system's directory. The caller has checked the name. */
bool tzfile_read(const char *name, struct buf *out, struct err *e);
