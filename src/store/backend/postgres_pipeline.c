/* SPDX-License-Identifier: Apache-2.0 */
/* Sends statements without waiting for their replies; one round trip fetches all of them. */
#include "store/backend/postgres_pipeline.h"
#include "base/err.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/postgres_prefetch.h"
#include "store/backend/queries.h"
#include <poll.h>
#include <string.h>

bool postgres_pipeline_pending(const struct db_postgres *d)
{
	return d->n_queued > 0;
}

void postgres_pipeline_drop(struct db_postgres *d)
{
	for (size_t i = 0; i < d->n_queued; i++)
		if (d->queued[i].query >= 0) {
			d->statements[d->queued[i].query].sent = false;
			d->statements[d->queued[i].query].preparing = false;
		}
	d->n_queued = 0;
}

/* ---- send ---- */

static bool pipeline_enter(struct db_postgres *d)
{
	return postgres_usable(d) && (PQpipelineStatus(d->c) != PQ_PIPELINE_OFF || PQenterPipelineMode(d->c));
}

static void pipeline_add(struct db_postgres *d, const struct pg_queued *q)
{
	d->queued = xgrow(d->queued, d->n_queued, sizeof(*d->queued));
	d->queued[d->n_queued++] = *q;
}

bool postgres_pipeline_text(struct db_postgres *d, int text, const char *what, struct err *e)
{
	if (!pipeline_enter(d) || !PQsendQueryParams(d->c, d->db.sql->texts[text], 0, NULL, NULL, NULL, NULL, 0))
		return postgres_fail(d, NULL, what, e);
	pipeline_add(d, &(struct pg_queued){.query = -1, .what = what, .commits = text == TEXT_POSTGRES_COMMIT,
		.optional = text == TEXT_POSTGRES_NOTIFY});
	return true;
}

static bool pipeline_query(struct db_postgres *d, int query, bool keeps, size_t prefetch, struct err *e)
{
	const struct db_query *q = &d->db.sql->queries[query];
	struct pg_statement *s = &d->statements[query];
	bool prepares = !s->prepared && !s->preparing;

	if (!pipeline_enter(d) || (prepares && !PQsendPrepare(d->c, q->name, q->sql, 0, NULL)) ||
	    !PQsendQueryPrepared(d->c, q->name, q->n_params, s->values, NULL, NULL, 0))
		return postgres_fail(d, NULL, q->name, e);
	s->preparing = s->preparing || prepares;
	s->sent = s->sent || keeps;
	pipeline_add(d, &(struct pg_queued){.query = query, .prepares = prepares, .keeps = keeps, .prefetch = prefetch, .what = q->name});
	return true;
}

bool postgres_pipeline_query(struct db_postgres *d, int query, bool keeps, struct err *e)
{
	return pipeline_query(d, query, keeps, 0, e);
}

bool postgres_pipeline_prefetch(struct db_postgres *d, int query, size_t number, struct err *e)
{
	return pipeline_query(d, query, false, number, e);
}

/* ---- receive ---- */

/*
 * The next result of the pipeline; a NULL separates two results. NULL: no reply within the timeout.
 */
static PGresult *pipeline_next(struct db_postgres *d, usec_t deadline)
{
	for (int empty = 0; empty < 2; empty++) {
		PGresult *r;

		while (PQisBusy(d->c))
			if (!postgres_wait(d, POLLIN, deadline) || !PQconsumeInput(d->c))
				return NULL;
		r = PQgetResult(d->c);
		if (r)
			return r;
	}
	return NULL;
}

/* The state of reading the replies. */
struct replies {
	usec_t deadline;
	bool refused;   /* the server has reported an error of a statement before COMMIT */
	bool committed;
};

/* Expects a successful result; NULL: it failed. */
static PGresult *pipeline_expect(struct db_postgres *d, struct replies *w, const char *what, struct err *e)
{
	PGresult *r = pipeline_next(d, w->deadline);

	if (postgres_result_ok(r))
		return r;
	postgres_fail(d, r, what, e);
	w->refused = PQresultErrorField(r, PG_DIAG_SQLSTATE) != NULL; /* libpq makes a result without it for a lost connection */
	PQclear(r);
	return NULL;
}

