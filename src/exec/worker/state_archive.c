/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks the directory that the attempts of a run share, as their owner. */
#include "exec/worker/state_archive.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/worker/worker_state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 90 /* the spawner normally kills the process after 60 s */
#define DEPTH_MAX 64       /* of directories; each one needs a descriptor */
#define NAME_BYTES 255
#define TARGET_BYTES 4095
#define CHUNK (64 << 10)
/* The directory has this file while it is being filled, so that a part of the content is recognised. */
#define UNFINISHED ".jobsched-unfinished"

struct entry {
	char letter;
	uint32_t mode;
	uint16_t name_len;
	int64_t size, mtime; /* bytes; nanoseconds */
};
#define ENTRY_BYTES (1 + 4 + 2 + 8 + 8)

/* ---- packing ---- */

struct packer {
	int file;
	int64_t at, limit;
	dev_t device;
	int32_t left_out;
	char *chunk;
};

static int packer_write(struct packer *p, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n;

		if ((int64_t)(len - done) > p->limit - p->at)
			return -EFBIG;
		n = pwrite(p->file, (const char *)data + done, len - done, p->at);
		if (n <= 0)
			return n < 0 && errno != EINTR ? -errno : -EIO;
		done += (size_t)n;
		p->at += n;
	}
	return 0;
}

static int packer_entry(struct packer *p, char letter, const struct stat *st, const char *name, int64_t size)
{
	const struct entry e = {.letter = letter, .mode = st->st_mode & 07777, .name_len = (uint16_t)strlen(name), .size = size,
		.mtime = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec};
	char head[ENTRY_BYTES];

	head[0] = e.letter;
	memcpy(head + 1, &e.mode, 4);
	memcpy(head + 5, &e.name_len, 2);
	memcpy(head + 7, &e.size, 8);
	memcpy(head + 15, &e.mtime, 8);
	return packer_write(p, head, sizeof(head)) < 0 ? -EFBIG : packer_write(p, name, e.name_len);
}

/* The file has the size of its entry, even if its owner changes it meanwhile. */
static int pack_file(struct packer *p, int dir, const char *name)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBUSY;
	if (st.st_size > p->limit - p->at)
		return -EFBIG;
	r = packer_entry(p, 'F', &st, name, st.st_size);
	for (int64_t at = 0; r == 0 && at < st.st_size;) {
		ssize_t n = pread(fd, p->chunk, st.st_size - at < CHUNK ? (size_t)(st.st_size - at) : CHUNK, at);

		if (n <= 0)
			return n < 0 ? -errno : -EBUSY;
		r = packer_write(p, p->chunk, (size_t)n);
		at += n;
	}
	return r;
}

static bool target_stays(const char *target)
{
	AUTO_TEXT bounded = xprintf("/%s/", target);

	return target[0] != '/' && !strstr(bounded, "/../");
}

static int pack_link(struct packer *p, int dir, const char *name, const struct stat *st)
{
	char target[TARGET_BYTES + 1];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));
	int r;

	if (n < 0 || n > TARGET_BYTES)
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	if (!target_stays(target)) {
		p->left_out++;
		return 0;
	}
	r = packer_entry(p, 'L', st, name, n);
	return r < 0 ? r : packer_write(p, target, (size_t)n);
}

static int pack_directory(struct packer *p, int dir /* moved */, int depth);

static int pack_subdirectory(struct packer *p, int dir, const char *name, const struct stat *st, int depth)
{
	int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;
	struct stat now;

	if (sub < 0)
		return -errno;
	if (depth >= DEPTH_MAX || fstat(sub, &now) < 0 || now.st_dev != p->device) {
		close(sub);
		return depth >= DEPTH_MAX ? -ELOOP : -EXDEV;
	}
	r = packer_entry(p, 'D', st, name, 0);
	if (r < 0)
		close(sub);
	return r < 0 ? r : pack_directory(p, sub, depth + 1);
}

static int pack_entry(struct packer *p, int dir, const char *name, int depth)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return pack_file(p, dir, name);
	if (S_ISDIR(st.st_mode))
		return pack_subdirectory(p, dir, name, &st, depth);
	if (S_ISLNK(st.st_mode))
		return pack_link(p, dir, name, &st);
	p->left_out++;
	return 0;
}

