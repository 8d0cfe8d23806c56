/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL backend: statements and transactions, with a timeout for every wait. */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/postgres_pipeline.h"
#include "store/backend/postgres_prefetch.h"
#include "store/backend/queries.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE_MS 250 /* interval at which a wait checks leave_by */

/*
 * After this time without a reply, BEGIN has its own round trip: if the connection was lost meanwhile, no COMMIT was sent,
 * and the batch can be refused instead of being unknown.
 */
#define IDLE_MAX (500 * USEC_MSEC)

static struct db_postgres *pg_db(struct db *db)
{
	return (struct db_postgres *)db;
}

/* ---- errors ---- */

/*
 * SQLSTATE classes (two characters) and codes (five) with their error kinds; the first match
 * counts.
 */
static const struct {
	const char *state;
	enum err_kind kind;
} meanings[] = {
	{"08", ERR_UNREACHABLE},
	{"57P", ERR_UNREACHABLE},   /* shutdown, crash, cannot connect now, idle timeout */
	{"25006", ERR_UNREACHABLE}, /* read-only: a standby; another server may be the primary now */
	{"25P03", ERR_UNREACHABLE}, /* idle in transaction timeout: the server has ended the session */
	{"40003", ERR_UNREACHABLE},
	{"40", ERR_BUSY},           /* deadlock, serialisation */
	{"55P03", ERR_BUSY},        /* lock timeout */
	{"57014", ERR_BUSY},        /* statement timeout */
	{"53100", ERR_FULL},
	{"53", ERR_BUSY},           /* too many connections, out of memory */
	{"54", ERR_TOO_LARGE},
	{"58", ERR_UNREACHABLE},    /* I/O error of the server: it will restart */
	{"XX", ERR_REFUSED},        /* damaged data */
};

static enum err_kind sqlstate_kind(const char *sqlstate)
{
	for (size_t i = 0; sqlstate && i < ELEMENTS(meanings); i++)
		if (text_starts(sqlstate, meanings[i].state))
			return meanings[i].kind;
	return ERR_INTERNAL;
}

/* The length of the first line of a libpq message. */
static int line_length(const char *s)
{
	return (int)strcspn(s, "\n");
}

/*
 * Only this program prepares statements in its session. If one is unknown or exists already, the connection led to the
 * session of another client.
 */
static bool session_was_exchanged(const char *sqlstate)
{
	return sqlstate && (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0);
}

static bool refuse_pooler(struct err *e)
{
	return err_set(e, ERR_REFUSED, "the store at PostgreSQL is behind a pooler in transaction mode; "
		"connect to the server itself, or configure the pooler for session mode");
}

bool postgres_fail(struct db_postgres *d, const PGresult *r, const char *what, struct err *e)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	const char *why = r ? PQresultErrorMessage(r) : d->c ? PQerrorMessage(d->c) : "the connection was lost";
	enum err_kind kind = sqlstate_kind(state);

	if (!d->c || PQstatus(d->c) == CONNECTION_BAD)
		kind = ERR_UNREACHABLE;
	if (!why || !why[0])
		why = "no answer";
	if (session_was_exchanged(state))
		return refuse_pooler(e);
	return err_set(e, kind, "store at PostgreSQL: %s: %.*s", what, line_length(why), why);
}

/* ---- requests and replies, with timeouts ---- */

