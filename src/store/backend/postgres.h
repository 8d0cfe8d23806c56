/* SPDX-License-Identifier: Apache-2.0 */
/* Data shared by the files of the PostgreSQL backend. */
#pragma once
#include "base/clock.h"
#include "store/backend/db.h"
#include <libpq-fe.h>

struct pg_queued;
struct pg_prefetched;

struct pg_statement {
	PGresult *result;    /* owned; NULL: not executed yet */
	int row;
	const char **values; /* owned array of the bound parameters */
	char (*numbers)[24]; /* owned array; the text of the integers among them */
	bool prepared;       /* in this session */
	bool preparing;      /* PREPARE was sent, its reply was not read */
	bool sent;           /* it was sent, and its rows are kept when they arrive */
};

/* Timeouts of a session; each one is shorter than the next. */
struct pg_timeouts {
	int lock_ms;      /* for a lock; enforced by the server */
	int statement_ms; /* for a statement; enforced by the server */
	int answer_ms;    /* for any reply of the server; then the connection is given up */
};
/*
 * For a connection that renews this lease (0: none). Two timeouts for a reply leave a third of the
 * lease.
 */
struct pg_timeouts postgres_timeouts(usec_t lease);

struct db_postgres {
	struct db db;
	PGconn *c; /* owned; NULL or bad: the connection is lost */
	struct pg_statement *statements; /* owned, one per query */
	char *where;                     /* owned */
	bool read_only;
	usec_t lease;                    /* see db_options */
	struct pg_timeouts timeouts;
	size_t servers;    /* named by the connection string */
	size_t server;     /* index of the server in the connection string that was used last */
	unsigned rounds;   /* through several servers without success */
	char warning[200]; /* the last warning of the server; cleared before the reply to COMMIT */
	struct pg_queued *queued; /* owned, see postgres_pipeline.h */
	size_t n_queued;
	struct pg_prefetched *prefetched; /* owned, see postgres_prefetch.h */
	size_t n_prefetched;
	usec_t answered_at;       /* boottime of the last reply */
	bool notifies;            /* the next commit is followed by NOTIFY */
};

bool postgres_address_check(const char *where, struct err *e);
bool postgres_connect(struct db_postgres *d, struct err *e); /* a new connection with the settings of a session */
bool postgres_session_setup(struct db_postgres *d, struct err *e); /* the settings of a new session */
bool postgres_wait(struct db_postgres *d, short events, usec_t deadline); /* false: timeout */
PGresult *postgres_run_with(struct db_postgres *d, const char *sql, int n, const char *const *values, const char *what,
	struct err *e);
PGresult *postgres_run(struct db_postgres *d, const char *sql, const char *what, struct err *e); /* NULL: failed */
bool postgres_fail(struct db_postgres *d, const PGresult *r, const char *what, struct err *e);
bool postgres_usable(const struct db_postgres *d);
bool postgres_result_ok(const PGresult *r);
usec_t postgres_reply_deadline(const struct db_postgres *d); /* when a missing reply makes the connection lost */
bool postgres_flush(struct db_postgres *d, usec_t deadline); /* sends what libpq has buffered */
bool postgres_commit_is_durable(const struct db_postgres *d, struct err *e); /* after the reply to COMMIT */

/* See db_ops. */
bool postgres_durability(struct db *db, struct db_durability *ret, struct err *e);

/* Creates the schema or runs the missing migrations, unless read_only. Refuses a newer schema. */
bool postgres_migrate(struct db_postgres *d, struct err *e);