static bool reply_read(struct db_postgres *d, const struct pg_queued *q, struct replies *w, struct err *e)
{
	struct pg_statement *s = q->query >= 0 ? &d->statements[q->query] : NULL;
	PGresult *r;

	if (q->prepares) {
		r = pipeline_expect(d, w, q->what, e);
		s->prepared = r != NULL;
		PQclear(r);
		if (!r)
			return false;
	}
	if (q->commits)
		d->warning[0] = '\0';
	r = pipeline_expect(d, w, q->what, e);
	if (q->commits) {
		w->refused = false; /* an error during COMMIT itself, for example a shutdown, leaves it unknown */
		w->committed = r && strcmp(PQcmdStatus(r), "COMMIT") == 0 && postgres_commit_is_durable(d, e);
		PQclear(r);
		return w->committed;
	}
	if (r && q->keeps && s->sent) {
		PQclear(s->result);
		s->result = STEAL(r);
		s->row = -1;
		return true;
	}
	if (r && q->prefetch) {
		postgres_prefetch_keep(d, q->prefetch, r);
		return true;
	}
	PQclear(r);
	return r != NULL;
}

static bool replies_read(struct db_postgres *d, struct replies *w, struct err *e)
{
	struct err ignored;

	for (size_t i = 0; i < d->n_queued; i++)
		if (!reply_read(d, &d->queued[i], w, w->committed ? &ignored : e))
			return w->committed && d->queued[i].optional;
	return true;
}

/* Discards the remaining results up to the sync point; then the session can be used again. */
static bool pipeline_end(struct db_postgres *d, usec_t deadline)
{
	PGresult *r;

	while (postgres_usable(d) && (r = pipeline_next(d, deadline))) {
		bool end = PQresultStatus(r) == PGRES_PIPELINE_SYNC;

		PQclear(r);
		if (end)
			return PQexitPipelineMode(d->c);
	}
	return false;
}

/*
 * The server enforces a timeout per statement and per lock; several statements of one flush may wait
 * for a lock one after another.
 */
static bool pipeline_finish(struct db_postgres *d, struct replies *w, struct err *e)
{
	bool ok, whole;

	w->deadline = postgres_reply_deadline(d);
	if (!d->db.give_up_at)
		w->deadline += d->timeouts.lock_ms * USEC_MSEC;
	db_wait_mark(&d->db, true);
	ok = postgres_usable(d) && PQpipelineSync(d->c) && postgres_flush(d, w->deadline);
	if (ok)
		ok = replies_read(d, w, e);
	else
		postgres_fail(d, NULL, d->queued[0].what, e);
	whole = pipeline_end(d, w->deadline);
	db_wait_mark(&d->db, false);
	d->db.round_trips++;
	postgres_pipeline_drop(d);
	if (whole) {
		d->answered_at = clock_boot(&clock_system);
		return ok;
	}
	PQfinish(STEAL(d->c));
	if (ok && !w->committed)
		postgres_fail(d, NULL, "wait for replies", e);
	if (!w->committed && e)
		e->kind = ERR_UNREACHABLE;
	return ok && w->committed;
}

bool postgres_pipeline_flush(struct db_postgres *d, struct err *e)
{
	struct replies w = {};

	return !postgres_pipeline_pending(d) || pipeline_finish(d, &w, e);
}

bool postgres_pipeline_commit(struct db_postgres *d, struct err *e)
{
	struct replies w = {};
	struct err why = {}, ignored;
	bool sent = postgres_pipeline_text(d, TEXT_POSTGRES_COMMIT, "commit", &why);

	if (sent && d->notifies)
		postgres_pipeline_text(d, TEXT_POSTGRES_NOTIFY, "notify", &ignored);
	if (sent)
		pipeline_finish(d, &w, &why);
	else
		postgres_pipeline_drop(d);
	if (w.committed)
		return true;
	if (!why.kind)
		err_set(&why, ERR_INTERNAL, "store at PostgreSQL: the transaction was rolled back");
	if (why.kind == ERR_UNREACHABLE && sent && !w.refused)
		why.kind = ERR_UNCERTAIN;
	if (e)
		*e = why;
	return false;
}
