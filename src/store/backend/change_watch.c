/* SPDX-License-Identifier: Apache-2.0 */
/* Listens for PostgreSQL notifications, or watches the WAL file of a SQLite store. */
#include "store/backend/change_watch.h"
#include "base/err.h"
#include "base/file/inotify.h"
#include "base/text.h"
#include "store/backend/db.h"
#ifdef HAVE_POSTGRES
#include "store/backend/postgres.h"
#include "store/backend/queries.h"
#endif
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>

struct change_watch {
	int inotify;        /* -1: PostgreSQL */
	char *log;          /* owned: the file name of the WAL */
	struct db *server;  /* owned; NULL: SQLite */
	char *node;         /* owned: the listening node */
};

void change_watch_free(struct change_watch *w)
{
	if (!w)
		return;
	if (w->server)
		w->server->ops->close(w->server);
	if (w->inotify >= 0)
		close(w->inotify);
	free(w->log);
	free(w->node);
	free(w);
}

/* ---- SQLite: each commit writes the WAL; it is created again after the last process has closed the store ---- */

static bool wal_watch(struct change_watch *w, const char *where, struct err *e)
{
	AUTO_TEXT for_dir = xstrdup(where);
	AUTO_TEXT for_name = xstrdup(where);

	w->log = xprintf("%s-wal", basename(for_name));
	if (!inotify_new(&w->inotify, e))
		return false;
	if (inotify_add_watch(w->inotify, dirname(for_dir), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		return err_errno(e, errno, "could not watch the store '%s'", where);
	return true;
}

static bool wal_events_read(struct change_watch *w, bool *ret, struct err *e)
{
	char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	*ret = false;
	while ((n = read(w->inotify, events, sizeof(events))) > 0)
		for (char *at = events; at < events + n;) {
			const struct inotify_event *ev = (const struct inotify_event *)at;

			*ret = *ret || (ev->mask & IN_Q_OVERFLOW) || (ev->len > 0 && text_equal(ev->name, w->log));
			at += sizeof(*ev) + ev->len;
		}
	return (n < 0 && errno == EAGAIN) || err_errno(e, n < 0 ? errno : EPIPE, "could not watch the store");
}

/* ---- PostgreSQL ---- */

#ifdef HAVE_POSTGRES
static struct db_postgres *session(const struct change_watch *w)
{
	return (struct db_postgres *)w->server;
}

static bool session_listen(struct change_watch *w, const char *where, struct err *e)
{
	PGresult *r;

	if (!db_postgres_ops.open(&(struct db_options){.where = where, .read_only = true}, &w->server, e))
		return false;
	r = postgres_run(session(w), w->server->sql->texts[TEXT_POSTGRES_LISTEN], "listen", e);
	PQclear(r);
	return r != NULL;
}

static bool notifications_read(struct change_watch *w, bool *ret, struct err *e)
{
	PGnotify *n;

	*ret = false;
	if (!PQconsumeInput(session(w)->c) || PQstatus(session(w)->c) != CONNECTION_OK)
		return postgres_fail(session(w), NULL, "listen", e);
	while ((n = PQnotifies(session(w)->c))) {
		*ret = *ret || !*n->extra || text_equal(n->extra, w->node);
		PQfreemem(n);
	}
	return true;
}
#endif

bool change_watch_open(const char *where, const char *node, struct change_watch **ret, struct err *e)
{
	AUTO(change_watch) *w = xcalloc(1, sizeof(*w));
	const struct db_ops *ops = db_ops_for(where, e);

	w->inotify = -1;
	w->node = xstrdup(node);
	if (!ops)
		return false;
#ifdef HAVE_POSTGRES
	if (ops->reconnects && !session_listen(w, where, e))
		return false;
#endif
	if (!ops->reconnects && !wal_watch(w, where, e))
		return false;
	*ret = STEAL(w);
	return true;
}

int change_watch_fd(const struct change_watch *w)
{
#ifdef HAVE_POSTGRES
	if (w->server)
		return PQsocket(session(w)->c);
#endif
	return w->inotify;
}

bool change_watch_take(struct change_watch *w, bool *ret, struct err *e)
{
#ifdef HAVE_POSTGRES
	if (w->server)
		return notifications_read(w, ret, e);
#endif
	return wal_events_read(w, ret, e);
}