static int pack_directory(struct packer *p, int dir, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *entry;
	int r = 0;

	if (!d) {
		r = -errno;
		close(dir);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = pack_entry(p, dirfd(d), entry->d_name, depth);
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r < 0 ? r : packer_entry(p, 'E', &(struct stat){}, "", 0);
}

int state_archive_pack(int dir, int file, int64_t limit, struct run_state_report *ret)
{
	struct packer p = {.file = file, .limit = limit, .chunk = xcalloc(1, CHUNK)};
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = own < 0 ? -errno : 0;
	struct stat st;

	if (r == 0 && fstat(own, &st) == 0) {
		p.device = st.st_dev;
		r = faccessat(own, UNFINISHED, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -ENODATA : 0;
	}
	if (r == 0)
		r = pack_directory(&p, own, 0);
	else if (own >= 0)
		close(own);
	free(p.chunk);
	ret->bytes = p.at;
	ret->left_out = p.left_out;
	return r;
}

/* ---- unpacking ---- */

struct unpacker {
	int file;
	int64_t at, size;
	char *chunk;
};

static int unpacker_read(struct unpacker *u, void *to, int64_t len)
{
	if (len > u->size - u->at)
		return -EBADMSG;
	for (int64_t done = 0; done < len;) {
		ssize_t n = pread(u->file, (char *)to + done, (size_t)(len - done), u->at);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		done += n;
		u->at += n;
	}
	return 0;
}

static bool name_valid(const char *name, size_t len)
{
	return len > 0 && strlen(name) == len && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strcmp(name, UNFINISHED) != 0;
}

static int unpacker_entry(struct unpacker *u, struct entry *e, char name[NAME_BYTES + 1])
{
	char head[ENTRY_BYTES];
	int r = unpacker_read(u, head, sizeof(head));

	if (r < 0)
		return r;
	e->letter = head[0];
	memcpy(&e->mode, head + 1, 4);
	memcpy(&e->name_len, head + 5, 2);
	memcpy(&e->size, head + 7, 8);
	memcpy(&e->mtime, head + 15, 8);
	if (!strchr("DFLE", e->letter) || !e->letter || e->mode > 07777 || e->name_len > NAME_BYTES || e->size < 0 || e->size > u->size - u->at)
		return -EBADMSG;
	r = unpacker_read(u, name, e->name_len);
	name[r < 0 ? 0 : e->name_len] = '\0';
	return r < 0 ? r : e->letter == 'E' || name_valid(name, e->name_len) ? 0 : -EBADMSG;
}

static int unpack_file(struct unpacker *u, int dir, const struct entry *e, const char *name)
{
	AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {e->mtime / 1000000000, e->mtime % 1000000000}};

	if (fd < 0)
		return -errno;
	for (int64_t left = e->size; left > 0;) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;
		int r = unpacker_read(u, u->chunk, (int64_t)n);

		r = r < 0 ? r : io_write_all(fd, u->chunk, n);
		if (r < 0)
			return r;
		left -= (int64_t)n;
	}
	(void)futimens(fd, times); /* a time before 1970 is not restored */
	/* the set-user-ID bits are not restored: the command sets them again if it needs them */
	return fchmod(fd, e->mode & 0777) < 0 ? -errno : 0;
}

static int unpack_link(struct unpacker *u, int dir, const struct entry *e, const char *name)
{
	char target[TARGET_BYTES + 1];
	int r;

	if (e->size == 0 || e->size > TARGET_BYTES)
		return -EBADMSG;
	r = unpacker_read(u, target, e->size);
	if (r < 0)
		return r;
	target[e->size] = '\0';
	if (strlen(target) != (size_t)e->size || !target_stays(target))
		return -EBADMSG;
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}

static int unpack_directory(struct unpacker *u, int dir, int depth);

static int unpack_subdirectory(struct unpacker *u, int dir, const struct entry *e, const char *name, int depth)
{
	AUTO_FD sub = -1;
	int r;

	if (depth >= DEPTH_MAX)
		return -EBADMSG;
	if (mkdirat(dir, name, 0700) < 0)
		return -errno;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return -errno;
	r = unpack_directory(u, sub, depth + 1);
	return r < 0 ? r : fchmod(sub, e->mode & 0777) < 0 ? -errno : 0;
}

static int unpack_directory(struct unpacker *u, int dir, int depth)
{
	for (;;) {
		char name[NAME_BYTES + 1];
		struct entry e;
		int r = unpacker_entry(u, &e, name);

		if (r < 0 || e.letter == 'E')
			return r;
		r = e.letter == 'F'   ? unpack_file(u, dir, &e, name)
		    : e.letter == 'L' ? unpack_link(u, dir, &e, name)
				      : unpack_subdirectory(u, dir, &e, name, depth);
		if (r < 0)
			return r;
	}
}

static bool directory_has_files(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	bool found = false;

	if (!d)
		return false;
	while (!found && (entry = readdir(d)))
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(d);
	return found;
}

int state_archive_unpack(int dir, int file, enum run_state_verb verb)
{
	struct unpacker u = {.file = file};
	AUTO_FD mark = -1;
	struct stat st;
	int r;

	if (fstat(file, &st) < 0)
		return -errno;
	u.size = st.st_size;
	if (verb == RUN_STATE_FILL && directory_has_files(dir) && faccessat(dir, UNFINISHED, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	worker_state_empty(dir);
	mark = openat(dir, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (mark < 0)
		return -errno;
	u.chunk = xcalloc(1, CHUNK);
	r = unpack_directory(&u, dir, 0);
	free(u.chunk);
	if (r == 0 && u.at != u.size)
		r = -EBADMSG;
	return r == 0 && unlinkat(dir, UNFINISHED, 0) < 0 ? -errno : r;
}

int state_archive_main(const char *verb)
{
	struct run_state_report report = {};
	struct stat st;
	int r;

	alarm(TIMEOUT_SECONDS);
	if (fstat(3, &st) < 0 || st.st_size > RUN_STATE_MAX)
		return 1;
	if (strcmp(verb, "pack") == 0)
		r = state_archive_pack(0, 3, st.st_size, &report);
	else
		r = state_archive_unpack(0, 3, strcmp(verb, "fill") == 0 ? RUN_STATE_FILL : RUN_STATE_REPLACE);
	report.error = -r;
	return send(1, &report, sizeof(report), MSG_NOSIGNAL) < 0;
}
