/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the rows of queries that were sent before they are needed. */
#include "store/backend/postgres_prefetch.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/postgres_pipeline.h"
#include <string.h>

/* The bound parameters of a query as one text. NULL differs from every value. */
static char *parameters_join(const struct db_postgres *d, int query)
{
	AUTO_DONE(buf) b = {};

	for (int i = 0; i < d->db.sql->queries[query].n_params; i++) {
		const char *v = d->statements[query].values[i];

		if (v)
			buf_printf(&b, "%zu:%s", strlen(v), v);
		else
			buf_char(&b, '-');
	}
	return buf_steal(&b);
}

bool postgres_prefetch(struct db *db, int query, struct err *e)
{
	struct db_postgres *d = (struct db_postgres *)db;

	d->prefetched = xgrow(d->prefetched, d->n_prefetched, sizeof(*d->prefetched));
	d->prefetched[d->n_prefetched++] = (struct pg_prefetched){.query = query, .parameters = parameters_join(d, query)};
	return postgres_pipeline_prefetch(d, query, d->n_prefetched, e);
}

void postgres_prefetch_keep(struct db_postgres *d, size_t number, PGresult *r)
{
	struct pg_prefetched *p = &d->prefetched[number - 1];

	p->received = true;
	if (p->used)
		PQclear(r);
	else
		p->result = r;
}

static struct pg_prefetched *prefetched_find(const struct db_postgres *d, int query)
{
	char *parameters = NULL;
	struct pg_prefetched *found = NULL;

	for (size_t i = 0; i < d->n_prefetched && !found; i++) {
		struct pg_prefetched *p = &d->prefetched[i];

		if (p->used || p->query != query)
			continue;
		parameters = parameters ? parameters : parameters_join(d, query);
		if (strcmp(p->parameters, parameters) == 0)
			found = p;
	}
	free(parameters);
	return found;
}

bool postgres_prefetch_take(struct db_postgres *d, int query, bool *ret, struct err *e)
{
	struct pg_prefetched *p = d->n_prefetched > 0 ? prefetched_find(d, query) : NULL;
	struct pg_statement *s = &d->statements[query];

	*ret = p != NULL;
	if (!p)
		return true;
	if (!p->result && !postgres_pipeline_flush(d, e))
		return false;
	s->result = STEAL(p->result);
	s->row = -1;
	p->used = true;
	return s->result || err_set(e, ERR_INTERNAL, "store at PostgreSQL: %s: the rows are missing", d->db.sql->queries[query].name);
}

void postgres_prefetch_drop(struct db *db)
{
	struct db_postgres *d = (struct db_postgres *)db;

	bool awaited = false;

	for (size_t i = 0; i < d->n_prefetched; i++) {
		struct pg_prefetched *p = &d->prefetched[i];

		PQclear(p->result);
		free(p->parameters);
		*p = (struct pg_prefetched){.received = p->received, .used = true};
		awaited = awaited || !p->received;
	}
	if (!awaited || !postgres_pipeline_pending(d))
		d->n_prefetched = 0; /* no reply refers to them any more */
}
