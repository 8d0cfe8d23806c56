/* SPDX-License-Identifier: Apache-2.0 */
/* A line on the terminal that shows the progress of a long operation. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdint.h>

struct buf;
struct progress;

/*
 * Shows the line after one second and updates it twice a second, on standard error. NULL: standard
 * error is not a terminal; all functions accept that.
 */
struct progress *progress_new(const char *what /* "checking the store" */);
/* Bytes so far and in all; 'total' 0: not known. Without a call only the time is shown. */
void progress_set(struct progress *p, int64_t done, int64_t total);
void progress_free(struct progress *p); /* removes the line */
AUTO_DEFINE(progress);

/* Appends the text of the line. */
void progress_text(const char *what, usec_t elapsed, int64_t done, int64_t total, struct buf *out);
