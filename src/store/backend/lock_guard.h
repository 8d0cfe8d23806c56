/* SPDX-License-Identifier: Apache-2.0 */
/* The guard: a process beside the daemon that holds shared locks of its own on the SQLite file. */
#pragma once

/*
 * POSIX locks belong to a process and vanish when it closes any descriptor of the file. If those of the daemon vanish, the locks of
 * the guard still keep other programs from taking the exclusive lock with which SQLite deletes the log, and the guard tells the daemon.
 * Descriptor GUARD_SOCKET is a SOCK_SEQPACKET to the daemon, GUARD_SHARED shares the daemon's file_lock.
 */
#define GUARD_OPTION "--guard-locks"
#define GUARD_SOCKET 3
#define GUARD_SHARED 4

/* Messages. The daemon sends the path of the store once it has opened it. */
#define GUARD_HOLDS 'h'   /* the guard has its locks, and the daemon has its own */
#define GUARD_FAILED 'f'  /* no locks could be taken; the errno follows as text */
#define GUARD_MISSING 'm' /* the daemon's locks are gone */

/* The whole process: returns its exit status when the daemon has ended. */
int lock_guard_main(void);
