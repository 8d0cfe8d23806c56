/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends on disk. An end that the daemon has not acknowledged for a second (its store is away, or the daemon is) is written to the file
 * 'ends' in the output directory, so that it survives a power cut. The file is removed when all ends in it are acknowledged. The next
 * spawner reports what it finds there; the daemon knows by run and fence an end that it has recorded before.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct worker;
struct workers;

#define ENDS_MAX 65536                /* ends in the file; the spawner knows no more workers at a time */
#define ENDS_SPOOL_AFTER (USEC_SEC)   /* an end is written when it was not acknowledged for that long */

/* ---- the file ---- */
void ends_file_add(struct buf *to, const struct worker *w);
int ends_file_write(int dir, const struct buf *frames); /* 0 or -errno; replaces the file as a whole. No frames: removes it */
bool ends_file_exists(int dir);
void ends_file_save(struct workers *ws); /* all that is not acknowledged, when the spawner stops */
void ends_file_load(struct workers *ws); /* what an earlier spawner left; the file stays until that is acknowledged */

/* ---- ends_spool.c: when it is written ---- */
void ends_spool_note(struct worker *w);              /* it has just ended */
void ends_spool_forget(struct worker *w);            /* it was acknowledged */
void ends_spool_resume(struct workers *ws);          /* with a file, or with ends, of an earlier spawner or program */
void ends_spool_run_due(struct workers *ws, usec_t now);
usec_t ends_spool_next_due(const struct workers *ws);    /* boottime of the next turn that is needed */
void ends_spool_stop(struct workers *ws, bool wait); /* kills the process that writes; 'wait' for its end */
int ends_spool_main(void);                           /* that process: frames in descriptor 0, the directory in 3, the result to 1 */
