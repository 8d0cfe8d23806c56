/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock of a daemon on a SQLite file: excludes a second daemon of the same instance and names the
 * first one's socket.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct file_lock;
struct strv;

struct file_lock_options {
	const char *where;     /* the file, resolved (paths_resolve) */
	const char *instance;  /* NULL: the default instance */
	const char *node_name; /* as configured; NULL: derived from the host name */
	const char *node;      /* the name of its row in the store */
	const char *socket;    /* of the daemon's API, absolute */
	bool exclusive;        /* for a restore: no daemon may use the file */
};

/*
 * Takes two locks: flock() on a lock file beside the store, whose content names the owner, and byte
 * ranges of the store's inode, which protect the file under all its names. Both end with the
 * process. The lock must be taken before SQLite opens the file and freed after SQLite has closed
 * it, because closing a descriptor of the file drops SQLite's POSIX locks. ERR_CONFLICT names the
 * socket of the daemon that holds the lock.
 */
bool file_lock_take(const struct file_lock_options *o, struct file_lock **ret, struct err *e);
/* Locks the inode of a file that SQLite has created after file_lock_take(). */
bool file_lock_take_inode(struct file_lock *l, struct err *e);
void file_lock_free(struct file_lock *l);
AUTO_DEFINE(file_lock);

int file_lock_fd(const struct file_lock *l);      /* of the lock file, for a process that shares the lock */
bool file_lock_in_use(const struct file_lock *l); /* another process had the store open when the lock was taken */
/*
 * Spawners of earlier daemons that held this lock and have ended. Constant; any thread may read it.
 */
const struct strv *file_lock_past_spawners(const struct file_lock *l);
void file_lock_note_spawner(struct file_lock *l, const char *spawner);
