/* SPDX-License-Identifier: Apache-2.0 */
/* Reads job definitions from JSON files, JSON lines, and directories of both. */
#include "jobctl/defs/definition_file.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "wire/json_read.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)64 << 20) /* bytes of one file */
#define DEPTH_MAX 8
#define FILES_MAX 100000
#define ALL_MAX ((size_t)256 << 20) /* bytes of all files */

void definition_list_done(struct definition_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		json_decref(l->v[i].o);
		free(l->v[i].where);
	}
	free(l->v);
	free(l->set);
	*l = (struct definition_list){};
}

static void list_add(struct definition_list *l, json_t *o, char *where /* moved */)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = (struct definition){.o = json_incref(o), .where = where};
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

/* ---- text ---- */

static bool add_array(const char *path, const char *member, const json_t *list,
	struct definition_list *l, struct err *e)
{
	json_t *o;
	size_t i;

	json_array_foreach(list, i, o) {
		if (!json_is_object(o))
			return err_set(e, ERR_INVALID, "%s, %s[%zu]: a definition must be an object",
				path, member, i);
		list_add(l, o, xprintf("%s, %s[%zu]", path, member, i));
	}
	return true;
}

/* A set names itself with "set"; several files of one directory must agree. */
static bool take_set_name(const char *path, const json_t *o, struct definition_list *l,
	struct err *e)
{
	const json_t *set = json_object_get(o, "set");

	if (!set)
		return true;
	if (!json_is_string(set) || !json_string_value(set)[0])
		return err_set(e, ERR_INVALID, "%s: 'set' must be the name of the set", path);
	if (l->set && strcmp(l->set, json_string_value(set)) != 0)
		return err_set(e, ERR_INVALID,
			"%s: the set is '%s' here and '%s' in another file; apply them separately, or "
			"give the name with --set",
			path, json_string_value(set), l->set);
	free(l->set);
	l->set = xstrdup(json_string_value(set));
	return true;
}

static bool add_set(const char *path, const json_t *o, struct definition_list *l, struct err *e)
{
	static const char *const known[] = {"$schema", "set", "jobs"};
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)o, name, v) {
		bool found = false;

		for (size_t i = 0; i < ELEMENTS(known); i++)
			found |= strcmp(name, known[i]) == 0;
		if (!found)
			return err_set(e, ERR_INVALID,
				"%s: unknown member '%.60s' beside 'jobs'; a set has 'set' and 'jobs'",
				path, name);
	}
	return take_set_name(path, o, l, e) &&
	       add_array(path, "jobs", json_object_get(o, "jobs"), l, e);
}

static bool add_document(const char *path, const struct buf *text, struct definition_list *l,
	struct err *e)
{
	json_auto_t *o = json_read(text->data ? text->data : "", text->len, FILE_MAX, e);

	if (!o)
		return err_wrap(e, "%s", path);
	if (json_is_array(o))
		return add_array(path, "", o, l, e);
	if (json_is_array(json_object_get(o, "jobs")))
		return add_set(path, o, l, e);
	if (!json_is_object(o) || json_object_get(o, "jobs"))
		return err_set(e, ERR_INVALID,
			"%s: expected {\"jobs\":[…]}, a list of definitions or one definition", path);
	list_add(l, o, xstrdup(path));
	return true;
}

static bool add_lines(const char *path, const struct buf *text, struct definition_list *l,
	struct err *e)
{
	size_t number = 0;

	for (const char *at = text->data, *end = at + text->len; at && at < end; number++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at), blank = strspn(at, " \t\r");

		if (blank < len) {
			json_auto_t *o = json_read(at, len, FILE_MAX, e);

			if (!o)
				return err_wrap(e, "%s:%zu", path, number + 1);
			if (!json_is_object(o))
				return err_set(e, ERR_INVALID, "%s:%zu: a definition must be an object",
					path, number + 1);
			list_add(l, o, xprintf("%s:%zu", path, number + 1));
		}
		at = stop ? stop + 1 : end;
	}
	return true;
}

