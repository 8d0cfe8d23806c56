/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the mount namespace of a sandboxed child. */
#include "exec/child/in_child.h"
#include "exec/child/sandbox.h"
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
} links[] = {{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"},
	{"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}};

/*
 * A missing path needs no mount, and a path that the owner cannot reach cannot be written by the
 * job.
 */
static IN_CHILD int error_unless_absent(int error)
{
	return sandbox_path_absent(error) ? 0 : error;
}

static IN_CHILD int mount_attr_set(
	const char *path, unsigned flags, uint64_t set, uint64_t clear, uint64_t propagation)
{
	struct mount_attr a = {.attr_set = set, .attr_clr = clear, .propagation = propagation};

	return mount_setattr(AT_FDCWD, path, flags, &a, sizeof(a)) < 0 ? errno : 0;
}

/*
 * Paths that stay writable on a read-only system. Each gets a mount, cloned before the system
 * becomes read-only.
 */
struct writable {
	struct {
		int path, mount; /* owned descriptors */
	} v[SANDBOX_PATHS_MAX + 3];
	size_t n;
};

static IN_CHILD int writable_add(struct writable *w, const char *path, const char *home)
{
	int fd = sandbox_path_open(path, home), mount;

	if (fd < 0)
		return error_unless_absent(-fd);
	mount = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (mount < 0) {
		close(fd);
		return errno;
	}
	w->v[w->n].path = fd;
	w->v[w->n++].mount = mount;
	return 0;
}

static IN_CHILD int writable_add_all(
	struct writable *w, const struct sandbox_prepared *f, const char *home)
{
	const struct strv *paths = &f->profile.read_write;
	int error = 0;

	if (!f->profile.part[SANDBOX_TMP] &&
		((error = writable_add(w, "/tmp", home)) ||
			(error = writable_add(w, "/var/tmp", home))))
		return error;
	if (!f->profile.part[SANDBOX_DEV] && (error = writable_add(w, "/dev/shm", home)))
		return error;
	for (size_t i = 0; i < paths->n && !error; i++)
		error = writable_add(w, paths->v[i], home);
	return error;
}

/*
 * The cloned mounts are attached after all others have become read-only. A mount that was read-only
 * before stays read-only.
 */
static IN_CHILD int mount_system(const struct sandbox_prepared *f, const char *home)
{
	struct writable w;
	int error;

	w.n = 0;
	error = writable_add_all(&w, f, home);
	if (!error)
		error = mount_attr_set("/", AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0, 0);
	for (size_t i = 0; i < w.n; i++) {
		if (!error && move_mount(w.v[i].mount, "", w.v[i].path, "",
				      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
			error = errno;
		close(w.v[i].mount);
		close(w.v[i].path);
	}
	return error;
}

/* mknod() is not allowed in a user namespace; there the devices of the system are bind-mounted. */
static IN_CHILD int device_make(const struct device *d, int tree)
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

static IN_CHILD int mount_dev(const struct sandbox_prepared *f)
{
	int trees[ELEMENTS(devices)], error = 0;

	for (size_t i = 0; i < ELEMENTS(devices); i++)
		trees[i] = f->all->user_ns
			? open_tree(AT_FDCWD, devices[i].path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
			: -1;
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

static IN_CHILD int mount_tmp(void)
{
	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, TMP_OPTIONS) < 0)
		return errno;
	return mount("/tmp", "/var/tmp", NULL, MS_BIND, NULL) < 0 ? error_unless_absent(errno) : 0;
}

/*
 * Outside of /run the directory exists. If it cannot be created, the later mount fails and reports
 * the error.
 */
static IN_CHILD void mount_point_create(const char *path)
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

/*
 * /run has the sockets of services, jobsched included, through which a job could act outside of its
 * sandbox.
 */
static IN_CHILD int mount_run(const char *mount_point)
{
	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    "mode=755,size=4k") < 0)
		return error_unless_absent(errno);
	mount_point_create(mount_point);
	return mount_attr_set("/run", 0, MOUNT_ATTR_RDONLY, 0, 0);
}

IN_CHILD int sandbox_apply_mounts(
	const struct sandbox_prepared *f, const char *home, const char *mount_point)
{
	const uint8_t *part = f->profile.part;
	int error;

	if (!(f->namespaces & CLONE_NEWNS))
		return 0;
	/*
	 * later mounts of the system would be writable, so they must not appear in a read-only
	 * system
	 */
	error = mount_attr_set(
		"/", AT_RECURSIVE, 0, 0, part[SANDBOX_SYSTEM] ? MS_PRIVATE : MS_SLAVE);
	if (!error && part[SANDBOX_SYSTEM])
		error = mount_system(f, home);
	if (!error && part[SANDBOX_DEV])
		error = mount_dev(f);
	if (!error && part[SANDBOX_TMP])
		error = mount_tmp();
	if (!error && part[SANDBOX_RUN])
		error = mount_run(mount_point);
	return error;
}

/*
 * Read-only, because a job of root without capabilities could still write to files in /proc that
 * belong to root.
 */
IN_CHILD int sandbox_apply_proc(const struct sandbox_prepared *f)
{
	if (!(f->namespaces & CLONE_NEWPID))
		return 0;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) <
			0
		? errno
		: 0;
}
