/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the daemon's socket: the one named, the user's own, the system's. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "ctl.h"
#include "wire/client.h"
#include <string.h>

#define SYSTEM_SOCKET "/run/jobsched/jobsched.sock"
#define START_USER "start one with 'jobschedd --user'"
#define START_SYSTEM "start it with 'systemctl start jobschedd'"

static bool is_set(const char *s)
{
	return s && *s;
}

/* Where 'jobschedd --user' listens for this environment; NULL when even HOME is unknown. */
static char *user_socket(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (is_set(runtime))
		return xprintf("%s/jobsched/jobsched.sock", runtime);
	if (is_set(state))
		return xprintf("%s/jobsched/run/jobsched.sock", state);
	if (is_set(home))
		return xprintf("%s/.local/state/jobsched/run/jobsched.sock", home);
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

bool ctl_connect(struct ctl *c, struct err *e)
{
	AUTO_TEXT user = NULL;

	if (c->client)
		return true;
	if (c->socket_given)
		return try_socket(c, c->socket_given, e) ||
		       advise(e, START_USER " or 'systemctl start jobschedd', or name another --socket");
	if (c->where == WHERE_SYSTEM)
		return try_socket(c, SYSTEM_SOCKET, e) || advise(e, START_SYSTEM);
	user = user_socket();
	if (c->where == WHERE_USER) {
		if (!user)
			return err_set(e, ERR_UNREACHABLE,
				"cannot tell where your daemon listens: neither XDG_RUNTIME_DIR nor HOME "
				"is set; name it with --socket");
		return try_socket(c, user, e) || advise(e, START_USER);
	}
	if (user && try_socket(c, user, NULL))
		return true;
	if (try_socket(c, SYSTEM_SOCKET, e))
		return true;
	if (!e || e->kind != ERR_UNREACHABLE)
		return false;
	return err_set(e, ERR_UNREACHABLE,
		"no daemon answers at '%s' or '" SYSTEM_SOCKET "'; " START_USER
		" or 'systemctl start jobschedd'",
		user ? user : "(no user socket)");
}