bool postgres_wait(struct db_postgres *d, short events, usec_t deadline)
{
	struct pollfd fd = {.fd = PQsocket(d->c), .events = events};

	for (;;) {
		usec_t leave_by = d->db.leave_by;
		usec_t left = (leave_by && leave_by < deadline ? leave_by : deadline) - clock_boot(&clock_system);
		int n;

		if (left <= 0)
			return false;
		n = poll(&fd, 1, left > SLICE_MS * USEC_MSEC ? SLICE_MS : (int)(left / USEC_MSEC) + 1);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

/* The time at which a missing reply makes the connection lost. */
usec_t postgres_reply_deadline(const struct db_postgres *d)
{
	usec_t by = clock_boot(&clock_system) + d->timeouts.answer_ms * USEC_MSEC;

	return d->db.give_up_at && d->db.give_up_at < by ? d->db.give_up_at : by;
}

bool postgres_flush(struct db_postgres *d, usec_t deadline)
{
	int r;

	while ((r = PQflush(d->c)) == 1)
		if (!postgres_wait(d, POLLIN | POLLOUT, deadline) || !PQconsumeInput(d->c))
			return false;
	return r == 0;
}

/*
 * The first failed result of the request, else the last one. NULL: no reply within the timeout; the
 * session is closed.
 */
static PGresult *await_result(struct db_postgres *d)
{
	usec_t deadline = postgres_reply_deadline(d);
	PGresult *kept = NULL, *r;

	db_wait_mark(&d->db, true);
	d->db.round_trips++;
	if (!postgres_flush(d, deadline))
		goto lost;
	for (;;) {
		while (PQisBusy(d->c))
			if (!postgres_wait(d, POLLIN, deadline) || !PQconsumeInput(d->c))
				goto lost;
		r = PQgetResult(d->c);
		if (!r) {
			db_wait_mark(&d->db, false);
			d->answered_at = clock_boot(&clock_system);
			return kept;
		}
		if (kept && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
			PQclear(r);
			continue;
		}
		PQclear(kept);
		kept = r;
	}
lost:
	db_wait_mark(&d->db, false);
	PQclear(kept);
	PQfinish(STEAL(d->c)); /* its state is unknown, so it must not be used again */
	return NULL;
}

bool postgres_result_ok(const PGresult *r)
{
	return r && (PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK);
}

/* The result of a request; 'sent' is false if it could not be sent. */
static PGresult *result_or_error(struct db_postgres *d, bool sent, const char *what, struct err *e)
{
	PGresult *r = sent ? await_result(d) : NULL;

	if (postgres_result_ok(r))
		return r;
	postgres_fail(d, r, what, e);
	PQclear(r);
	return NULL;
}

bool postgres_usable(const struct db_postgres *d)
{
	return d->c && PQstatus(d->c) != CONNECTION_BAD;
}

PGresult *postgres_run(struct db_postgres *d, const char *sql, const char *what, struct err *e)
{
	if (!postgres_pipeline_flush(d, e))
		return NULL;
	return result_or_error(d, postgres_usable(d) && PQsendQuery(d->c, sql), what, e);
}

PGresult *postgres_run_with(struct db_postgres *d, const char *sql, int n, const char *const *values, const char *what,
	struct err *e)
{
	if (!postgres_pipeline_flush(d, e))
		return NULL;
	return result_or_error(d, postgres_usable(d) && PQsendQueryParams(d->c, sql, n, NULL, values, NULL, NULL, 0), what, e);
}

static bool pg_run_text(struct db_postgres *d, enum postgres_text text, const char *what, struct err *e)
{
	PGresult *r = postgres_run(d, d->db.sql->texts[text], what, e);

	PQclear(r);
	return r != NULL;
}

/* ---- open ---- */

static void clear_statement(struct pg_statement *s)
{
	PQclear(s->result);
	s->result = NULL;
	s->row = 0;
	s->sent = false;
}

static void pg_close(struct db *db)
{
	struct db_postgres *d = pg_db(db);

	if (!d)
		return;
	for (int i = 0; d->statements && i < db->sql->n_queries; i++) {
		clear_statement(&d->statements[i]);
		free(d->statements[i].values);
		free(d->statements[i].numbers);
	}
	PQfinish(d->c);
	free(d->queued);
	postgres_prefetch_drop(&d->db);
	free(d->prefetched);
	free(d->statements);
	free(d->where);
	free(d);
}

/* The pid of the server process that serves this session; false: no reply. */
static bool server_process_read(struct db_postgres *d, char ret[static 24], struct err *e)
{
	PGresult *r = postgres_run(d, d->db.sql->texts[TEXT_POSTGRES_PROCESS], "ask for the session", e);

	if (r)
		snprintf(ret, 24, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return r != NULL;
}

/*
 * Behind a pooler in transaction mode, a second connection gets the server process of this one, or
 * this connection gets another process. Prepared statements, session settings and notifications
 * cannot work there.
 */
static bool session_is_exclusive(struct db_postgres *d, struct err *e)
{
	struct db_postgres beside = {.db = d->db, .where = d->where, .lease = d->lease, .timeouts = d->timeouts};
	char mine[24], again[24], other[24];
	bool ok = server_process_read(d, mine, e) && postgres_connect(&beside, e) &&
		  server_process_read(&beside, other, e) && server_process_read(d, again, e);

	if (ok && (strcmp(mine, other) == 0 || strcmp(mine, again) != 0))
		ok = refuse_pooler(e);
	PQfinish(beside.c);
	return ok;
}

static bool pg_open(const struct db_options *o, struct db **ret, struct err *e)
{
	struct db_postgres *d = xcalloc(1, sizeof(*d));

	d->db = (struct db){.ops = &db_postgres_ops, .sql = o->sql ? o->sql : &postgres_sql, .pid = getpid()};
	d->where = xstrdup(o->where);
	d->read_only = o->read_only;
	d->lease = o->lease;
	d->timeouts = postgres_timeouts(o->lease);
	d->statements = xcalloc((size_t)d->db.sql->n_queries, sizeof(*d->statements));
	if (!postgres_address_check(d->where, e) || !postgres_connect(d, e) ||
	    (!o->read_only && !session_is_exclusive(d, e)) || !postgres_migrate(d, e)) {
		pg_close(&d->db);
		return false;
	}
	*ret = &d->db;
	return true;
}

/* ---- prepare ---- */

static bool check_shape(const struct db_query *q, const PGresult *r, struct err *e)
{
	if (PQnparams(r) != q->n_params || PQnfields(r) != q->n_columns)
		return err_set(e, ERR_INTERNAL, "statement '%s': %d parameters and %d columns", q->name, PQnparams(r),
			PQnfields(r));
	for (int i = 0; i < q->n_columns; i++) {
		Oid want = q->columns[i].type == DB_INT ? 20 : 25; /* int8, text */

		if (strcmp(PQfname(r, i), q->columns[i].name) != 0 || PQftype(r, i) != want)
			return err_set(e, ERR_INTERNAL, "statement '%s': column '%s' is '%s' of type %u", q->name,
				q->columns[i].name, PQfname(r, i), PQftype(r, i));
	}
	return true;
}

static bool prepare_one(struct db_postgres *d, int query, struct err *e)
{
	const struct db_query *q = &d->db.sql->queries[query];
	PGresult *r = result_or_error(d, postgres_usable(d) && PQsendPrepare(d->c, q->name, q->sql, 0, NULL), q->name, e);

	d->statements[query].prepared = r != NULL;
	PQclear(r);
	return r != NULL;
}

static bool check_one(struct db_postgres *d, int query, struct err *e)
{
	const struct db_query *q = &d->db.sql->queries[query];
	PGresult *r = result_or_error(d, postgres_usable(d) && PQsendDescribePrepared(d->c, q->name), q->name, e);
	bool ok = r && check_shape(q, r, e);

	PQclear(r);
	return ok;
}

/* Statements with pg_current_xact_id() and similar functions, which some compatible servers lack; see store/events.c. */
static bool needs_xids(int query)
{
	static const int queries[] = {Q_EVENTS_NUMBER, Q_EVENTS_RAISE, Q_EVENTS_SERVER, Q_EVENTS_SERVER_KNOWN, Q_EVENTS_INSERT_NUMBERED,
		Q_EVENTS_FRONTIER, Q_EVENTS_HELD, Q_EVENTS_HOLDER};

	for (size_t i = 0; i < ELEMENTS(queries); i++)
		if (queries[i] == query)
			return true;
	return false;
}

static bool pg_prepare(struct db *db, struct err *e)
{
	struct db_postgres *d = pg_db(db);

	for (int i = 0; i < db->sql->n_queries; i++) {
		const struct db_query *q = &db->sql->queries[i];
		struct pg_statement *s = &d->statements[i];

		if (!s->values) {
			s->values = xcalloc((size_t)q->n_params + 1, sizeof(*s->values));
			s->numbers = xcalloc((size_t)q->n_params + 1, sizeof(*s->numbers));
		}
		if (prepare_one(d, i, e) && check_one(d, i, e))
			continue;
		if (!needs_xids(i) || d->statements[i].prepared || e->kind != ERR_INTERNAL)
			return false;
		db->no_xids = true;
	}
	return true;
}

/*
 * Statements are prepared again when they are used first: preparing all at once takes hundreds of
 * round trips.
 */
static bool connect_again(struct db_postgres *d, struct err *e)
{
	for (int i = 0; i < d->db.sql->n_queries; i++)
		d->statements[i].prepared = false;
	postgres_pipeline_drop(d);
	return postgres_connect(d, e);
}

static bool pg_reconnect(struct db *db, int wait_ms, struct err *e)
{
	struct db_postgres *d = pg_db(db);
	usec_t deadline = clock_boot(&clock_system) + wait_ms * USEC_MSEC, give_up_at = db->give_up_at;
	bool there;

	db->give_up_at = 0; /* a slow connection attempt would take as long the next time */
	db_wait_mark(db, true);
	while (!(there = connect_again(d, e)) && clock_boot(&clock_system) < deadline && !db->leave_by)
		/* with jitter, so that not all nodes connect at once */
		nanosleep(&(struct timespec){.tv_nsec = (50 + io_random_upto(100)) * 1000000L}, NULL);
	db_wait_mark(db, false);
	db->give_up_at = give_up_at;
	return there;
}

/* ---- transactions ---- */

/* Whether the server has closed the connection, as far as this host knows. */
static bool closed_by_server(struct db_postgres *d)
{
	struct pollfd fd = {.fd = PQsocket(d->c), .events = POLLIN};

	for (int i = 0; i < 3 && poll(&fd, 1, 0) > 0; i++)
		if (!PQconsumeInput(d->c))
			return true;
	return PQstatus(d->c) == CONNECTION_BAD;
}

static bool begin_may_wait(struct db_postgres *d)
{
	return d->db.defer && postgres_usable(d) && clock_boot(&clock_system) - d->answered_at < IDLE_MAX &&
	       !closed_by_server(d);
}

static bool pg_begin(struct db *db, bool write, struct err *e)
{
	struct db_postgres *d = pg_db(db);

	d->notifies = false;
	if (write && begin_may_wait(d))
		return postgres_pipeline_text(d, TEXT_POSTGRES_BEGIN_WRITE, "begin", e);
	return pg_run_text(d, write ? TEXT_POSTGRES_BEGIN_WRITE : TEXT_POSTGRES_BEGIN_READ, "begin", e);
}

/*
 * A warning during COMMIT: the server has committed locally and no longer waits for its standbys,
 * because an administrator cancelled the wait or the server stops. A failover may lose the commit.
 */
bool postgres_commit_is_durable(const struct db_postgres *d, struct err *e)
{
	return !d->warning[0] ||
	       err_set(e, ERR_UNCERTAIN, "store at PostgreSQL: the commit may not be replicated: %s", d->warning);
}

static void pg_rollback(struct db *db)
{
	struct db_postgres *d = pg_db(db);
	struct err ignored;

	postgres_pipeline_flush(d, &ignored);
	if (d->c && PQtransactionStatus(d->c) != PQTRANS_IDLE)
		pg_run_text(d, TEXT_POSTGRES_ROLLBACK, "roll back", &ignored);
}

/*
 * After COMMIT was sent, a missing reply means that the outcome is unknown. The server does not
 * apply the statement timeout to the commit itself, and the client never cancels it.
 */
static bool pg_commit(struct db *db, struct err *e)
{
	struct db_postgres *d = pg_db(db);
	bool open = d->c && PQtransactionStatus(d->c) == PQTRANS_INTRANS;
	struct err ignored;
	PGresult *r;
	bool committed;

	if (db->defer) {
		committed = postgres_pipeline_commit(d, e);
		if (!committed)
			pg_rollback(db);
		return committed;
	}
	d->warning[0] = '\0';
	r = postgres_run(d, db->sql->texts[TEXT_POSTGRES_COMMIT], "commit", e);
	committed = r && strcmp(PQcmdStatus(r), "COMMIT") == 0;
	PQclear(r);
	if (!r && open && e->kind == ERR_UNREACHABLE)
		e->kind = ERR_UNCERTAIN;
	if (committed && !postgres_commit_is_durable(d, e))
		return false;
	if (r && !committed)
		err_set(e, ERR_INTERNAL, "store at PostgreSQL: the transaction was rolled back");
	if (committed && d->notifies)
		pg_run_text(d, TEXT_POSTGRES_NOTIFY, "notify", &ignored);
	return committed;
}

static void pg_notify_peers(struct db *db)
{
	pg_db(db)->notifies = true;
}

/* Runs the queries as one transaction in a single round trip. */
static bool pg_transact(struct db *db, const int *queries, size_t n, struct err *e)
{
	struct db_postgres *d = pg_db(db);
	bool ok = postgres_pipeline_text(d, TEXT_POSTGRES_BEGIN_WRITE, "begin", e);

	d->notifies = false;
	for (size_t i = 0; i < n && ok; i++)
		ok = postgres_pipeline_query(d, queries[i], true, e);
	if (ok && postgres_pipeline_commit(d, e))
		return true;
	pg_rollback(db);
	return false;
}

static bool pg_queue_text(struct db *db, enum postgres_text text, const char *what, struct err *e)
{
	return db->defer ? postgres_pipeline_text(pg_db(db), (int)text, what, e) : pg_run_text(pg_db(db), text, what, e);
}

static bool pg_savepoint(struct db *db, struct err *e)
{
	return pg_queue_text(db, TEXT_POSTGRES_SAVEPOINT, "savepoint", e);
}

static bool pg_release(struct db *db, struct err *e)
{
	return pg_queue_text(db, TEXT_POSTGRES_RELEASE, "release", e);
}

static bool pg_rollback_to(struct db *db, struct err *e)
{
	return pg_run_text(pg_db(db), TEXT_POSTGRES_ROLLBACK_TO, "roll back", e);
}

/* ---- statements ---- */

static void pg_bind_int(struct db *db, int query, int at, int64_t v)
{
	struct pg_statement *s = &pg_db(db)->statements[query];

	snprintf(s->numbers[at], sizeof(s->numbers[at]), "%" PRId64, v);
	s->values[at] = s->numbers[at];
}

static void pg_bind_text(struct db *db, int query, int at, const char *v)
{
	pg_db(db)->statements[query].values[at] = v;
}

static bool execute(struct db_postgres *d, int query, struct err *e)
{
	const struct db_query *q = &d->db.sql->queries[query];
	struct pg_statement *s = &d->statements[query];

	if (s->sent || postgres_pipeline_pending(d))
		return (s->sent || postgres_pipeline_query(d, query, true, e)) && postgres_pipeline_flush(d, e);
	if (!s->prepared && !prepare_one(d, query, e))
		return false;
	s->result = result_or_error(d, postgres_usable(d) && PQsendQueryPrepared(d->c, q->name, q->n_params, s->values, NULL, NULL, 0), q->name, e);
	s->row = -1;
	return s->result != NULL;
}

static bool pg_send(struct db *db, int query, struct err *e)
{
	bool there;

	if (!postgres_prefetch_take(pg_db(db), query, &there, e))
		return false;
	return there || postgres_pipeline_query(pg_db(db), query, true, e);
}

/* Statements without rows are sent without waiting for the reply, if the batch allows it. */
static bool reply_may_wait(const struct db_postgres *d, int query)
{
	return d->db.defer && d->db.writing && d->db.sql->queries[query].n_columns == 0 &&
	       (postgres_pipeline_pending(d) || (postgres_usable(d) && PQtransactionStatus(d->c) == PQTRANS_INTRANS));
}

static enum db_step pg_step(struct db *db, int query, struct err *e)
{
	struct db_postgres *d = pg_db(db);
	struct pg_statement *s = &d->statements[query];
	bool there;

	if (!s->result && !s->sent && reply_may_wait(d, query))
		return postgres_pipeline_query(d, query, false, e) ? DB_DONE : DB_FAILED;
	if (!s->result && !s->sent && !postgres_prefetch_take(d, query, &there, e))
		return DB_FAILED;
	if (!s->result && !execute(d, query, e))
		return DB_FAILED;
	return ++s->row < PQntuples(s->result) ? DB_ROW : DB_DONE;
}

static int64_t pg_column_int(struct db *db, int query, int at)
{
	const struct pg_statement *s = &pg_db(db)->statements[query];

	return PQgetisnull(s->result, s->row, at) ? 0 : strtoll(PQgetvalue(s->result, s->row, at), NULL, 10);
}

static const char *pg_column_text(struct db *db, int query, int at)
{
	const struct pg_statement *s = &pg_db(db)->statements[query];

	return PQgetisnull(s->result, s->row, at) ? NULL : PQgetvalue(s->result, s->row, at);
}

static void pg_reset(struct db *db, int query)
{
	clear_statement(&pg_db(db)->statements[query]);
}

/* No space is reserved on a database server: its disk is managed by its administrator. */
static bool pg_reserve_held(struct db *db)
{
	(void)db;
	return true;
}

static void pg_reserve_release(struct db *db)
{
	(void)db;
}

const struct db_ops db_postgres_ops = {
	.name = "postgresql",
	.row_locks = true,
	.reconnects = true,
	.open = pg_open,
	.close = pg_close,
	.prepare = pg_prepare,
	.reconnect = pg_reconnect,
	.begin = pg_begin,
	.commit = pg_commit,
	.rollback = pg_rollback,
	.notify = pg_notify_peers,
	.transact = pg_transact,
	.send = pg_send,
	.prefetch = postgres_prefetch,
	.prefetch_drop = postgres_prefetch_drop,
	.savepoint = pg_savepoint,
	.release = pg_release,
	.rollback_to = pg_rollback_to,
	.bind_int = pg_bind_int,
	.bind_text = pg_bind_text,
	.step = pg_step,
	.column_int = pg_column_int,
	.column_text = pg_column_text,
	.reset = pg_reset,
	.reserve_held = pg_reserve_held,
	.reserve_release = pg_reserve_release,
	.durability = postgres_durability,
};
