/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VFS of SQLite that writes the frames of a transaction to the WAL with one system call.
 *
 * SQLite appends to the WAL with two small writes per page. This file gathers writes that follow each other and writes them
 * together. The last frame of a transaction, which is marked in its header, is written at once, and every other use of the
 * file writes the gathered bytes first. So the file has the whole transaction before SQLite publishes it to readers, and
 * SQLite gets a write error before the transaction has ended.
 */
#include "store/backend/sqlite_wal_file.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATHER_MAX (128 * 1024)
#define FRAME_HEAD 24 /* the header of a frame; bytes 4 to 7 are not 0 in the last frame of a transaction */

/* An open WAL. SQLite allocates it and calls it from one thread at a time. */
struct wal_file {
	sqlite3_file base;
	sqlite3_file *real;  /* follows this struct */
	char *gathered;      /* owned; NULL: nothing was written yet */
	size_t n;
	sqlite3_int64 at;    /* the offset of the gathered bytes */
	bool last;           /* the next write is the page of the last frame of a transaction */
};

struct wal_vfs {
	sqlite3_vfs base;
	sqlite3_vfs *real;
	char name[48];
};

static struct wal_file *wal_of(sqlite3_file *f)
{
	return (struct wal_file *)f;
}

/* The gathered bytes are dropped also if the write fails. SQLite then writes them again, or undoes the transaction. */
static int wal_flush(struct wal_file *w)
{
	size_t n = w->n;

	w->n = 0;
	return n ? w->real->pMethods->xWrite(w->real, w->gathered, (int)n, w->at) : SQLITE_OK;
}

static bool ends_transaction(const char *head, size_t len)
{
	return len == FRAME_HEAD && (head[4] || head[5] || head[6] || head[7]);
}

static int wal_write(sqlite3_file *f, const void *data, int len, sqlite3_int64 at)
{
	struct wal_file *w = wal_of(f);
	bool last = w->last;
	int rc = SQLITE_OK;

	if (w->n && (at != w->at + (sqlite3_int64)w->n || w->n + (size_t)len > GATHER_MAX))
		rc = wal_flush(w);
	w->last = ends_transaction(data, (size_t)len);
	if (rc != SQLITE_OK)
		return rc;
	if (len > GATHER_MAX)
		return w->real->pMethods->xWrite(w->real, data, len, at);
	if (!w->gathered)
		w->gathered = xcalloc(1, GATHER_MAX);
	if (w->n == 0)
		w->at = at;
	memcpy(w->gathered + w->n, data, (size_t)len);
	w->n += (size_t)len;
	return last ? wal_flush(w) : SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *data, int len, sqlite3_int64 at)
{
	int rc = wal_flush(wal_of(f));

	return rc != SQLITE_OK ? rc : wal_of(f)->real->pMethods->xRead(wal_of(f)->real, data, len, at);
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = wal_flush(wal_of(f));

	return rc != SQLITE_OK ? rc : wal_of(f)->real->pMethods->xTruncate(wal_of(f)->real, size);
}

static int wal_sync(sqlite3_file *f, int flags)
{
	int rc = wal_flush(wal_of(f));

	return rc != SQLITE_OK ? rc : wal_of(f)->real->pMethods->xSync(wal_of(f)->real, flags);
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	int rc = wal_flush(wal_of(f));

	return rc != SQLITE_OK ? rc : wal_of(f)->real->pMethods->xFileSize(wal_of(f)->real, ret);
}

static int wal_control(sqlite3_file *f, int op, void *arg)
{
	return wal_of(f)->real->pMethods->xFileControl(wal_of(f)->real, op, arg);
}

static int wal_sector_size(sqlite3_file *f)
{
	return wal_of(f)->real->pMethods->xSectorSize(wal_of(f)->real);
}

static int wal_characteristics(sqlite3_file *f)
{
	return wal_of(f)->real->pMethods->xDeviceCharacteristics(wal_of(f)->real);
}

/* Gathered bytes are dropped: they belong to a transaction that was not completed. */
static int wal_close(sqlite3_file *f)
{
	struct wal_file *w = wal_of(f);
	int rc = w->real->pMethods->xClose(w->real);

	free(w->gathered);
	w->gathered = NULL;
	return rc;
}

/* A WAL is never locked; the locks are those of the database and of the shared memory. */
static int wal_lock(sqlite3_file *f, int level)
{
	(void)f;
	(void)level;
	return SQLITE_OK;
}

static int wal_reserved(sqlite3_file *f, int *ret)
{
	(void)f;
	*ret = 0;
	return SQLITE_OK;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	static const sqlite3_io_methods methods = {
		.iVersion = 1,
		.xClose = wal_close,
		.xRead = wal_read,
		.xWrite = wal_write,
		.xTruncate = wal_truncate,
		.xSync = wal_sync,
		.xFileSize = wal_size,
		.xLock = wal_lock,
		.xUnlock = wal_lock,
		.xCheckReservedLock = wal_reserved,
		.xFileControl = wal_control,
		.xSectorSize = wal_sector_size,
		.xDeviceCharacteristics = wal_characteristics,
	};
	sqlite3_vfs *real = ((struct wal_vfs *)vfs)->real;
	struct wal_file *w = wal_of(f);
	int rc;

	if (!(flags & SQLITE_OPEN_WAL))
		return real->xOpen(real, name, f, flags, ret_flags);
	*w = (struct wal_file){.real = (sqlite3_file *)(w + 1)};
	rc = real->xOpen(real, name, w->real, flags, ret_flags);
	if (rc == SQLITE_OK)
		w->base.pMethods = &methods;
	return rc;
}

/* SQLite finds a VFS by its name. */
sqlite3_vfs *sqlite_wal_file_vfs_new(void)
{
	struct wal_vfs *v = xcalloc(1, sizeof(*v));

	v->real = sqlite3_vfs_find(NULL);
	v->base = *v->real;
	v->base.szOsFile += (int)sizeof(struct wal_file);
	v->base.pNext = NULL;
	v->base.xOpen = open_file;
	snprintf(v->name, sizeof(v->name), "jobsched-%p", (void *)v);
	v->base.zName = v->name;
	if (sqlite3_vfs_register(&v->base, 0) != SQLITE_OK)
		abort(); /* no memory */
	return &v->base;
}

void sqlite_wal_file_vfs_free(sqlite3_vfs *vfs)
{
	if (!vfs)
		return;
	sqlite3_vfs_unregister(vfs);
	free(vfs);
}
