/* SPDX-License-Identifier: Apache-2.0 */
/* Empties the directory that the attempts of a run shared, as their owner. */
#include "base/auto.h"
#include "exec/worker/worker_state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 90 /* the spawner normally kills the process after 60 s */
#define DEPTH_MAX 256      /* of directories; each one needs a descriptor */

static void directory_empty(int dir /* moved */, dev_t device, int depth);

/* Directories of other file systems are left alone, and links are not followed. */
static void entry_remove(int dir, const char *name, dev_t device, int depth)
{
	struct stat st;
	int sub;

	if (unlinkat(dir, name, 0) == 0 || depth >= DEPTH_MAX)
		return;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0 && errno == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		/* a link in place of the directory would lead to a file of the owner, whose rights this process has */
		if (fchmodat(dir, name, 0700, 0) == 0)
			sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (sub < 0)
		return;
	if (fstat(sub, &st) < 0 || st.st_dev != device) {
		close(sub);
		return;
	}
	directory_empty(sub, device, depth + 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

static void directory_empty(int dir, dev_t device, int depth)
{
	DIR *d;
	struct dirent *entry;

	fchmod(dir, 0700);
	d = fdopendir(dir);
	if (!d) {
		close(dir);
		return;
	}
	while ((entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			entry_remove(dirfd(d), entry->d_name, device, depth);
	closedir(d);
}

bool worker_state_empty(int fd)
{
	struct stat st;
	int dir;

	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && fchmod(fd, 0700) == 0)
		dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	directory_empty(dir, st.st_dev, 0);
	return true;
}

int worker_state_remove_main(void)
{
	alarm(TIMEOUT_SECONDS);
	return !worker_state_empty(0);
}
