/* SPDX-License-Identifier: Apache-2.0 */
/* Creates detached read-only mounts of directories that were received through a socket. */
#include "exec/child/artifact_mount.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool artifact_mount_valid(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

bool artifact_mount_path(int dir, char **ret, struct err *e)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || path[0] != '/')
		return err_errno(e, n < 0 ? errno : ENOENT,
			"the path of the artifact directory is not known");
	*ret = xstrndup(path, (size_t)n);
	return true;
}

/* Opens the same directory in the own mount namespace, without following links. */
static int directory_reopen(int dir)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	AUTO_TEXT path = NULL;
	struct stat a, b;
	AUTO_FD fd = -1;

	if (!artifact_mount_path(dir, &path, NULL))
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (fstat(dir, &a) < 0 || fstat(fd, &b) < 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return -ESTALE;
	return STEAL_FD(fd);
}

static int tree_clone(int dir)
{
	return open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

bool artifact_mount_create(int dir, int *ret, struct err *e)
{
	struct mount_attr locked = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE};
	AUTO_FD tree = tree_clone(dir);

	if (tree < 0 && errno == EINVAL) {
		AUTO_FD same = directory_reopen(dir);

		if (same < 0)
			return err_errno(
				e, -same, "the artifact directory cannot be opened by its path");
		tree = tree_clone(same);
	}
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &locked, sizeof(locked)) < 0)
		return err_errno(e, errno, "could not mount the artifact");
	*ret = STEAL_FD(tree);
	return true;
}
