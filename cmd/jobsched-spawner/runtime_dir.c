/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the spawner's directories: permissions, lock, ID, sockets. */
#include "jobsched-spawner/runtime_dir.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/procfs.h"
#include "exec/child/user.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/*
 * Creates the socket with its final group and mode: chown() by name would be a race in a directory
 * that the daemon can write.
 */
static int bind_for_daemon(int fd, const struct sockaddr_un *a, const struct user *daemon,
	mode_t mode)
{
	mode_t mask = umask(0777 & ~mode);
	int r = daemon && setegid(daemon->gid) < 0 ? -1 : bind(fd, (const struct sockaddr *)a, sizeof(*a));
	int cause = errno;

	if (daemon && setegid(0) < 0)
		r = -1;
	umask(mask);
	errno = cause;
	return r;
}

bool runtime_dir_listen(const struct runtime_dirs *p, const char *socket_name, int *ret,
	struct err *e)
{
	AUTO_TEXT path = xprintf("%s/%s", p->runtime_dir, socket_name);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	mode_t mode = strcmp(socket_name, SOCKET_FOR_ALL) == 0 ? 0666 : p->daemon ? 0660 : 0700;
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is longer than %zu bytes: choose a shorter "
					       "--runtime-dir", path, sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path));
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not remove the old socket '%s'", path);
	if (fd < 0 || bind_for_daemon(fd, &a, p->daemon, mode) < 0 || listen(fd, 16) < 0)
		return err_errno(e, errno, "could not listen at '%s'", path);
	*ret = STEAL_FD(fd);
	return true;
}

bool runtime_dir_take_over(const struct runtime_dirs *p, char id[RANDOM_ID_LEN + 1], struct err *e)
{
	AUTO_TEXT path = xprintf("%s/spawner.id", p->state_dir);
	AUTO_DONE(buf) old = {};
	int r = io_read_file(path, &old, 4096);

	if (r < 0 && r != -ENOENT)
		return err_errno(e, -r, "could not read '%s'", path);
	if (r == 0)
		old.data[strcspn(old.data, "\n")] = '\0';
	if (r == 0 && old.data[0]) {
		int n = procfs_kill_all(old.data);

		if (n > 0)
			log_warning("killed %d processes that an earlier spawner had left", n);
		else if (n < 0)
			log_error("could not kill some processes of an earlier spawner; continuing");
	}
	io_random_id(id);
	buf_clear(&old);
	buf_printf(&old, "%s\n", id);
	r = io_write_file(path, old.data, old.len, 0600);
	return r < 0 ? err_errno(e, -r, "could not write '%s'", path) : true;
}

/*
 * Opens or creates a directory. With --system it belongs to root, and the group of the daemon may
 * read it.
 */
static bool private_dir_open(const char *path, mode_t mode, const struct user *daemon, int *ret,
	struct err *e)
{
	struct stat st;
	int r = io_mkdirs(path, mode);

	if (r < 0)
		return err_errno(e, -r, "could not create directory '%s'", path);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (daemon ? O_NOFOLLOW : 0));
	if (*ret < 0 || fstat(*ret, &st) < 0)
		return err_errno(e, errno, "could not open directory '%s'", path);
	if (!daemon)
		return true;
	if (st.st_uid != 0 || st.st_mode & 022)
		return err_set(e, ERR_REFUSED, "the directory '%s' must belong to root and be writable by root only", path);
	if (fchown(*ret, 0, daemon->gid) < 0 || fchmod(*ret, 02750) < 0)
		return err_errno(e, errno, "could not give directory '%s' to the group of '%s'",
			path, daemon->name);
	return true;
}

char *runtime_dir_artifact(const struct runtime_dirs *p)
{
	AUTO_TEXT path = p->daemon ? xprintf("%s/artifact", p->runtime_dir) : NULL;
	int r = path ? io_mkdirs(path, 0755) : 0;

	if (r < 0)
		log_warning("could not create directory '%s', jobs with artifacts will not start: %s", path, strerror(-r));
	return STEAL(path);
}

/* Retries for a second: a child of a killed spawner holds the lock until its exec(). */
static int lock_file_retry(const char *path)
{
	const struct timespec moment = {.tv_nsec = 50000000};
	int fd = io_lock_file(path);

	for (int i = 0; i < 20 && fd == -EWOULDBLOCK; i++) {
		nanosleep(&moment, NULL);
		fd = io_lock_file(path);
	}
	return fd;
}

bool runtime_dir_open(const struct runtime_dirs *p, int *ret_lock, int *ret_output, struct err *e)
{
	AUTO_TEXT lock = xprintf("%s/spawner.lock", p->state_dir);
	AUTO_FD state = -1;
	int r = io_mkdirs(p->runtime_dir, p->daemon ? 0755 : 0700);

	if (r < 0)
		return err_errno(e, -r, "could not create directory '%s'", p->runtime_dir);
	if (!private_dir_open(p->state_dir, p->daemon ? 0750 : 0700, p->daemon, &state, e) ||
		!private_dir_open(p->output_dir, 0750, p->daemon, ret_output, e))
		return false;
	*ret_lock = lock_file_retry(lock);
	if (*ret_lock == -EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "another spawner serves '%s'", p->state_dir);
	return *ret_lock < 0 ? err_errno(e, -*ret_lock, "could not lock '%s'", lock) : true;
}

void runtime_dir_socket_remove(const struct runtime_dirs *p, const char *socket_name)
{
	AUTO_TEXT path = xprintf("%s/%s", p->runtime_dir, socket_name);

	unlink(path);
}
