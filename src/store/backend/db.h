/* SPDX-License-Identifier: Apache-2.0 */
/* Database interface implemented by the SQLite and PostgreSQL backends. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct db_set;
struct err;
struct strv;

enum db_type { DB_INT, DB_TEXT, DB_JSON };

/* The tables that generate.awk makes from the .sql files. */
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
	const char *const *migrations; /* the first one has number 1 */
	int n_migrations;
	const char *const *texts;
};

struct db_options {
	const char *where;        /* a path, or postgresql://… */
	bool read_only, no_checkpoint;
	const char *machine;      /* see store_options */
	bool takeover;
	usec_t lease;             /* renewed through this connection, which bounds its timeouts; 0: none */
	const struct clock *clock; /* borrowed; NULL: the system clock; see store_options */
	int busy_ms;              /* how long to wait for another writer; 0: 5 s */
	const struct db_sql *sql; /* NULL: the statements of the backend */
};

/* Values of the settings of the server with these names, and the servers. */
struct db_durability {
	char fsync[8], full_page_writes[8], synchronous_commit[16];
	char synchronous_standby_names[64]; /* may be cut */
	int64_t standbys;                   /* that are connected */
	int64_t servers;                    /* named by the connection string */
};

enum db_step { DB_ROW, DB_DONE, DB_FAILED };

/* An open database. The struct of each backend begins with this one. */
struct db {
	const struct db_ops *ops;
	const struct db_sql *sql;
	pid_t pid;                   /* the process that opened it; no other process may use it */
	int waits;                   /* nesting depth of db_wait_mark() */
	/*
	 * Boottime since when a call waits for a reply, a connection, a lock or the disk; 0: none
	 * does. Any thread reads it.
	 */
	_Atomic int64_t waits_since;
	_Atomic int64_t leave_by;    /* boottime; no wait lasts longer than this; 0: no limit. Set by any thread */
	int64_t give_up_at;          /* boottime; no wait for a reply lasts longer than this; 0: no limit */
	bool writing;                /* the open transaction writes */
	/*
	 * Statements without rows may be sent without waiting for the reply. Their errors are
	 * returned by a later statement, or by commit.
	 */
	bool defer;
	bool no_xids;                /* the server has no functions that report the transactions in progress */
	int64_t round_trips;         /* replies of the server that were waited for; 0 without a server */
};

/*
 * Errors. ERR_BUSY: nothing happened. ERR_FULL: no space, nothing happened. ERR_UNREACHABLE: the
 * connection is lost, and the transaction with it. ERR_UNCERTAIN from commit: the outcome is
 * unknown; from other calls: the device failed, and nothing more may be written. ERR_REFUSED: the
 * file is damaged. Other errors concern this statement only.
 */
struct db_ops {
	const char *name;
	bool row_locks;  /* several connections write at the same time, and lock rows */
	bool reconnects; /* a lost connection can be opened again; a row of 'writers' tells whether a commit happened */

	/* Creates and migrates the schema unless read_only. Prepares no statements. */
	bool (*open)(const struct db_options *o, struct db **ret, struct err *e);
	void (*close)(struct db *db);
	bool (*prepare)(struct db *db, struct err *e); /* all queries */
	bool (*reconnect)(struct db *db, int wait_ms, struct err *e); /* prepared statements stay usable */

	bool (*begin)(struct db *db, bool write, struct err *e);
	bool (*commit)(struct db *db, struct err *e);
	void (*rollback)(struct db *db); /* does nothing without a transaction */
	/*
	 * Runs these queries, whose parameters are bound, as one transaction in a single round
	 * trip. The rows are read afterwards. ERR_UNCERTAIN: the outcome is unknown. NULL if the
	 * backend has no round trips.
	 */
	bool (*transact)(struct db *db, const int *queries, size_t n, struct err *e);
	/*
	 * Sends a query whose parameters are bound, without waiting for its rows. The next step of
	 * this query waits; after a commit the rows are there. NULL as above.
	 */
	bool (*send)(struct db *db, int query, struct err *e);
	/*
	 * The same, but the rows are kept for the next execution of this query with the same
	 * parameters, so a query can be sent several times. prefetch_drop() discards the rows that
	 * were not used. NULL as above.
	 */
	bool (*prefetch)(struct db *db, int query, struct err *e);
	void (*prefetch_drop)(struct db *db);
	/* Notifies other nodes after the commit. NULL: they watch the file. */
	void (*notify)(struct db *db);
	bool (*savepoint)(struct db *db, struct err *e);
	bool (*release)(struct db *db, struct err *e);
	bool (*rollback_to)(struct db *db, struct err *e); /* also releases the savepoint */

	void (*bind_int)(struct db *db, int query, int at, int64_t v);
	void (*bind_text)(struct db *db, int query, int at, const char *s /* borrowed until reset; NULL: null */);
	/*
	 * Binds rows that the statement reads with given(). False: nothing is bound, and the statement needs their JSON text.
	 * NULL: all statements do.
	 */
	bool (*bind_rows)(struct db *db, int query, int at, const struct db_set *rows /* borrowed until reset */);
	enum db_step (*step)(struct db *db, int query, struct err *e);
	int64_t (*column_int)(struct db *db, int query, int at);      /* 0 for null */
	const char *(*column_text)(struct db *db, int query, int at); /* NULL for null; valid until the next step */
	void (*reset)(struct db *db, int query);

	/* Reserved disk space, see reserve.h. */
	bool (*reserve_held)(struct db *db); /* allocates it again if there is room */
	void (*reserve_release)(struct db *db);

	/* Settings of the server on which the durability of commits depends. NULL: there is no server. */
	bool (*durability)(struct db *db, struct db_durability *ret, struct err *e);
	/*
	 * Copies the store into a new file while others write. NULL: the database server has its
	 * own tools.
	 */
	bool (*backup)(struct db *db, const char *path, struct err *e);
	/*
	 * Whether this handle writes checkpoints. Only one writer of a file does. NULL: no
	 * checkpoints.
	 */
	void (*set_checkpoints)(struct db *db, bool on);
	/* Checks every page; *ret gets one line per problem. NULL: as for backup. */
	bool (*check)(struct db *db, struct strv *ret, struct err *e);
};

extern const struct db_ops db_sqlite_ops;
#ifdef HAVE_POSTGRES
extern const struct db_ops db_postgres_ops;
#endif
void db_wait_mark(struct db *db, bool on); /* sets or clears waits_since; calls may be nested */
/* Configures the libraries for a process with several threads. Called before the first store is opened; optional. */
void db_process_init(void);
void db_assert_owner(const struct db *db); /* aborts in a child of the process that opened it (debug builds) */
const struct db_ops *db_ops_for(const char *where, struct err *e); /* postgresql:// selects PostgreSQL */
