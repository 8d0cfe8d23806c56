/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and migrates the PostgreSQL schema. */
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/queries.h"
#include <string.h>
#include <time.h>

#define TRIES 5 /* two nodes may create the schema at the same time */

static bool run_sql(struct db_postgres *d, const char *sql, const char *what, struct err *e)
{
	PGresult *r = postgres_run(d, sql, what, e);

	PQclear(r);
	return r != NULL;
}

static bool read_version_number(struct db_postgres *d, enum postgres_text text, int *ret, struct err *e)
{
	PGresult *r = postgres_run(d, d->db.sql->texts[text], "read the schema version", e);
	int64_t n = 0;
	bool ok = r && PQntuples(r) == 1 && text_parse_int(PQgetvalue(r, 0, 0), 0, 1000000, &n);

	if (r && !ok)
		err_set(e, ERR_REFUSED, "the store at PostgreSQL has no schema version: schema 'jobsched' belongs to "
			"another program or is damaged; nothing was changed; restore a backup");
	PQclear(r);
	*ret = (int)n;
	return ok;
}

/* 0: there is no store yet. */
static bool read_version(struct db_postgres *d, int *ret, struct err *e)
{
	int exists;

	*ret = 0;
	if (!read_version_number(d, TEXT_POSTGRES_EXISTS, &exists, e) ||
	    (exists && !read_version_number(d, TEXT_POSTGRES_SCHEMA_VERSION, ret, e)))
		return false;
	if (*ret > d->db.sql->n_migrations)
		return err_set(e, ERR_REFUSED, "the store at PostgreSQL has schema version %d, this jobsched supports up to %d: it was "
			"written by a newer version; nothing was changed; "
			"install that version, or restore a backup", *ret, d->db.sql->n_migrations);
	return true;
}

/* Runs one migration in one transaction, unless another node has done it meanwhile. */
static bool pg_migrate_once(struct db_postgres *d, int number, struct err *e)
{
	const struct db_sql *sql = d->db.sql;
	int version;
	bool ok;

	if (!run_sql(d, sql->texts[TEXT_POSTGRES_BEGIN_WRITE], "begin", e))
		return false;
	ok = number == 1 ? run_sql(d, sql->texts[TEXT_POSTGRES_CREATE], "create the schema", e)
			 : run_sql(d, sql->texts[TEXT_POSTGRES_HOLD_SCHEMA], "lock the schema", e);
	ok = ok && read_version(d, &version, e);
	if (ok && version == number - 1)
		ok = run_sql(d, sql->migrations[number - 1], "migrate", e) && read_version(d, &version, e) &&
		     (version == number || err_set(e, ERR_INTERNAL, "migration %d left schema %d", number, version));
	ok = ok && failpoint_ok(FP_MIGRATE, e);
	if (ok)
		return run_sql(d, sql->texts[TEXT_POSTGRES_COMMIT], "commit", e);
	if (d->c && PQtransactionStatus(d->c) != PQTRANS_IDLE) {
		struct err ignored;

		run_sql(d, sql->texts[TEXT_POSTGRES_ROLLBACK], "roll back", &ignored);
	}
	return false;
}

static bool migrate_all(struct db_postgres *d, struct err *e)
{
	int version;

	if (!read_version(d, &version, e))
		return false;
	if (d->read_only && version < 1)
		return err_set(e, ERR_NOT_FOUND, "there is no store at PostgreSQL yet");
	while (!d->read_only && version < d->db.sql->n_migrations)
		if (!pg_migrate_once(d, ++version, e))
			return false;
	return true;
}

bool postgres_migrate(struct db_postgres *d, struct err *e)
{
	for (int try = 1;; try++) {
		if (migrate_all(d, e))
			return true;
		if (e->kind == ERR_REFUSED || e->kind == ERR_NOT_FOUND || try == TRIES)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		if (PQstatus(d->c) != CONNECTION_OK && !postgres_connect(d, e))
			return false;
	}
}
