/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the time zone files of the system; core/time/zone.h interprets them. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

/*
 * Appends the file of a zone below $TZDIR, else the system's directory. The caller has checked the
 * name.
 */
bool tzfile_read(const char *name, struct buf *out, struct err *e);
