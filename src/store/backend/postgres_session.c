/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up a session. Servers that only speak PostgreSQL's protocol may lack some of the settings. */
#include "base/err.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/queries.h"
#include <stdio.h>
#include <string.h>

static bool session_run(struct db_postgres *d, const char *sql, struct err *e)
{
	PGresult *r = postgres_run(d, sql, "set up", e);

	PQclear(r);
	return r != NULL;
}

/* Sends the statements one by one. One that the server refuses is skipped. False: the connection is lost. */
static bool session_set_each(struct db_postgres *d, const char *statements, struct err *e)
{
	for (size_t len; *(statements += strspn(statements, ";\n ")); statements += len) {
		AUTO_TEXT one = xstrndup(statements, len = strcspn(statements, ";"));

		if (!session_run(d, one, e) && (e->kind == ERR_UNREACHABLE || e->kind == ERR_BUSY))
			return false;
	}
	return true;
}

/*
 * Settings without which statements would not do what they should: names of tables, what a
 * statement sees, and a time limit.
 */
static const struct {
	const char *name, *value; /* value NULL: any but 0 */
} required[] = {
	{"search_path", "jobsched"},
	{"default_transaction_isolation", "read committed"},
	{"statement_timeout", NULL},
};

static bool session_check(struct db_postgres *d, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(required); i++) {
		PGresult *r = postgres_run_with(d, d->db.sql->texts[TEXT_POSTGRES_SETTING], 1, &required[i].name, "read a setting", e);
		const char *value = r && PQntuples(r) == 1 ? PQgetvalue(r, 0, 0) : "unknown";
		bool ok = r && (required[i].value ? text_equal(value, required[i].value) : strcmp(value, "0") != 0);

		if (!ok && (r || e->kind == ERR_INTERNAL))
			err_set(e, ERR_REFUSED, "the server at PostgreSQL cannot be used: its setting '%s' is '%.40s', not '%s'", required[i].name,
				value, required[i].value ? required[i].value : "a time limit");
		PQclear(r);
		if (!ok)
			return false;
	}
	return true;
}

static bool session_set_timeouts(struct db_postgres *d, struct err *e)
{
	char statement[16], lock[16], silence[16];
	const char *const values[] = {statement, lock, silence};
	PGresult *r;

	snprintf(statement, sizeof(statement), "%d", d->timeouts.statement_ms);
	snprintf(lock, sizeof(lock), "%d", d->timeouts.lock_ms);
	snprintf(silence, sizeof(silence), "%d", d->timeouts.answer_ms);
	r = postgres_run_with(d, d->db.sql->texts[TEXT_POSTGRES_SETUP_BOUNDS], ELEMENTS(values), values, "set up", e);
	PQclear(r);
	return r != NULL;
}

/* One round trip if the server has all settings. */
bool postgres_session_setup(struct db_postgres *d, struct err *e)
{
	const char *const *texts = d->db.sql->texts;

	if (!session_run(d, texts[TEXT_POSTGRES_SETUP], e) &&
	    (e->kind != ERR_INTERNAL || !session_set_each(d, texts[TEXT_POSTGRES_SETUP], e) || !session_check(d, e)))
		return false;
	return (!d->lease || session_set_timeouts(d, e)) && (!d->read_only || session_run(d, texts[TEXT_POSTGRES_SETUP_READER], e));
}
