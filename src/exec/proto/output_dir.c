/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output directory; parses the names of its files. */
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

void output_dir_list_done(struct output_dir_list *l)
{
	free(l->v);
	*l = (struct output_dir_list){};
}

static bool output_name_parse(const char *name, struct output_dir_entry *ret)
{
	const char *dot = strchr(name, '.');
	AUTO_TEXT run = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;

	ret->attempt = 0;
	return run && text_parse_int(run, INT64_MIN, INT64_MAX, &ret->run) &&
		(strcmp(dot + 1, "state") == 0 || text_parse_int(dot + 1, 1, INT64_MAX, &ret->attempt));
}

static void output_dir_entry_add(struct output_dir_list *l, const struct output_dir_entry *f)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = *f;
}

bool output_dir_list_read(int dir, struct output_dir_list *ret, struct err *e)
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
		struct output_dir_entry f;
		struct stat st;

		if (!output_name_parse(entry->d_name, &f) ||
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.changed_at = (usec_t)st.st_mtim.tv_sec * USEC_SEC;
		output_dir_entry_add(ret, &f);
	}
	closedir(d);
	return true;
}
