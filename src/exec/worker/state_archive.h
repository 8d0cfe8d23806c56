/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks the directory that the attempts of a run share. */
#pragma once
#include "exec/proto/run_state.h"
#include <stddef.h>

/*
 * The archive is a sequence of entries without padding: a letter, then mode (4 bytes), length of the
 * name (2), length of the content (8), time of the last change (8), name, content.
 *   D  a directory, its entries follow until E     F  a regular file
 *   L  a symbolic link, the content is its target  E  the end of the directory, or of the archive
 * Numbers have the byte order of the machine.
 */

/* 0 or -errno. 'dir' is the directory, 'file' a file of at least 'limit' bytes. */
int state_archive_pack(int dir, int file, int64_t limit, struct run_state_report *ret);
/* -EBADMSG: the archive is damaged. Links are created, but never followed. */
int state_archive_unpack(int dir, int file, enum run_state_verb verb);

/*
 * The main function of the process: directory at descriptor 0, socket for the report at 1, memory file
 * at 3. 'verb' is "pack", "fill" or "replace".
 */
int state_archive_main(const char *verb);
