/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the first reachable PostgreSQL server of a connection string, with timeouts. */
#include "base/err.h"
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/backend/queries.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_MAX (15 * USEC_SEC) /* for the whole connection setup, if the server replies to each step */
#define STEP_MS 1000                /* for a step of the setup, if there are several servers */
#define PATIENT_ROUND 4             /* every fourth round through the servers has the timeout of a reply */
#define DEFAULT_PORT "5432"
#define OLDEST_SERVER 130000

static int at_most(int ms, usec_t t)
{
	return t / USEC_MSEC < ms ? (int)(t / USEC_MSEC) : ms;
}

struct pg_timeouts postgres_timeouts(usec_t lease)
{
	usec_t l = lease ? lease : USEC_NEVER;

	return (struct pg_timeouts){.lock_ms = at_most(2000, l / 6), .statement_ms = at_most(5000, l / 4), .answer_ms = at_most(8000, l / 3)};
}

/* Keeps warnings, which matter during COMMIT. Without a receiver libpq would print them to stderr. */
static void on_notice(void *arg, const PGresult *notice)
{
	struct db_postgres *d = arg;
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

	if (text_equal(severity, "WARNING"))
		snprintf(d->warning, sizeof(d->warning), "%s", text ? text : "a warning without text");
}

/* ---- which servers ---- */

/* One server of a connection string with several hosts. NULL members are taken from the string. */
struct server {
	char *host, *hostaddr, *port; /* owned */
};

static void server_done(struct server *s)
{
	free(s->host);
	free(s->hostaddr);
	free(s->port);
}

static size_t list_count(const char *list)
{
	size_t n = 1;

	for (const char *at = list; at && (at = strchr(at, ',')); at++)
		n++;
	return n;
}

/* The n-th element of a comma-separated list; a single element applies to all hosts. */
static char *list_nth(const char *list, size_t n)
{
	if (!list || !list[0])
		return NULL;
	for (size_t last = list_count(list) - 1; n > 0 && last > 0; n--, last--)
		list = strchr(list, ',') + 1;
	return xstrndup(list, strcspn(list, ","));
}

static const char *conninfo_value(const PQconninfoOption *all, const char *name)
{
	for (; all && all->keyword; all++)
		if (text_equal(all->keyword, name))
			return all->val;
	return NULL;
}

/*
 * The number of servers named by the connection string, the environment and the service file
 * together.
 */
static size_t servers_count(PGconn *c)
{
	PQconninfoOption *all = PQconninfo(c);
	const char *host = conninfo_value(all, "host"), *addr = conninfo_value(all, "hostaddr");
	size_t n = list_count(addr && addr[0] ? addr : host);

	PQconninfoFree(all);
	return n;
}

static void server_nth(PGconn *c, size_t n, struct server *ret)
{
	PQconninfoOption *all = PQconninfo(c);

	*ret = (struct server){.host = list_nth(conninfo_value(all, "host"), n), .hostaddr = list_nth(conninfo_value(all, "hostaddr"), n),
		.port = list_nth(conninfo_value(all, "port"), n)};
	PQconninfoFree(all);
	if (ret->port && !ret->port[0]) { /* an empty value would not replace the list of ports */
		free(ret->port);
		ret->port = xstrdup(DEFAULT_PORT);
	}
}

/*
 * libpq may quote the whole connection string with its password in the error message, so the quote
 * is cut off.
 */
bool postgres_address_check(const char *where, struct err *e)
{
	char *why = NULL;
	PQconninfoOption *all = PQconninfoParse(where, &why);
	const char *quoted = why ? strstr(why, ": \"postgres") : NULL;
	bool sound = all != NULL;

	if (!sound)
		err_set(e, ERR_INVALID, "'store' is not a valid PostgreSQL connection string: %.*s",
			quoted ? (int)(quoted - why) : why ? (int)strcspn(why, "\n") : 0, why ? why : "");
	PQfreemem(why);
	PQconninfoFree(all);
	return sound;
}

/* ---- one server ---- */

static PGconn *connect_start(const struct db_postgres *d, const struct server *s)
{
	char silence[16];
	/* Later entries win, so that the connection string in dbname overrides the first six. */
	const char *const names[] = {"keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
		"target_session_attrs", "fallback_application_name", "dbname", "client_encoding", "host", "hostaddr", "port", NULL};
	const char *const values[] = {"3", "2", "3", silence, "read-write", "jobsched", d->where, "UTF8", s->host, s->hostaddr, s->port, NULL};

	snprintf(silence, sizeof(silence), "%d", d->timeouts.answer_ms);
	return PQconnectStartParams(names, values, 1);
}

/* Each step of the setup has the timeout 'step_ms'. */
static bool connect_poll(struct db_postgres *d, int step_ms)
{
	usec_t end = clock_boot(&clock_system) + CONNECT_MAX;
	PostgresPollingStatusType next = PQstatus(d->c) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;

	while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
		usec_t silent = clock_boot(&clock_system) + step_ms * USEC_MSEC;

		if (!postgres_wait(d, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, silent < end ? silent : end))
			return false;
		next = PQconnectPoll(d->c);
	}
	return next == PGRES_POLLING_OK;
}

static bool connect_finish(struct db_postgres *d, int step_ms, struct err *e)
{
	const char *why;

	if (connect_poll(d, step_ms))
		return true;
	why = PQstatus(d->c) == CONNECTION_BAD ? PQerrorMessage(d->c) : "no answer";
	err_set(e, ERR_UNREACHABLE, "could not connect to the store at PostgreSQL: %.*s", (int)strcspn(why, "\n"), why);
	PQfinish(STEAL(d->c));
	return false;
}

/* Tries the n servers of 'all', beginning with the one that was used last. */
static bool connect_to_each(struct db_postgres *d, PGconn *all, size_t n, int step_ms, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_DONE(server) s = {};
		size_t at = (d->server + i) % n;

		server_nth(all, at, &s);
		d->c = connect_start(d, &s);
		if (connect_finish(d, step_ms, e)) {
			d->server = at;
			return true;
		}
	}
	return false;
}

/*
 * libpq can try several servers itself, but hangs on a server that accepts the connection and never
 * replies. A server that is cut off from the network must not delay the others for long, so most
 * rounds have a short timeout; the others find a server that is slow.
 */
static bool connect_to_any(struct db_postgres *d, struct err *e)
{
	PGconn *all = connect_start(d, &(struct server){});
	size_t n = servers_count(all);
	int step_ms = d->timeouts.answer_ms;
	bool ok;

	d->servers = n;
	if (n == 1) {
		d->c = all;
		return connect_finish(d, step_ms, e);
	}
	if (++d->rounds % PATIENT_ROUND != 0 && step_ms > STEP_MS)
		step_ms = STEP_MS;
	ok = connect_to_each(d, all, n, step_ms, e);
	if (ok)
		d->rounds = 0;
	PQfinish(all);
	return ok;
}

bool postgres_connect(struct db_postgres *d, struct err *e)
{
	bool there;

	PQfinish(STEAL(d->c));
	db_wait_mark(&d->db, true);
	there = connect_to_any(d, e);
	db_wait_mark(&d->db, false);
	if (!there)
		return false;
	PQsetNoticeReceiver(d->c, on_notice, d);
	PQsetnonblocking(d->c, 1);
	if (PQserverVersion(d->c) < OLDEST_SERVER)
		return err_set(e, ERR_REFUSED, "the PostgreSQL server is version %d, jobsched needs 13 or newer",
			PQserverVersion(d->c) / 10000);
	return postgres_session_setup(d, e);
}
