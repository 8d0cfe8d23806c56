/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of the PostgreSQL server on which the durability of commits depends. */
#include "store/backend/postgres.h"
#include "store/backend/queries.h"
#include <stdio.h>
#include <stdlib.h>

bool postgres_durability(struct db *db, struct db_durability *ret, struct err *e)
{
	struct db_postgres *d = (struct db_postgres *)db;
	PGresult *r = postgres_run(d, db->sql->texts[TEXT_POSTGRES_DURABILITY], "read the settings", e);

	if (!r)
		return false;
	*ret = (struct db_durability){.standbys = strtoll(PQgetvalue(r, 0, 4), NULL, 10), .servers = (int64_t)d->servers};
	snprintf(ret->fsync, sizeof(ret->fsync), "%s", PQgetvalue(r, 0, 0));
	snprintf(ret->full_page_writes, sizeof(ret->full_page_writes), "%s", PQgetvalue(r, 0, 1));
	snprintf(ret->synchronous_commit, sizeof(ret->synchronous_commit), "%s", PQgetvalue(r, 0, 2));
	snprintf(ret->synchronous_standby_names, sizeof(ret->synchronous_standby_names), "%s", PQgetvalue(r, 0, 3));
	PQclear(r);
	return true;
}
