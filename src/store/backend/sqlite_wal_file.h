/* SPDX-License-Identifier: Apache-2.0 */
/* A VFS of SQLite that writes the frames of a transaction to the WAL with one system call. */
#pragma once
#include <sqlite3.h>

sqlite3_vfs *sqlite_wal_file_vfs_new(void);        /* for one connection; its name is unique in the process */
void sqlite_wal_file_vfs_free(sqlite3_vfs *vfs);   /* after the connection was closed */
