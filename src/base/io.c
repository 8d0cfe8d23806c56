/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, durable files, locks and random numbers. */
#include "base/io.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int io_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int io_read_all(int fd, struct buf *out, size_t max)
{
	for (;;) {
		char *room = buf_room(out, 65536);
		ssize_t n = read(fd, room, 65536);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		room[n] = '\0';
		out->len += (size_t)n;
		if (out->len > max)
			return -EFBIG;
		if (n == 0)
			return 0;
	}
}

int io_read_file(const char *path, struct buf *out, size_t max)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : io_read_all(fd, out, max);
}

static int sync_parent(const char *path)
{
	AUTO_TEXT copy = xstrdup(path);
	AUTO_FD dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 || fsync(dir) < 0 ? -errno : 0;
}

int io_write_file(const char *path, const void *data, size_t len, mode_t mode)
{
	AUTO_TEXT temp = xprintf("%s.new", path);
	AUTO_FD fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, data, len);
	if (r == 0 && (fsync(fd) < 0 || rename(temp, path) < 0))
		r = -errno;
	if (r < 0) {
		unlink(temp);
		return r;
	}
	return sync_parent(path);
}

int io_mkdirs(const char *path, mode_t mode)
{
	AUTO_TEXT copy = xstrdup(path);

	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(copy, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

int io_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int io_memfd_sealed(const char *name, const void *data, size_t len)
{
	AUTO_FD fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return STEAL_FD(fd);
}

int io_lock_file(const char *path)
{
	AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return STEAL_FD(fd);
}

const char *io_own_program(char room[OWN_PROGRAM_MAX])
{
	const char *preload = getenv("LD_PRELOAD");
	ssize_t n = -1;

	if (preload && strstr(preload, "/vgpreload_core"))
		n = readlink("/proc/self/exe", room, OWN_PROGRAM_MAX - 1);
	if (n < 0)
		return "/proc/self/exe";
	room[n] = '\0';
	return room;
}

void io_random(void *out, size_t len)
{
	char *p = out;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			abort(); /* ids must be random */
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

int64_t io_random_upto(int64_t max)
{
	uint64_t n;

	if (max <= 0)
		return 0;
	io_random(&n, sizeof(n));
	return (int64_t)(n % ((uint64_t)max + 1)); /* max is far below 2^64, so the bias is negligible */
}

void io_random_id(char out[RANDOM_ID_LEN + 1])
{
	unsigned char bytes[RANDOM_ID_LEN / 2];

	io_random(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
