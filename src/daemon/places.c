/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: XDG directories for a user, the usual ones for the system. */
#include "daemon/places.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define INSTANCE_MAX 32

void places_done(struct places *p)
{
	free(p->state_dir);
	free(p->runtime_dir);
	free(p->output_dir);
	free(p->socket);
	free(p->spawner_socket);
	free(p->net_dir);
	free(p->net_socket);
	free(p->net_state);
	free(p->config);
	*p = (struct places){};
}

static const char *env_path(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

static char *home_dir(void)
{
	const char *home = env_path("HOME");
	struct passwd *pw = home ? NULL : getpwuid(getuid());

	return xstrdup(home ? home : pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/");
}

static char *xdg_dir(const char *variable, const char *under_home)
{
	AUTO_TEXT home = home_dir();
	const char *value = env_path(variable);

	return value ? xprintf("%s/jobsched", value) : xprintf("%s/%s/jobsched", home, under_home);
}

static bool own_directory(const char *path, struct err *e)
{
	struct stat st;
	int r = io_mkdirs(path, 0700);

	if (r < 0)
		return err_errno(e, -r, "could not make the directory '%s'", path);
	if (lstat(path, &st) < 0)
		return err_errno(e, errno, "could not look at '%s'", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid())
		return err_set(e, ERR_REFUSED, "'%s' is not a directory of yours; remove it or name another", path);
	if ((st.st_mode & 077) && chmod(path, 0700) < 0)
		return err_errno(e, errno, "could not make '%s' private", path);
	return true;
}

static bool fits_a_socket(const char *path, struct err *e)
{
	if (strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path))
		return true;
	return err_set(e, ERR_INVALID,
		"the socket path '%s' is longer than the kernel takes; give a shorter --runtime-dir", path);
}

static bool instance_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= INSTANCE_MAX && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

bool places_find(bool user_mode, const char *instance, const char *state_dir, const char *runtime_dir, const char *output_dir,
	struct places *ret, struct err *e)
{
	AUTO_DONE(places) p = {};
	const char *runtime = env_path("XDG_RUNTIME_DIR");
	AUTO_TEXT own = instance ? xprintf("-%s", instance) : xstrdup(""); /* instances share the store and nothing else */
	AUTO_TEXT config_dir = user_mode ? xdg_dir("XDG_CONFIG_HOME", ".config") : NULL;

	if (instance && !instance_valid(instance))
		return err_set(e, ERR_INVALID, "'%.80s' is no name of an instance: letters, digits, '.', '_' and '-', at most %d",
			instance, INSTANCE_MAX);
	p.state_dir = state_dir  ? xstrdup(state_dir)
		      : user_mode ? xdg_dir("XDG_STATE_HOME", ".local/state")
				  : xstrdup(JOBSCHED_STATEDIR);
	p.runtime_dir = runtime_dir            ? xstrdup(runtime_dir)
			: !user_mode           ? xprintf("/run/jobsched%s", own)
			: runtime && !state_dir ? xprintf("%s/jobsched%s", runtime, own)
						: xprintf("%s/run%s", p.state_dir, own);
	p.output_dir = output_dir  ? xstrdup(output_dir)
		       : user_mode ? xprintf("%s/output%s", p.state_dir, own)
				   : xprintf("%s-spawner%s/output", JOBSCHED_STATEDIR, own);
	p.socket = xprintf("%s/jobsched.sock", p.runtime_dir);
	p.spawner_socket = xprintf("%s/spawner.sock", p.runtime_dir);
	p.net_dir = xprintf("%s/net", p.runtime_dir);
	p.net_socket = xprintf("%s/net.sock", p.net_dir);
	p.net_state = user_mode ? xprintf("%s/artifacts%s", p.state_dir, own) : xprintf("%s-net%s", JOBSCHED_STATEDIR, own);
	p.config = xprintf("%s/jobschedd.conf", user_mode ? config_dir : JOBSCHED_SYSCONFDIR);
	if (!fits_a_socket(p.spawner_socket, e) || !fits_a_socket(p.net_socket, e) || !fits_a_socket(p.socket, e))
		return false;
	if (user_mode && (!own_directory(p.state_dir, e) || !own_directory(p.runtime_dir, e) ||
				 !own_directory(p.output_dir, e)))
		return false;
	*ret = p;
	p = (struct places){};
	return true;
}

static char *program(const char *variable, const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *named = env_path(variable);
	AUTO_TEXT beside = NULL;

	if (named)
		return xstrdup(named);
	if (n > 0) {
		self[n] = '\0';
		beside = xprintf("%s/%s", dirname(self), name);
		if (access(beside, X_OK) == 0)
			return STEAL(beside);
	}
	return xprintf(JOBSCHED_LIBEXECDIR "/%s", name);
}

char *places_spawner_program(void)
{
	return program("JOBSCHED_SPAWNER_PATH", "jobsched-spawner");
}

char *places_net_program(void)
{
	return program("JOBSCHED_NET_PATH", "jobsched-net");
}
