/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PostgreSQL engine share. */
#pragma once
#include "store/db.h"
#include <libpq-fe.h>

struct pg_statement {
	PGresult *result;    /* owned; NULL: not executed yet */
	int row;
	const char **values; /* owned array; what is bound */
	char (*numbers)[24]; /* owned array; the numbers among them, as text */
};

struct db_postgres {
	struct db db;
	PGconn *c; /* owned; NULL or bad: the connection is lost */
	struct pg_statement *statements; /* owned, one per query */
	char *where;                     /* owned */
	bool read_only;
};

bool postgres_connect(struct db_postgres *d, struct err *e); /* anew; session settings made */
PGresult *postgres_run(struct db_postgres *d, const char *sql, const char *what, struct err *e); /* NULL: failed */
bool postgres_fail(struct db_postgres *d, const PGresult *r, const char *what, struct err *e);

/* Creates the schema or runs what migrations are missing (not when read_only); refuses a newer one. */
bool postgres_migrate(struct db_postgres *d, struct err *e);
