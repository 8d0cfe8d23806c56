/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the private directories of user mode; finds the programs that it starts. */
#include "daemon/loop/program_paths.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/file/paths.h"
#include "base/text.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The message names the socket of the daemon that uses the directory, if it has published it. */
static bool not_ours(const char *path, uid_t owner, const struct paths *p, struct err *e)
{
	AUTO_TEXT socket = paths_read_socket(p);
	struct passwd *pw = getpwuid(owner);
	AUTO_TEXT who = pw ? xstrdup(pw->pw_name) : xprintf("#%u", owner);

	if (socket)
		return err_set(e, ERR_REFUSED,
			"'%s' belongs to user '%s', whose daemon listens at '%s'; reach it with "
			"'sudo -u %s jobctl --socket %s', or set HOME and the XDG variables to your own",
			path, who, socket, who, socket);
	return err_set(e, ERR_REFUSED,
		"'%s' belongs to user '%s'; type 'sudo -u %s jobschedd --user', "
		"or set HOME and the XDG variables to your own",
		path, who, who);
}

/*
 * Root with the HOME of another user (sudo -E) would create directories there that the user cannot
 * use.
 */
static bool may_make(const char *path, const struct paths *p, struct err *e)
{
	AUTO_TEXT at = xstrdup(path);
	struct stat st;

	while (stat(at, &st) < 0 && errno == ENOENT && strrchr(at, '/') > at)
		*strrchr(at, '/') = '\0';
	return getuid() != 0 || stat(at, &st) < 0 || st.st_uid == 0 ||
	       not_ours(at, st.st_uid, p, e);
}

static bool own_directory(const char *path, const struct paths *p, struct err *e)
{
	struct stat link, st;
	int r = may_make(path, p, e) ? io_mkdirs(path, 0700) : 1;

	if (r)
		return r > 0 ? false : err_errno(e, -r, "could not make the directory '%s'", path);
	if (lstat(path, &link) < 0 || stat(path, &st) < 0)
		return err_errno(e, errno, "could not look at '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(
			e, ERR_REFUSED, "'%s' is not a directory; remove it or name another", path);
	if (link.st_uid != getuid() || st.st_uid != getuid())
		return not_ours(path, link.st_uid != getuid() ? link.st_uid : st.st_uid, p, e);
	if ((st.st_mode & 077) && chmod(path, 0700) < 0)
		return err_errno(e, errno, "could not make '%s' private", path);
	return true;
}

bool program_paths_prepare(const struct paths *p, struct err *e)
{
	return own_directory(p->state_dir, p, e) && own_directory(p->runtime_dir, p, e) &&
	       own_directory(p->output_dir, p, e);
}

static char *program(const char *variable, const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *named = getenv(variable);
	AUTO_TEXT beside = NULL;

	if (named && named[0] == '/')
		return xstrdup(named);
	if (n > 0) {
		self[n] = '\0';
		beside = xprintf("%s/%s", dirname(self), name);
		if (access(beside, X_OK) == 0)
			return STEAL(beside);
	}
	return xprintf(JOBSCHED_LIBEXECDIR "/%s", name);
}

char *program_paths_spawner(void)
{
	return program("JOBSCHED_SPAWNER_PATH", "jobsched-spawner");
}

char *program_paths_net(void)
{
	return program("JOBSCHED_NET_PATH", "jobsched-net");
}
