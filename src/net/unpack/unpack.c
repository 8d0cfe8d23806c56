/* SPDX-License-Identifier: Apache-2.0 */
/* Reads archives with libarchive; writes the tree without following links. */
#include "net/unpack/unpack.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "net/unpack/quota.h"
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK (64 << 10)
#define ENTRY_COST 4096 /* disk space of the smallest file */
#define PATH_LIMIT 4095

struct unpacking {
	const struct unpack_source *p;
	struct archive *in;
	int64_t bytes, entries;
};

/* ---- paths ---- */

/* Splits a path into components. Absolute paths and '..' are refused. */
static bool path_split(const char *path, struct strv *ret, struct err *e)
{
	if (path[0] == '/' || strlen(path) > PATH_LIMIT)
		return err_set(e, ERR_INVALID, "'%.100s' in it is %s", path,
			path[0] == '/' ? "an absolute path" : "too long");
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return err_set(
				e, ERR_INVALID, "a path in it leads out of the archive with '..'");
		if (n > NAME_MAX)
			return err_set(e, ERR_INVALID, "'%.100s' in it is too long", path);
		if (n && !(n == 1 && path[0] == '.'))
			strv_take(ret, xstrndup(path, n));
		path += n + (path[n] == '/');
	}
	if (ret->n > UNPACK_DEPTH_MAX)
		return err_set(
			e, ERR_INVALID, "it has directories more than %d deep", UNPACK_DEPTH_MAX);
	return true;
}

/* Opens the directory above the last component, with 'make' creating directories; -1: see *e. */
static int parent_open(int tree, const struct strv *path, bool make, struct err *e)
{
	int at = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; at >= 0 && i + 1 < path->n; i++) {
		AUTO_FD above = at;

		if (make && mkdirat(above, path->v[i], 0700) < 0 && errno != EEXIST)
			at = -1;
		else
			at = openat(
				above, path->v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (at < 0)
		err_errno(e, errno, "could not unpack '%.100s'",
			path->n ? path->v[path->n - 1] : ".");
	return at;
}

/*
 * A target may begin with as many '..' as there are directories above the link, and then only
 * descend. So every component of a chain of links stays inside the tree.
 */
static bool target_inside(const char *target, size_t depth)
{
	size_t up = 0;
	bool down = false;

	if (target[0] == '/' || !*target || strlen(target) > PATH_LIMIT)
		return false;
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");
		bool above = n == 2 && p[0] == '.' && p[1] == '.';

		if (above && (down || ++up > depth))
			return false;
		down |= n > 0 && !above && !(n == 1 && p[0] == '.');
		p += n + (p[n] == '/');
	}
	return true;
}

/* ---- entries ---- */

static bool limit_exceeded(const struct unpacking *u, struct err *e)
{
	return err_set(e, ERR_TOO_LARGE,
		"it has more than %lld bytes when unpacked (see artifact-limit in jobschedd.conf(5))",
		(long long)u->p->limit);
}

static bool write_at(int fd, const char *data, size_t len, int64_t at, struct err *e)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, n < 0 ? errno : ENOSPC, "could not write to the cache");
		data += n;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_failed(const struct unpacking *u, struct err *e)
{
	const char *why = archive_error_string(u->in);

	return err_set(e, ERR_INVALID, "it cannot be unpacked: %s", why ? why : "it is damaged");
}

static bool content_write(struct unpacking *u, int fd, struct err *e)
{
	int64_t size = 0;

	for (;;) {
		const void *data;
		la_int64_t at;
		size_t len;
		int r = archive_read_data_block(u->in, &data, &len, &at);

		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN)
			return read_failed(u, e);
		if (at < 0 || at > u->p->limit || u->bytes + at + (int64_t)len > u->p->limit)
			return limit_exceeded(u, e);
		if (at + (int64_t)len > size) {
			if (!quota_take(u->p->quota, at + (int64_t)len - size, e))
				return false;
			size = at + (int64_t)len;
		}
		if (!write_at(fd, data, len, at, e))
			return false;
	}
	u->bytes += size;
	return true;
}

/*
 * A hard link or a directory may have a body, which libarchive would decompress when it searches
 * the next entry. The body counts against the limit although it is not written.
 */
