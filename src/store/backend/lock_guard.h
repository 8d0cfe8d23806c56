/* SPDX-License-Identifier: Apache-2.0 */
/* The lock guard: a process that holds shared locks on the SQLite file beside the daemon. */
#pragma once

/*
 * POSIX locks belong to a process and are dropped when it closes any descriptor of the file. If the
 * daemon loses its locks, those of the guard still keep other programs from taking the exclusive
 * lock under which SQLite deletes the WAL, and the guard reports the loss to the daemon. Descriptor
 * GUARD_SOCKET is a SOCK_SEQPACKET socket to the daemon. GUARD_SHARED is the descriptor of the
 * daemon's file_lock.
 */
#define GUARD_OPTION "--guard-locks"
#define GUARD_SOCKET 3
#define GUARD_SHARED 4

/* Messages. The daemon sends the path of the store after opening it. */
#define GUARD_HOLDS 'h'   /* the guard and the daemon have their locks */
#define GUARD_FAILED 'f'  /* the guard could not take its locks; the errno follows as text */
#define GUARD_MISSING 'm' /* the daemon has lost its locks */

/* The main function of the process. Returns its exit status when the daemon has ended. */
int lock_guard_main(void);
