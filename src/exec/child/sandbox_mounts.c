/* SPDX-License-Identifier: Apache-2.0 */
/* What of the file systems a child sees, changed in a mount namespace of its own. */
#include "exec/child/in_child.h"
#include "exec/child/sandbox.h"
#include "exec/child/sandbox_paths.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TMP_OPTIONS "mode=1777,size=25%" /* of the machine's memory */

static const struct device {
	const char *path;
	unsigned major, minor;
} devices[] = {{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8},
	{"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};
static const struct {
	const char *path, *target;
} links[] = {{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
	{"/dev/stderr", "/proc/self/fd/2"}};

/* What is not there need not be covered, and what its owner cannot reach he cannot write to either. */
IN_CHILD static int error_unless_absent(int error)
{
	return sandbox_path_absent(error) ? 0 : error;
}

IN_CHILD static int mount_attr_set(const char *path, unsigned flags, uint64_t set, uint64_t clear, uint64_t propagation)
{
	struct mount_attr a = {.attr_set = set, .attr_clr = clear, .propagation = propagation};

	return mount_setattr(AT_FDCWD, path, flags, &a, sizeof(a)) < 0 ? errno : 0;
}

/* Paths that stay as they are on a read-only system: each with a mount of its own, made while it is still what it was. */
struct kept {
	struct {
		int place, tree; /* owned */
	} v[SANDBOX_PATHS_MAX + 3];
	size_t n;
};

IN_CHILD static int keep(struct kept *k, const char *path, const char *home)
{
	int place = sandbox_path_open(path, home), tree;

	if (place < 0)
		return error_unless_absent(-place);
	tree = open_tree(place, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0) {
		close(place);
		return errno;
	}
	k->v[k->n].place = place;
	k->v[k->n++].tree = tree;
	return 0;
}

IN_CHILD static int kept_add_all(struct kept *k, const struct fences *f, const char *home)
{
	const struct strv *paths = &f->profile.read_write;
	int error = 0;

	if (!f->profile.part[SANDBOX_TMP] && ((error = keep(k, "/tmp", home)) || (error = keep(k, "/var/tmp", home))))
		return error;
	if (!f->profile.part[SANDBOX_DEV] && (error = keep(k, "/dev/shm", home)))
		return error;
	for (size_t i = 0; i < paths->n && !error; i++)
		error = keep(k, paths->v[i], home);
	return error;
}

/* A kept mount is not attached while all others become read-only. One that was read-only before stays so. */
IN_CHILD static int mount_system(const struct fences *f, const char *home)
{
	struct kept k;
	int error;

	k.n = 0;
	error = kept_add_all(&k, f, home);
	if (!error)
		error = mount_attr_set("/", AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0, 0);
	for (size_t i = 0; i < k.n; i++) {
		if (!error && move_mount(k.v[i].tree, "", k.v[i].place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			error = errno;
		close(k.v[i].tree);
		close(k.v[i].place);
	}
	return error;
}

/* In a user namespace nobody makes devices: those of the machine are shown. */
IN_CHILD static int device_make(const struct device *d, int tree)
{
	int fd;

	if (tree < 0)
		return mknod(d->path, S_IFCHR | 0666, makedev(d->major, d->minor)) < 0 ? errno : 0;
	fd = open(d->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	close(fd);
	return move_mount(tree, "", AT_FDCWD, d->path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? errno : 0;
}

IN_CHILD static int mount_dev(const struct fences *f)
{
	int trees[ELEMENTS(devices)], error = 0;

	for (size_t i = 0; i < ELEMENTS(devices); i++)
		trees[i] = f->all->user_ns ? open_tree(AT_FDCWD, devices[i].path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
	umask(0);
	if (mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=25%") < 0)
		return errno;
	for (size_t i = 0; i < ELEMENTS(devices) && !error; i++)
		error = device_make(&devices[i], trees[i]);
	for (size_t i = 0; i < ELEMENTS(links) && !error; i++)
		error = symlink(links[i].target, links[i].path) < 0 ? errno : 0;
	if (!error && mkdir("/dev/shm", 01777) < 0)
		error = errno;
	for (size_t i = 0; i < ELEMENTS(devices); i++)
		if (trees[i] >= 0)
			close(trees[i]);
	return error;
}

IN_CHILD static int mount_tmp(void)
{
	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, TMP_OPTIONS) < 0)
		return errno;
	return mount("/tmp", "/var/tmp", NULL, MS_BIND, NULL) < 0 ? error_unless_absent(errno) : 0;
}

/* Outside of /run it is there, and who cannot mount on it will say so. */
IN_CHILD static void mount_point_create(const char *path)
{
	char part[SANDBOX_PATH_MAX];

	if (!path || !sandbox_path_expand(path, NULL, part))
		return;
	for (char *at = part + 1; *at; at++)
		if (*at == '/') {
			*at = '\0';
			(void)mkdir(part, 0755);
			*at = '/';
		}
	(void)mkdir(part, 0755);
}

/* Where sockets of services are, ours among them: whoever reaches one may have things done outside. */
IN_CHILD static int mount_run(const char *keep)
{
	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=4k") < 0)
		return error_unless_absent(errno);
	mount_point_create(keep);
	return mount_attr_set("/run", 0, MOUNT_ATTR_RDONLY, 0, 0);
}

IN_CHILD int sandbox_apply_mounts(const struct fences *f, const char *home, const char *keep)
{
	const uint8_t *part = f->profile.part;
	int error;

	if (!(f->namespaces & CLONE_NEWNS))
		return 0;
	/* what is mounted later does not come in where all is to be read-only */
	error = mount_attr_set("/", AT_RECURSIVE, 0, 0, part[SANDBOX_SYSTEM] ? MS_PRIVATE : MS_SLAVE);
	if (!error && part[SANDBOX_SYSTEM])
		error = mount_system(f, home);
	if (!error && part[SANDBOX_DEV])
		error = mount_dev(f);
	if (!error && part[SANDBOX_TMP])
		error = mount_tmp();
	if (!error && part[SANDBOX_RUN])
		error = mount_run(keep);
	return error;
}

/* Read-only: a job of root without capabilities could still write to what root owns in it. */
IN_CHILD int sandbox_apply_proc(const struct fences *f)
{
	if (!(f->namespaces & CLONE_NEWPID))
		return 0;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0 ? errno : 0;
}