static bool skip_content(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;

	if (size < 0 || u->bytes + size > u->p->limit)
		return limit_exceeded(u, e);
	for (;;) {
		const void *data;
		la_int64_t at;
		size_t len;
		int r = archive_read_data_block(u->in, &data, &len, &at);

		if (r == ARCHIVE_EOF)
			return true;
		if (r < ARCHIVE_WARN)
			return read_failed(u, e);
		u->bytes += (int64_t)len;
		if (u->bytes > u->p->limit)
			return limit_exceeded(u, e);
	}
}

static bool file_write(
	struct unpacking *u, struct archive_entry *entry, int dir, const char *name, struct err *e)
{
	mode_t mode = archive_entry_perm(entry) & 0111 ? 0555 : 0444;
	la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
	AUTO_FD fd = -1;

	if (size < 0 || u->bytes + size > u->p->limit)
		return limit_exceeded(u, e);
	unlinkat(dir, name, 0); /* the last of several entries with one name is kept, as with tar */
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, errno, "could not unpack '%.100s'", name);
	if (!content_write(u, fd, e))
		return false;
	/* set-user-ID bits and write permission of the archive are ignored */
	if (fchmod(fd, mode) < 0)
		return err_errno(e, errno, "could not unpack '%.100s'", name);
	return true;
}

static bool hard_link_write(
	struct unpacking *u, const char *to, int dir, const char *name, struct err *e)
{
	AUTO_DONE(strv) path = {};
	AUTO_FD from = -1;

	if (!path_split(to, &path, e))
		return false;
	if (!path.n)
		return err_set(e, ERR_INVALID, "a link in it has no target");
	from = parent_open(u->p->tree, &path, false, e);
	if (from < 0)
		return false;
	unlinkat(dir, name, 0);
	if (linkat(from, path.v[path.n - 1], dir, name, 0) < 0)
		return err_errno(e, errno, "could not unpack the link '%.100s'", name);
	return true;
}

static bool entry_write(struct unpacking *u, struct archive_entry *entry, int dir,
	const struct strv *path, struct err *e)
{
	const char *name = path->v[path->n - 1], *link = archive_entry_hardlink(entry), *target;

	if ((link || archive_entry_filetype(entry) != AE_IFREG) && !skip_content(u, entry, e))
		return false;
	if (link)
		return hard_link_write(u, link, dir, name, e);
	switch (archive_entry_filetype(entry)) {
	case AE_IFDIR:
		if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
			return err_errno(e, errno, "could not unpack '%.100s'", name);
		return true;
	case AE_IFREG:
		return file_write(u, entry, dir, name, e);
	case AE_IFLNK:
		target = archive_entry_symlink(entry);
		if (!target || !target_inside(target, path->n - 1))
			return err_set(e, ERR_INVALID,
				"the link '%.100s' in it leads out of the archive", name);
		unlinkat(dir, name, 0);
		if (symlinkat(target, dir, name) < 0)
			return err_errno(e, errno, "could not unpack the link '%.100s'", name);
		return true;
	default:
		return err_set(
			e, ERR_INVALID, "'%.100s' in it is not a file, directory or link", name);
	}
}

static bool entry_unpack(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	AUTO_DONE(strv) path = {};
	const char *name = archive_entry_pathname(entry);
	AUTO_FD dir = -1;

	if (!name)
		name = archive_entry_pathname_utf8(entry);
	if (!name || archive_entry_is_encrypted(entry))
		return err_set(e, ERR_INVALID, "an entry of it has no name, or is encrypted");
	u->bytes += ENTRY_COST;
	if (!quota_take(u->p->quota, ENTRY_COST, e))
		return false;
	if (++u->entries > UNPACK_ENTRIES_MAX)
		return err_set(e, ERR_TOO_LARGE, "it has more than %d entries", UNPACK_ENTRIES_MAX);
	if (u->bytes > u->p->limit)
		return limit_exceeded(u, e);
	if (!path_split(name, &path, e))
		return false;
	if (!path.n)
		return true; /* the tree itself */
	dir = parent_open(u->p->tree, &path, true, e);
	return dir >= 0 && entry_write(u, entry, dir, &path, e);
}

