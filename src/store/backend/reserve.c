/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and releases the reserve file. */
#include "store/backend/reserve.h"
#include "base/auto.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define SLACK_BYTES (RESERVE_BYTES / 2) /* must stay free besides, so that the reserve is not released again at once */

static bool reserve_is_complete(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size == RESERVE_BYTES &&
	       st.st_blocks >= RESERVE_BYTES / 512;
}

static bool reserve_has_room(const char *path)
{
	AUTO_TEXT copy = xstrdup(path);
	struct statvfs vfs;

	return statvfs(dirname(copy), &vfs) == 0 &&
	       (uint64_t)vfs.f_bavail * vfs.f_frsize >= RESERVE_BYTES + SLACK_BYTES;
}

bool reserve_take(struct reserve *r)
{
	AUTO_FD fd = -1;

	if (!r->path || r->held)
		return true;
	if (!reserve_has_room(r->path))
		return false;
	fd = open(r->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	if (posix_fallocate(fd, 0, RESERVE_BYTES) != 0) {
		reserve_release(r);
		return false;
	}
	r->held = true;
	return true;
}

void reserve_init(struct reserve *r, const char *beside)
{
	*r = (struct reserve){.path = xprintf("%s-reserve", beside)};
	r->held = reserve_is_complete(r->path);
}

void reserve_release(struct reserve *r)
{
	if (r->path)
		unlink(r->path);
	r->held = false;
}

void reserve_done(struct reserve *r)
{
	free(r->path);
	*r = (struct reserve){};
}
