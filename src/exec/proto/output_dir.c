/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the directory of outputs. */
#include "exec/proto/output_dir.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void output_names_done(struct output_names *l)
{
	free(l->v);
	*l = (struct output_names){};
}

static bool name_read(const char *name, struct output_file *ret)
{
	const char *dot = strchr(name, '.');
	AUTO_TEXT run = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;

	return run && parse_int(run, INT64_MIN, INT64_MAX, &ret->run) && parse_int(dot + 1, 1, INT64_MAX, &ret->attempt);
}

static void add(struct output_names *l, const struct output_file *f)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = *f;
}

bool output_names_read(int dir, struct output_names *ret, struct err *e)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!d) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return err_errno(e, error, "could not list the output directory");
	}
	while ((entry = readdir(d))) {
		struct output_file f;
		struct stat st;

		if (!name_read(entry->d_name, &f) || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.changed_at = (usec_t)st.st_mtim.tv_sec * USEC_SEC;
		add(ret, &f);
	}
	closedir(d);
	return true;
}
