/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the daemon's socket: the one named, the user's own, the system's. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "ctl.h"
#include "wire/client.h"
#include <string.h>

#define START_USER "start one with 'jobschedd --user"
#define START_SYSTEM "start it with 'systemctl start jobschedd'"
#define ONE_OF_SEVERAL "; one of several is named with --instance"

static bool is_set(const char *s)
{
	return s && *s;
}

/* Where 'jobschedd --user' listens for this environment; NULL when even HOME is unknown. */
static char *user_socket(const char *own)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (is_set(runtime))
		return xprintf("%s/jobsched%s/jobsched.sock", runtime, own);
	if (is_set(state))
		return xprintf("%s/jobsched/run%s/jobsched.sock", state, own);
	if (is_set(home))
		return xprintf("%s/.local/state/jobsched/run%s/jobsched.sock", home, own);
	return NULL;
}

static bool try_socket(struct ctl *c, const char *path, struct err *e)
{
	if (!client_open(path, &c->client, e))
		return false;
	c->socket = xstrdup(path);
	return true;
}

static bool advise(struct err *e, const char *advice)
{
	if (e && e->kind == ERR_UNREACHABLE)
		return err_set(e, ERR_UNREACHABLE, "no daemon answers (%s); %s", e->msg, advice);
	return false;
}

static bool connect_user(struct ctl *c, const char *path, struct err *e)
{
	if (!path)
		return err_set(e, ERR_UNREACHABLE,
			"cannot tell where your daemon listens: neither XDG_RUNTIME_DIR nor HOME "
			"is set; name it with --socket");
	return try_socket(c, path, e) || advise(e, START_USER "'");
}

/* The user's own if it answers, else the system's. */
static bool connect_either(struct ctl *c, const char *user, const char *system, struct err *e)
{
	if ((user && try_socket(c, user, NULL)) || try_socket(c, system, e))
		return true;
	if (!e || e->kind != ERR_UNREACHABLE)
		return false;
	if (c->instance)
		return err_set(e, ERR_UNREACHABLE, "no daemon answers at '%s' or '%s'; " START_USER " --instance %s'",
			user ? user : "(no user socket)", system, c->instance);
	return err_set(e, ERR_UNREACHABLE, "no daemon answers at '%s' or '%s'; " START_USER "' or 'systemctl start jobschedd'" ONE_OF_SEVERAL,
		user ? user : "(no user socket)", system);
}

bool ctl_connect(struct ctl *c, struct err *e)
{
	AUTO_TEXT own = c->instance ? xprintf("-%s", c->instance) : xstrdup("");
	AUTO_TEXT user = user_socket(own);
	AUTO_TEXT system = xprintf("/run/jobsched%s/jobsched.sock", own);

	if (c->client)
		return true;
	if (c->socket_given)
		return try_socket(c, c->socket_given, e) ||
		       advise(e, START_USER "' or 'systemctl start jobschedd', or name another --socket");
	if (c->where == WHERE_SYSTEM)
		return try_socket(c, system, e) || advise(e, START_SYSTEM);
	return c->where == WHERE_USER ? connect_user(c, user, e) : connect_either(c, user, system, e);
}
