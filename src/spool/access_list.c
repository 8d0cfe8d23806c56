/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of user names, one per line. */
#include "spool/access_list.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include <errno.h>
#include <string.h>

#define LIST_MAX (1 << 20)

static bool line_found(const struct buf *text, const char *user)
{
	size_t want = strlen(user);

	for (const char *line = text->data; line && *line;) {
		size_t len = strcspn(line, "\n");

		if (len == want && memcmp(line, user, len) == 0)
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

enum found { FILE_MISSING, FILE_WITHOUT_USER, FILE_WITH_USER, FILE_UNREADABLE };

static enum found search_file(const char *path, const char *user, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, LIST_MAX);

	if (r == -ENOENT)
		return FILE_MISSING;
	if (r < 0) {
		err_errno(e, -r, "cannot read '%s'", path);
		return FILE_UNREADABLE;
	}
	return line_found(&text, user) ? FILE_WITH_USER : FILE_WITHOUT_USER;
}

bool access_list_permits(const struct access_list *l, const char *user, struct err *e)
{
	enum found f = search_file(l->allow, user, e);

	if (f != FILE_MISSING)
		return f == FILE_WITH_USER;
	f = search_file(l->deny, user, e);
	return f == FILE_MISSING ? l->none : f == FILE_WITHOUT_USER;
}
