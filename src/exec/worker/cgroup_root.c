/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the delegated cgroup directory; removes stale groups in it. */
#include "exec/worker/cgroup_root.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define CGROUP2_MAGIC 0x63677270
#define SWEEP_LIMIT (10 * USEC_SEC)
#define FILE_MAX (1 << 20)

/* ---- location ---- */

/* The mount point of the cgroup2 file system, and the group that is mounted there. */
static bool cgroup2_mount_find(char **ret_at, char **ret_root)
{
	AUTO_DONE(buf) text = {};
	char *rest, *line;

	if (io_read_file("/proc/self/mountinfo", &text, FILE_MAX) < 0 || !text.data)
		return false;
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *type = strstr(line, " - ");
		char *word = NULL, *root, *at;

		if (!type || !text_starts(type, " - cgroup2 "))
			continue;
		strtok_r(line, " ", &word);
		strtok_r(NULL, " ", &word);
		strtok_r(NULL, " ", &word);
		root = strtok_r(NULL, " ", &word);
		at = strtok_r(NULL, " ", &word);
		if (!at || strchr(at, '\\'))
			continue; /* a path with escaped blanks is not supported */
		*ret_at = xstrdup(at);
		*ret_root = xstrdup(root);
		return true;
	}
	return false;
}

static char *own_cgroup_path(void)
{
	AUTO_DONE(buf) text = {};
	char *rest;

	if (io_read_file("/proc/self/cgroup", &text, FILE_MAX) < 0 || !text.data)
		return NULL;
	for (char *line = strtok_r(text.data, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest))
		if (text_starts(line, "0::/"))
			return xstrdup(line + 3);
	return NULL;
}

/*
 * systemd marks a delegated group with an extended attribute. For users other than root, write
 * access is enough.
 */
static bool delegated(const char *path)
{
	static const char *const names[] = {"trusted.delegate", "user.delegate"};
	AUTO_TEXT procs = xprintf("%s/cgroup.procs", path);
	char value[8];

	if (geteuid() != 0)
		return access(path, W_OK) == 0 && access(procs, W_OK) == 0;
	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

static char *delegated_cgroup_find(void)
{
	AUTO_TEXT at = NULL;
	AUTO_TEXT root = NULL;
	AUTO_TEXT group = own_cgroup_path();
	AUTO_TEXT path = NULL;
	size_t skip;

	if (!group || !cgroup2_mount_find(&at, &root))
		return NULL;
	skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(group, root, skip) != 0)
		return NULL;
	path = xprintf("%s%s", at, group + skip);
	if (path[strlen(path) - 1] == '/')
		path[strlen(path) - 1] = '\0';
	return delegated(path) ? STEAL(path) : NULL;
}

bool cgroup_root_find(const char *where, char **ret, struct err *e)
{
	struct statfs fs;
	mode_t mask;
	int r;

	*ret = NULL;
	if (strcmp(where, "none") == 0)
		return true;
	if (strcmp(where, "auto") == 0) {
		*ret = delegated_cgroup_find();
		return true;
	}
	if (where[0] != '/')
		return err_set(e, ERR_INVALID,
			"the control group '%s' is not 'auto', 'none' or an absolute path", where);
	mask = umask(022);
	r = mkdir(where, 0755);
	umask(mask);
	if (r < 0 && errno != EEXIST)
		return err_errno(e, errno, "could not create the control group '%s'", where);
	if (statfs(where, &fs) < 0 || fs.f_type != CGROUP2_MAGIC)
		return err_set(e, ERR_INVALID, "'%s' is not in a cgroup2 file system", where);
	*ret = xstrdup(where);
	return true;
}

/* ---- groups of an earlier spawner ---- */

static bool dir_is_populated(int dir)
{
	AUTO_DONE(buf) text = {};

	return cgroup_read(dir, "cgroup.events", &text) == 0 && text.data &&
		strstr(text.data, "populated 1");
}

/* The files of a group disappear with it, so only directories are removed. */
void cgroup_root_remove_below(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		AUTO_FD below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below >= 0)
			cgroup_root_remove_below(below);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

void cgroup_root_clear(int dir, const char *path)
{
	usec_t until = clock_boot(&clock_system) + SWEEP_LIMIT;

	if (dir_is_populated(dir)) {
		log_warning("killing processes of an earlier spawner in '%s'", path);
		(void)cgroup_write(dir, "cgroup.kill", "1");
		while (dir_is_populated(dir) && clock_boot(&clock_system) < until)
			poll(NULL, 0, 5);
		if (dir_is_populated(dir))
			log_error("some processes in '%s' could not be killed; continuing", path);
	}
	cgroup_root_remove_below(dir);
}