/* Lines that each begin with '{' and end with '}' are JSON lines, also on standard input. */
static bool looks_like_lines(const struct buf *text)
{
	const char *line = text->data ? text->data : "", *stop = strchr(line, '\n');
	json_auto_t *first = NULL;

	if (!stop || !stop[1] || line[0] != '{')
		return false;
	first = json_loadb(line, (size_t)(stop - line), 0, NULL);
	return json_is_object(first);
}

static bool add_text(const char *path, bool lines, const struct buf *text,
	struct definition_list *l, struct err *e)
{
	if (text->len > 0 && memchr(text->data, '\0', text->len))
		return err_set(e, ERR_INVALID, "%s: the text contains NUL bytes", path);
	l->files++;
	l->bytes += text->len;
	if (l->bytes > ALL_MAX)
		return err_set(e, ERR_TOO_LARGE, "the files have more than %zu MiB; apply them in several sets",
			ALL_MAX >> 20);
	return (lines ? add_lines : add_document)(path, text, l, e);
}

static bool read_failed(const char *path, int r, struct err *e)
{
	if (r == -EFBIG)
		return err_set(e, ERR_TOO_LARGE, "%s: more than %zu MiB; split it", path, FILE_MAX >> 20);
	return err_errno(e, -r, "cannot read '%s'", path);
}

static bool add_file(const char *path, struct definition_list *l, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, FILE_MAX);

	if (r < 0)
		return read_failed(path, r, e);
	return add_text(path, ends_with(path, ".jsonl"), &text, l, e);
}

/* ---- directories ---- */

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static bool add_directory(const char *path, int depth, struct definition_list *l, struct err *e);

static bool add_member(const char *path, int depth, struct definition_list *l, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(e, errno, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return add_directory(path, depth + 1, l, e);
	if (l->files + l->ignored >= FILES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the directory has more than %d files", FILES_MAX);
	if (S_ISREG(st.st_mode) && (ends_with(path, ".json") || ends_with(path, ".jsonl")))
		return add_file(path, l, e);
	l->ignored++;
	return true;
}

static bool add_directory(const char *path, int depth, struct definition_list *l, struct err *e)
{
	struct dirent **names = NULL;
	int n = depth > DEPTH_MAX ? 0 : scandir(path, &names, visible, alphasort);
	bool ok = true;

	if (depth > DEPTH_MAX)
		return err_set(e, ERR_INVALID, "'%s': the directories are nested deeper than %d", path,
			DEPTH_MAX);
	if (n < 0)
		return err_errno(e, errno, "cannot read the directory '%s'", path);
	for (int i = 0; i < n; i++) {
		AUTO_TEXT member = xprintf("%s/%s", path, names[i]->d_name);

		ok = ok && add_member(member, depth, l, e);
		free(names[i]);
	}
	free(names);
	return ok;
}

static bool add_standard_input(struct definition_list *l, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_all(STDIN_FILENO, &text, FILE_MAX);

	if (r < 0)
		return read_failed("standard input", r, e);
	return add_text("standard input", looks_like_lines(&text), &text, l, e);
}

bool definition_file_read(const char *path, struct definition_list *ret, struct err *e)
{
	struct stat st;
	size_t len = strlen(path);
	AUTO_TEXT plain = xstrndup(path, len > 1 && path[len - 1] == '/' ? len - 1 : len);
	char *absolute;

	if (strcmp(path, "-") == 0)
		return add_standard_input(ret, e);
	if (stat(plain, &st) < 0)
		return err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, "cannot read '%s': %s",
			path, strerror(errno));
	if (!(S_ISDIR(st.st_mode) ? add_directory(plain, 0, ret, e) : add_file(plain, ret, e)))
		return false;
	if (ret->files == 0)
		return err_set(e, ERR_NOT_FOUND,
			"'%s' has no file whose name ends in .json or .jsonl", path);
	absolute = realpath(plain, NULL);
	if (!ret->set)
		ret->set = xstrdup(absolute);
	free(absolute);
	return true;
}
