/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the daemon's socket: the named one, the user's or the system's. */
#include "jobctl/connect.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/paths.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "wire/http_client.h"
#include <string.h>

#define START_USER "start one with 'jobschedd --user"
#define START_SYSTEM "start it with 'systemctl start jobschedd'"
#define NAMED_INSTANCE "; --instance NAME selects a daemon that has a name"

static bool try_socket(struct ctl *c, const char *path, struct err *e)
{
	if (!http_client_open(path, &c->client, e))
		return false;
	c->socket = xstrdup(path);
	return true;
}

static bool add_advice(struct err *e, const char *advice)
{
	if (e && e->kind == ERR_UNREACHABLE)
		return err_set(e, ERR_UNREACHABLE, "no daemon answers (%s); %s", e->msg, advice);
	return false;
}

/*
 * Tries the socket path computed from this environment. A daemon that was started in another
 * environment (another XDG_RUNTIME_DIR, 'su', 'sudo') has written its path to a file in the state
 * directory.
 */
static bool try_user(struct ctl *c, const struct paths *p, struct err *e)
{
	AUTO_TEXT other = NULL;

	if (try_socket(c, p->socket, e))
		return true;
	other = paths_read_socket(p);
	return other && !text_equal(other, p->socket) && try_socket(c, other, NULL);
}

static bool connect_user(struct ctl *c, const struct paths *p, struct err *e)
{
	AUTO_TEXT advice = c->instance ? xprintf(START_USER " --instance %s'", c->instance)
				       : xstrdup(START_USER "'");

	return try_user(c, p, e) || add_advice(e, advice);
}

/* The user's daemon if it answers, else the system's. */
static bool connect_either(struct ctl *c, const struct paths *user, const char *system,
	struct err *e)
{
	if (try_user(c, user, NULL) || try_socket(c, system, e))
		return true;
	if (!e || e->kind != ERR_UNREACHABLE)
		return false;
	if (c->instance)
		return err_set(e, ERR_UNREACHABLE,
			"no daemon answers at '%s' or '%s'; " START_USER " --instance %s'",
			user->socket, system, c->instance);
	return err_set(e, ERR_UNREACHABLE,
		"no daemon answers at '%s' or '%s'; " START_USER
		"' or 'systemctl start jobschedd'" NAMED_INSTANCE,
		user->socket, system);
}

bool connect_daemon(struct ctl *c, struct err *e)
{
	AUTO_DONE(paths) user = {};
	AUTO_DONE(paths) system = {};

	if (c->client)
		return true;
	if (c->socket_given)
		return try_socket(c, c->socket_given, e) ||
		       add_advice(e, START_USER
			       "' or 'systemctl start jobschedd', or name another --socket");
	if (!paths_find(&(struct paths_options){.instance = c->instance}, &system, e))
		return false;
	if (c->where == WHERE_SYSTEM)
		return try_socket(c, system.socket, e) || add_advice(e, START_SYSTEM);
	if (!paths_find(&(struct paths_options){.user_mode = true, .instance = c->instance}, &user,
		    e))
		return c->where == WHERE_ANY && try_socket(c, system.socket, NULL);
	return c->where == WHERE_USER ? connect_user(c, &user, e)
				      : connect_either(c, &user, system.socket, e);
}
