/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the daemon's socket: the named one, the user's or the system's. */
#include "jobctl/connect.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/file/paths.h"
#include "base/text.h"
#include "jobctl/contexts.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
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

/* ---- over TCP ---- */

static bool connect_url(struct ctl *c, const char *url, const char *token_file, const char *ca_file,
	struct err *e)
{
	AUTO_TEXT token = NULL;
	bool ok;

	if (token_file && !contexts_read_token(token_file, &token, e))
		return false;
	ok = http_client_open_remote(
		&(struct http_client_remote){.url = url, .token = token, .ca_file = ca_file},
		&c->client, e);
	if (token)
		explicit_bzero(token, strlen(token));
	if (!ok)
		return false;
	c->socket = xstrdup(url);
	c->remote = true;
	return true;
}

/* The context of --context, or the current one. *ret_used: there is one. */
static bool connect_context(struct ctl *c, bool *ret_used, struct err *e)
{
	json_auto_t *all = NULL;
	const json_t *one = NULL;
	const char *name;

	*ret_used = true;
	if (!contexts_read(&all, e))
		return false;
	name = c->context ? c->context : member_text(all, "current");
	if (!name) {
		*ret_used = false;
		return true;
	}
	return contexts_find(all, name, &one, e) &&
	       (connect_url(c, member_text(one, "url"),
			c->token_file ? c->token_file : member_text(one, "token_file"),
			c->ca_file ? c->ca_file : member_text(one, "ca_file"), e) ||
		       err_wrap(e, "context '%s'", name));
}

bool connect_daemon(struct ctl *c, struct err *e)
{
	AUTO_DONE(paths) user = {};
	AUTO_DONE(paths) system = {};
	bool used = false;

	if (c->client)
		return true;
	if (c->url && !c->context && !c->socket_given && c->where == WHERE_ANY && !c->instance)
		return connect_url(c, c->url, c->token_file, c->ca_file, e);
	if (!c->socket_given && c->where == WHERE_ANY && !c->instance &&
		(!connect_context(c, &used, e) || used))
		return used && c->client;
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
