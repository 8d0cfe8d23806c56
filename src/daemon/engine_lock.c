/* SPDX-License-Identifier: Apache-2.0 */
/* Makes this daemon the only one that uses the SQLite file. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/config.h"
#include "daemon/loop/exit_status.h"
#include "daemon/engine_private.h"
#include "daemon/loop/lock_guard_process.h"
#include "store/backend/file_lock.h"
#include "store/backend/file_system.h"
#include <errno.h>
#include <string.h>

char *engine_store_where(const struct config *c, const struct paths *p)
{
	AUTO_TEXT where = c->store ? xstrdup(c->store) : xprintf("%s/jobs.db", p->state_dir);
	AUTO_TEXT real = config_store_is_server(where) ? NULL : paths_resolve(where);

	return real ? STEAL(real) : STEAL(where);
}

static char *own_socket(const struct engine *g)
{
	AUTO_TEXT real = paths_resolve(g->o.paths->socket);

	return real ? STEAL(real) : xstrdup(g->o.paths->socket);
}

bool engine_lock_store(struct engine *g, struct err *e)
{
	AUTO_TEXT socket = own_socket(g);
	enum file_system_verdict verdict;
	AUTO_TEXT type = NULL;

	if (config_store_is_server(g->store_where))
		return true;
	if (!file_system_check(g->store_where, &verdict, &type, e))
		return false;
	if (verdict == FILE_SYSTEM_UNKNOWN)
		log_warning(
			"store '%s' is on '%s', which may be shared with other machines: only this machine may use the file",
			g->store_where, type);
	return file_lock_take(&(struct file_lock_options){.where = g->store_where,
				      .instance = g->o.instance,
				      .node_name = g->o.config->node_name,
				      .node = g->o.node_name,
				      .socket = socket},
		&g->file_lock, e);
}

static char *published_line(const struct engine *g)
{
	AUTO_TEXT socket = own_socket(g);

	return xprintf("%s\n", socket);
}

/*
 * The same as after kill -9: uncommitted work was not acknowledged, and the WAL stays for the next
 * daemon.
 */
static void on_missing(void *arg)
{
	const struct engine *g = arg;

	log_error(
		"this process has lost its locks on the store '%s': it has closed a descriptor of the file; exiting at once, "
		"because nothing may be written without the locks; the service manager restarts it, or type 'jobschedd%s'",
		g->store_where, g->o.user_mode ? " --user" : "");
	_exit(EXIT_TRY_AGAIN);
}

bool engine_publish_socket(struct engine *g, struct err *e)
{
	AUTO_TEXT line = published_line(g);
	int r;

	if (g->file_lock && !file_lock_take_inode(g->file_lock, e))
		return false;
	if (g->file_lock)
		g->guard = lock_guard_process_new(
			g->ev, &(struct lock_guard_process_options){.where = g->store_where,
				       .shared = file_lock_fd(g->file_lock),
				       .on_missing = on_missing,
				       .arg = g});
	r = io_write_file(g->o.paths->socket_file, line, strlen(line), 0600);
	if (r < 0)
		log_warning(
			"could not write '%s', so clients with another XDG_RUNTIME_DIR cannot find this daemon: %s",
			g->o.paths->socket_file, strerror(-r));
	return true;
}

static void withdraw_socket(const struct engine *g)
{
	AUTO_TEXT line = published_line(g);
	AUTO_DONE(buf) text = {};

	if (io_read_file(g->o.paths->socket_file, &text, 4096) == 0 && text_equal(text.data, line))
		unlink(g->o.paths->socket_file);
}

void engine_unlock_store(struct engine *g)
{
	if (g->store)
		withdraw_socket(g);
	file_lock_free(g->file_lock);
}
