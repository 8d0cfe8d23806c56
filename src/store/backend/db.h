/* SPDX-License-Identifier: Apache-2.0 */
/* Statements on an engine: bind, step, read columns; one interface, SQLite and PostgreSQL behind it. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct strv;

enum db_type { DB_INT, DB_TEXT, DB_JSON };

/* The tables that the generator makes of the .sql files. */
struct db_field {
	const char *name;
	enum db_type type;
};
struct db_query {
	const char *name, *sql;
	const struct db_field *params;
	int n_params;
	const struct db_field *columns;
	int n_columns;
};
struct db_sql {
	const struct db_query *queries;
	int n_queries;
	const char *const *migrations; /* number 1 is the first */
	int n_migrations;
	const char *const *texts;
};

struct db_options {
	const char *where;
	bool read_only, no_checkpoint;
	const char *machine; /* see store_options */
	bool takeover;
	const struct clock *clock; /* borrowed; NULL: the system's; see store_options */
	usec_t lease; /* kept through it, so what it waits for ends well before that; 0: no such */
	int busy_ms; /* how long to wait for another writer; 0: the usual 5 s */
	const struct db_sql *sql; /* NULL: the engine's own */
};

/* What became of a step. */
enum db_step { DB_ROW, DB_DONE, DB_FAILED };

/* An open engine; each implementation begins with this. */
struct db {
	const struct db_ops *ops;
	const struct db_sql *sql;
	pid_t pid;    /* who opened it: no other process may use it */
	int waits;    /* depth of db_wait_mark() */
	_Atomic int64_t waits_since; /* boottime: for an answer, a connection, a lock of others, the disk; 0: no such. Any thread reads it */
	_Atomic int64_t leave_by;    /* boottime: waits for nothing longer than that; 0: stays. Set by any thread */
	int64_t give_up_at;          /* boottime: no statement is waited for longer than that; 0: no such */
	bool writing; /* the open transaction is one that writes */
};

/*
 * Errors: ERR_BUSY nothing happened; ERR_FULL no space, nothing happened; ERR_UNREACHABLE the connection is
 * gone, and with it the transaction; ERR_UNCERTAIN (commit) it may have happened, (else) the device fails
 * and nothing more may be written; ERR_REFUSED the file is damaged; others concern this statement only.
 */
struct db_ops {
	const char *name;
	bool reconnects; /* a lost connection comes back, and a witness row tells whether a commit happened */

	/* Creates and migrates unless read_only; nothing is prepared yet. */
	bool (*open)(const struct db_options *o, struct db **ret, struct err *e);
	void (*close)(struct db *db);
	bool (*prepare)(struct db *db, struct err *e); /* every query */
	bool (*reconnect)(struct db *db, int wait_ms, struct err *e); /* prepared again */

	bool (*begin)(struct db *db, bool write, struct err *e);
	bool (*commit)(struct db *db, struct err *e);
	void (*rollback)(struct db *db); /* harmless when there is nothing to roll back */
	/*
	 * Those queries, bound before, as a transaction of their own that is sent as a whole: one way there and back. Their rows are read
	 * afterwards. ERR_UNCERTAIN: it may have happened. NULL: the engine is no way away.
	 */
	bool (*transact)(struct db *db, const int *queries, size_t n, struct err *e);
	bool (*savepoint)(struct db *db, struct err *e);
	bool (*release)(struct db *db, struct err *e);
	bool (*rollback_to)(struct db *db, struct err *e); /* and releases it */

	void (*bind_int)(struct db *db, int query, int at, int64_t v);
	void (*bind_text)(struct db *db, int query, int at, const char *s /* borrowed until reset; NULL: null */);
	enum db_step (*step)(struct db *db, int query, struct err *e);
	int64_t (*column_int)(struct db *db, int query, int at);      /* 0 for null */
	const char *(*column_text)(struct db *db, int query, int at); /* NULL for null; until the next step */
	void (*reset)(struct db *db, int query);

	/* Space kept for the day the disk is full: given up when it is, taken again when it can be. */
	bool (*reserve_held)(struct db *db); /* also tries to take it again */
	void (*reserve_release)(struct db *db);

	/* A whole copy in a new file, while others write. NULL: the engine has tools of its own for that. */
	bool (*backup)(struct db *db, const char *path, struct err *e);
	/* Whether this handle copies the log back into the file: of all who write it, one does. NULL: there is no such thing. */
	void (*set_checkpoints)(struct db *db, bool on);
	/* Looks at every page; one line for each thing that is wrong. NULL: as above. */
	bool (*check)(struct db *db, struct strv *ret, struct err *e);
};

extern const struct db_ops db_sqlite_ops;
#ifdef HAVE_POSTGRES
extern const struct db_ops db_postgres_ops;
#endif
void db_wait_mark(struct db *db, bool on); /* for somebody else, from now on or no more; within another one it is part of that */
void db_assert_owner(const struct db *db); /* aborts in a child of the process that opened it (debug builds) */
const struct db_ops *db_ops_for(const char *where, struct err *e); /* by the form of the place */

/*
 * One use of a statement. Parameters are bound in order, columns read in order; a parameter that is missing,
 * of the wrong type or too many aborts, and so does a column.
 */
struct query {
	struct db *db;
	int id;
	int bound, column;
	bool failed, done;
	struct err *e; /* borrowed */
};
#define AUTO_QUERY AUTO_DONE(query)
struct query query_start(struct db *db, int id, struct err *e);
void query_int(struct query *q, int64_t v);
void query_text(struct query *q, const char *s);
bool query_row(struct query *q);     /* false: no more rows, or it failed */
bool query_finish(struct query *q);  /* steps to the end; false: it failed */
int64_t query_get_int(struct query *q);
const char *query_get_text(struct query *q); /* NULL for null; until the next row */
char *query_get_copy(struct query *q);       /* caller frees */
void query_done(struct query *q);