/* ---- archives ---- */

/* False: not a tar archive. Filters for which libarchive runs external programs are not enabled. */
static bool open_tar(struct unpacking *u, struct archive_entry **ret)
{
	u->in = archive_read_new();
	return u->in && archive_read_support_format_tar(u->in) == ARCHIVE_OK &&
	       archive_read_support_filter_gzip(u->in) == ARCHIVE_OK &&
	       archive_read_support_filter_bzip2(u->in) == ARCHIVE_OK &&
	       archive_read_support_filter_xz(u->in) == ARCHIVE_OK &&
	       archive_read_support_filter_zstd(u->in) == ARCHIVE_OK &&
	       archive_read_open_fd(u->in, u->p->file, BLOCK) == ARCHIVE_OK &&
	       archive_read_next_header(u->in, ret) >= ARCHIVE_WARN;
}

static bool unpack_tar(struct unpacking *u, struct archive_entry *entry, struct err *e)
{
	for (;;) {
		int r;

		if (!entry_unpack(u, entry, e))
			return false;
		r = archive_read_next_header(u->in, &entry);
		if (r == ARCHIVE_EOF)
			return true;
		if (r < ARCHIVE_WARN)
			return read_failed(u, e);
	}
}

static bool copy_plain(struct unpacking *u, struct err *e)
{
	AUTO_FD fd = openat(
		u->p->tree, u->p->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	AUTO_TEXT block = xcalloc(1, BLOCK);
	ssize_t n;

	if (fd < 0)
		return err_errno(e, errno, "could not write to the cache");
	while ((n = pread(u->p->file, block, BLOCK, u->bytes)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "could not read the cache");
		if (!quota_take(u->p->quota, n, e) || !write_at(fd, block, (size_t)n, u->bytes, e))
			return false;
		u->bytes += n;
	}
	if (fchmod(fd, 0555) < 0)
		return err_errno(e, errno, "could not write to the cache");
	return true;
}

static DIR *dir_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

static bool is_self(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Directories were writable while they were filled. */
static bool directories_make_read_only(int dir, const char *name, struct err *e)
{
	DIR *d = dir_open(dir, name);
	struct dirent *entry;
	bool ok = d != NULL;

	while (ok && (entry = readdir(d)))
		if (entry->d_type == DT_DIR && !is_self(entry->d_name))
			ok = directories_make_read_only(dirfd(d), entry->d_name, e);
	if (ok && fchmod(dirfd(d), 0555) < 0)
		ok = false;
	if (!ok && e->kind == ERR_NONE)
		err_errno(e, errno, "could not write to the cache");
	if (d)
		closedir(d);
	return ok;
}

bool unpack_tree(const struct unpack_source *p, int64_t *ret_bytes, struct err *e)
{
	struct unpacking u = {.p = p};
	struct archive_entry *entry = NULL;
	bool ok = open_tar(&u, &entry) ? unpack_tar(&u, entry, e) : copy_plain(&u, e);

	archive_read_free(u.in);
	if (!ok || !directories_make_read_only(p->tree, ".", e))
		return false;
	*ret_bytes = u.bytes + ENTRY_COST;
	return true;
}

char *unpack_file_name(const char *url)
{
	static const char safe[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
	size_t len = strcspn(url, "?#"), from = len;
	char *name;

	while (from && url[from - 1] != '/' && url[from - 1] != ':')
		from--;
	len = len - from > 200 ? 200 : len - from;
	if (len == 0 || strchr(".-", url[from]))
		return xstrdup("artifact");
	name = xstrndup(url + from, len);
	for (char *c = name; *c; c++)
		if (!strchr(safe, *c))
			*c = '_';
	return name;
}

int unpack_remove(int dir, const char *name)
{
	DIR *d;
	struct dirent *entry;
	int r = 0;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	d = dir_open(dir, name);
	if (!d)
		return -errno;
	if (fchmod(dirfd(d), 0700) < 0)
		r = -errno;
	while (r == 0 && (entry = readdir(d)))
		if (!is_self(entry->d_name))
			r = unpack_remove(dirfd(d), entry->d_name);
	closedir(d);
	return r < 0 ? r : unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}
