/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the file of contexts. */
#include "jobctl/contexts.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (256 * 1024)
#define TOKEN_MAX_BYTES 16384

static char *contexts_dir(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		return xprintf("%s/jobsched", config);
	return home && *home == '/' ? xprintf("%s/.config/jobsched", home) : NULL;
}

static bool no_home(struct err *e)
{
	return err_set(e, ERR_INVALID, "contexts need a home directory; set HOME or XDG_CONFIG_HOME");
}

bool contexts_read(json_t **ret, struct err *e)
{
	AUTO_TEXT dir = contexts_dir();
	AUTO_TEXT path = dir ? xprintf("%s/contexts.json", dir) : NULL;
	AUTO_DONE(buf) text = {};
	json_error_t why;
	int r = path ? io_read_file(path, &text, FILE_MAX_BYTES) : -ENOENT;

	if (r == -ENOENT) {
		*ret = json_pack("{s:n, s:{}}", "current", "contexts");
		return true;
	}
	if (r < 0)
		return err_errno(e, -r, "cannot read '%s'", path);
	*ret = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
	if (*ret && json_is_object(json_object_get(*ret, "contexts")))
		return true;
	json_decref(*ret);
	*ret = NULL;
	return err_set(e, ERR_INVALID, "'%s' is not a file of contexts; remove it and add them again",
		path);
}

bool contexts_write(const json_t *all, struct err *e)
{
	AUTO_TEXT dir = contexts_dir();
	AUTO_TEXT path = dir ? xprintf("%s/contexts.json", dir) : NULL;
	AUTO_TEXT text = json_dumps(all, JSON_INDENT(2) | JSON_SORT_KEYS);
	int r;

	if (!path || !text)
		return no_home(e);
	r = io_mkdirs(dir, 0700);
	if (r >= 0)
		r = io_write_file(path, text, strlen(text), 0600);
	return r >= 0 || err_errno(e, -r, "cannot write '%s'", path);
}

bool contexts_find(const json_t *all, const char *name, const json_t **ret, struct err *e)
{
	*ret = json_object_get(json_object_get(all, "contexts"), name);
	return json_is_string(json_object_get(*ret, "url")) ||
	       err_set(e, ERR_NOT_FOUND, "no context '%.80s'; 'jobctl context list' shows all contexts",
		       name);
}

bool contexts_read_token(const char *file, char **ret, struct err *e)
{
	AUTO_FD fd = open(file, O_RDONLY | O_CLOEXEC);
	AUTO_DONE(buf) text = {};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, errno, "cannot read the token file '%s'", file);
	if (S_ISREG(st.st_mode) && st.st_mode & 077)
		return err_set(e, ERR_DENIED, "other users can read the token file '%s'; run 'chmod 600 %s'",
			file, file);
	r = io_read_all(fd, &text, TOKEN_MAX_BYTES);
	if (r < 0)
		return err_errno(e, -r, "cannot read the token file '%s'", file);
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.data[--text.len] = '\0';
	if (text.len == 0 || strlen(text.data) != text.len || strpbrk(text.data, " \t\r\n"))
		return err_set(e, ERR_INVALID, "'%s' does not contain one token", file);
	*ret = buf_steal(&text);
	return true;
}
