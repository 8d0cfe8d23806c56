/* SPDX-License-Identifier: Apache-2.0 */
/* Binds parameters and reads columns, checked against the declarations in the .sql files. */
#include "store/backend/query.h"
#include "base/err.h"
#include "base/text.h"
#include "store/backend/db.h"
#include <stdio.h>

/* A programming error: continuing could write wrong data. */
static _Noreturn void query_misuse(const struct query *q, const char *what)
{
	fprintf(stderr, "statement '%s': %s\n", q->db->sql->queries[q->id].name, what);
	abort();
}

static const struct db_query *declaration_of(const struct query *q)
{
	return &q->db->sql->queries[q->id];
}

struct query query_start(struct db *db, int id, struct err *e)
{
	return (struct query){.db = db, .id = id, .e = e};
}

static int next_param(struct query *q, bool text)
{
	if (q->bound >= declaration_of(q)->n_params)
		query_misuse(q, "too many parameters are bound");
	if ((declaration_of(q)->params[q->bound].type != DB_INT) != text)
		query_misuse(q, "a parameter is bound with the wrong type");
	return q->bound++;
}

void query_int(struct query *q, int64_t v)
{
	q->db->ops->bind_int(q->db, q->id, next_param(q, false), v);
}

void query_text(struct query *q, const char *s)
{
	q->db->ops->bind_text(q->db, q->id, next_param(q, true), s);
}

bool query_rows(struct query *q, const struct db_set *rows)
{
	const struct db_ops *ops = q->db->ops;

	if (!ops->bind_rows || q->bound >= declaration_of(q)->n_params || !ops->bind_rows(q->db, q->id, q->bound, rows))
		return false;
	next_param(q, true);
	return true;
}

bool query_send(struct query *q)
{
	if (q->bound != declaration_of(q)->n_params)
		query_misuse(q, "a parameter is not bound");
	q->failed = q->db->ops->send && !q->db->ops->send(q->db, q->id, q->e);
	return !q->failed;
}

bool query_ahead(struct query *q)
{
	return !q->db->defer || query_send(q);
}

bool query_prefetch(struct query *q)
{
	if (q->bound != declaration_of(q)->n_params)
		query_misuse(q, "a parameter is not bound");
	q->failed = !q->db->ops->prefetch(q->db, q->id, q->e);
	return !q->failed;
}

bool query_row(struct query *q)
{
	enum db_step step;

	if (q->bound != declaration_of(q)->n_params)
		query_misuse(q, "a parameter is not bound");
	if (q->done || q->failed)
		return false;
	q->column = 0;
	step = q->db->ops->step(q->db, q->id, q->e);
	q->done = step == DB_DONE;
	q->failed = step == DB_FAILED;
	if (q->failed && q->e && q->e->kind == ERR_UNREACHABLE && !q->db->writing)
		q->e->kind = ERR_BUSY; /* nothing was written: a retry reconnects */
	return step == DB_ROW;
}

bool query_finish(struct query *q)
{
	while (query_row(q))
		;
	return !q->failed;
}

static int next_column(struct query *q, bool text)
{
	if (q->column >= declaration_of(q)->n_columns)
		query_misuse(q, "too many columns are read");
	if ((declaration_of(q)->columns[q->column].type != DB_INT) != text)
		query_misuse(q, "a column is read with the wrong type");
	return q->column++;
}

int64_t query_get_int(struct query *q)
{
	return q->db->ops->column_int(q->db, q->id, next_column(q, false));
}

const char *query_get_text(struct query *q)
{
	return q->db->ops->column_text(q->db, q->id, next_column(q, true));
}

char *query_get_copy(struct query *q)
{
	return xstrdup(query_get_text(q));
}

void query_done(struct query *q)
{
	if (q->db)
		q->db->ops->reset(q->db, q->id);
	q->db = NULL;
}
