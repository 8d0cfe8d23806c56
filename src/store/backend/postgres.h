/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PostgreSQL engine share. */
#pragma once
#include "base/clock.h"
#include "store/backend/db.h"
#include <libpq-fe.h>

struct pg_statement {
	PGresult *result;    /* owned; NULL: not executed yet */
	int row;
	const char **values; /* owned array; what is bound */
	char (*numbers)[24]; /* owned array; the numbers among them, as text */
	bool prepared;       /* in this session */
};

/* How long a session waits, each within the next. */
struct pg_timeouts {
	int lock_ms;      /* for what another one holds: by the server */
	int statement_ms; /* for the whole of it: by the server */
	int answer_ms;    /* for any sign of the server: whoever is silent so long is gone */
};
struct pg_timeouts postgres_timeouts(usec_t lease); /* that is kept there, 0: none. Two answers that do not come leave a third of it */

struct db_postgres {
	struct db db;
	PGconn *c; /* owned; NULL or bad: the connection is lost */
	struct pg_statement *statements; /* owned, one per query */
	char *where;                     /* owned */
	bool read_only;
	usec_t lease;                    /* see db_options */
	struct pg_timeouts timeouts;
};

bool postgres_address_check(const char *where, struct err *e);
bool postgres_connect(struct db_postgres *d, struct err *e); /* anew; session settings made */
bool postgres_wait(struct db_postgres *d, short events, usec_t deadline); /* false: nothing came */
PGresult *postgres_run_with(struct db_postgres *d, const char *sql, int n, const char *const *values, const char *what, struct err *e);
PGresult *postgres_run(struct db_postgres *d, const char *sql, const char *what, struct err *e); /* NULL: failed */
bool postgres_fail(struct db_postgres *d, const PGresult *r, const char *what, struct err *e);

/* Creates the schema or runs what migrations are missing (not when read_only); refuses a newer one. */
bool postgres_migrate(struct db_postgres *d, struct err *e);
