/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the backend, and records how long a call waits. */
#include "store/backend/db.h"
#include "base/err.h"
#include "base/text.h"
#include <assert.h>
#include <unistd.h>

const struct db_ops *db_ops_for(const char *where, struct err *e)
{
	if (!text_starts(where, "postgresql://") && !text_starts(where, "postgres://"))
		return &db_sqlite_ops;
#ifdef HAVE_POSTGRES
	(void)e;
	return &db_postgres_ops;
#else
	err_set(e, ERR_INVALID, "store '%s': this jobsched was built without PostgreSQL; "
		"name a file, or build it with --with-postgres", where);
	return NULL;
#endif
}

void db_wait_mark(struct db *db, bool on)
{
	db->waits += on ? 1 : -1;
	if (db->waits == on)
		db->waits_since = on ? clock_boot(&clock_system) : 0;
}

void db_assert_owner(const struct db *db)
{
	(void)db; /* unused in a build without assertions */
	assert(db->pid == getpid());
}
