/* SPDX-License-Identifier: Apache-2.0 */
/* Computes paths: XDG directories in user mode, fixed directories for the system's daemon. */
#include "base/file/paths.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define INSTANCE_MAX 32
#define SOCKET_FILE_MAX 4096

void paths_done(struct paths *p)
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
	free(p->socket_file);
	free(p->lock_end);
	*p = (struct paths){};
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

bool paths_find(const struct paths_options *o, struct paths *ret, struct err *e)
{
	AUTO_DONE(paths) p = {};
	const char *runtime = env_path("XDG_RUNTIME_DIR");
	AUTO_TEXT own = o->instance ? xprintf("-%s", o->instance) : xstrdup(""); /* instances share only the store */
	AUTO_TEXT config_dir = o->user_mode ? xdg_dir("XDG_CONFIG_HOME", ".config") : NULL;

	if (o->instance && !instance_valid(o->instance))
		return err_set(e, ERR_INVALID, "'%.80s' is not a valid name of an instance: letters, digits, '.', '_' and '-', at most %d",
			o->instance, INSTANCE_MAX);
	p.state_dir = o->state_dir  ? xstrdup(o->state_dir)
		      : o->user_mode ? xdg_dir("XDG_STATE_HOME", ".local/state")
				     : xstrdup(JOBSCHED_STATEDIR);
	p.runtime_dir = o->runtime_dir             ? xstrdup(o->runtime_dir)
			: !o->user_mode            ? xprintf("/run/jobsched%s", own)
			: runtime && !o->state_dir ? xprintf("%s/jobsched%s", runtime, own)
						   : xprintf("%s/run%s", p.state_dir, own);
	p.output_dir = o->output_dir  ? xstrdup(o->output_dir)
		       : o->user_mode ? xprintf("%s/output%s", p.state_dir, own)
				      : xprintf("%s-spawner%s/output", JOBSCHED_STATEDIR, own);
	p.socket = xprintf("%s/jobsched.sock", p.runtime_dir);
	p.spawner_socket = xprintf("%s/spawner.sock", p.runtime_dir);
	p.net_dir = xprintf("%s/net", p.runtime_dir);
	p.net_socket = xprintf("%s/net.sock", p.net_dir);
	p.net_state = o->user_mode ? xprintf("%s/artifacts%s", p.state_dir, own) : xprintf("%s-net%s", JOBSCHED_STATEDIR, own);
	p.config = xprintf("%s/jobschedd.conf", o->user_mode ? config_dir : JOBSCHED_SYSCONFDIR);
	p.socket_file = xprintf("%s/socket%s", p.state_dir, own);
	p.lock_end = xprintf("-lock%s%s", o->instance ? "." : "", o->instance ? o->instance : "");
	if (!fits_a_socket(p.spawner_socket, e) || !fits_a_socket(p.net_socket, e) || !fits_a_socket(p.socket, e))
		return false;
	*ret = p;
	p = (struct paths){};
	return true;
}

char *paths_resolve(const char *path)
{
	char *real = realpath(path, NULL);
	AUTO_TEXT for_dir = NULL;
	AUTO_TEXT for_name = NULL;
	AUTO_TEXT dir = NULL;
	struct stat st;

	if (real || errno != ENOENT)
		return real;
	if (lstat(path, &st) == 0) { /* a symbolic link to a file that does not exist */
		errno = ELOOP;
		return NULL;
	}
	for_dir = xstrdup(path);
	for_name = xstrdup(path);
	dir = realpath(dirname(for_dir), NULL);
	return dir ? xprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, basename(for_name)) : NULL;
}

/*
 * The file contains the path alone, or a line "socket PATH". It must be a regular file of this user
 * that only the owner can write; root accepts files of all users.
 */
static char *read_socket(const char *path)
{
	AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_DONE(buf) text = {};
	const char *at;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 022))
		return NULL;
	if (st.st_uid != geteuid() && geteuid() != 0)
		return NULL;
	if (io_read_all(fd, &text, SOCKET_FILE_MAX) < 0 || !text.data)
		return NULL;
	at = text.data[0] == '/' ? text.data : strstr(text.data, "\nsocket /");
	if (!at)
		return NULL;
	at = strchr(at, '/');
	return xstrndup(at, strcspn(at, "\n"));
}

char *paths_read_socket(const struct paths *p)
{
	AUTO_TEXT store = xprintf("%s/jobs.db", p->state_dir);
	AUTO_TEXT real = paths_resolve(store);
	AUTO_TEXT lock = real ? xprintf("%s%s", real, p->lock_end) : NULL;
	char *socket = read_socket(p->socket_file);

	return socket || !lock ? socket : read_socket(lock);
}
