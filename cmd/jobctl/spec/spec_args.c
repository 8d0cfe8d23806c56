/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options into a job definition using the field table. */
#include "jobctl/spec/spec_args.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "core/job/call.h"
#include "core/job/job_fields.h"
#include "jobctl/args.h"
#include "jobctl/moment.h"
#include "jobctl/spec/shell.h"
#include "jobctl/spec/when_args.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENV_FILE_MAX (4 * 1024 * 1024)

static void *field_address(struct job_spec *s, const struct job_field *f)
{
	return (char *)s + f->offset;
}

/* Relative paths start at the current directory of the user. */
static bool make_absolute(const char *path, char **ret, struct err *e)
{
	char here[PATH_MAX];

	if (path && *path == '/') {
		*ret = xstrdup(path);
		return true;
	}
	if (!getcwd(here, sizeof here))
		return err_errno(e, errno, "cannot read the current directory; give --cwd DIR");
	*ret = !path || strcmp(path, ".") == 0 ? xstrdup(here) : xprintf("%s/%s", here, path);
	return true;
}

static bool set_text_field(struct job_spec *s, const struct job_field *f, const char *text,
	struct err *e)
{
	char **at = field_address(s, f);
	AUTO_TEXT value = NULL;

	if (f->offset != offsetof(struct job_spec, cwd))
		value = xstrdup(text);
	else if (!make_absolute(text, &value, e))
		return false;
	if ((int64_t)strlen(value) < f->min || (int64_t)strlen(value) > f->max)
		return err_set(e, ERR_INVALID,
			"the value must have %" PRId64 " to %" PRId64 " bytes", f->min, f->max);
	free(*at);
	*at = STEAL(value);
	return true;
}

/*
 * NAME=VALUE replaces an earlier value. --env NAME copies the variable of the user's environment.
 */
static bool set_pair(struct job_spec *s, const struct job_field *f, const char *text, struct err *e)
{
	struct strv *pairs = field_address(s, f);
	AUTO_TEXT pair = NULL;
	size_t name = strcspn(text, "=");

	if (!text[name] && f->offset == offsetof(struct job_spec, env)) {
		const char *value = getenv(text);

		if (!value)
			return err_set(e, ERR_INVALID,
				"'%s' has no value and is not set in the environment", text);
		pair = xprintf("%s=%s", text, value);
	} else {
		pair = xstrdup(text);
	}
	if (f->check && !f->check(pair, e))
		return false;
	for (size_t i = 0; i < pairs->n; i++)
		if (strncmp(pairs->v[i], pair, name + 1) == 0) {
			free(pairs->v[i]);
			pairs->v[i] = STEAL(pair);
			return true;
		}
	strv_take(pairs, STEAL(pair));
	return true;
}

/* The body of a call and a message are the text itself, or @FILE. */
static bool blob_is_text(const struct job_field *f)
{
	return f->offset == offsetof(struct job_spec, body) || f->offset == offsetof(struct job_spec, message);
}

static bool set_blob_text(struct job_spec *s, const struct job_field *f, const char *text, struct err *e)
{
	struct blob *blob = field_address(s, f);

	if (strlen(text) > (size_t)f->max)
		return err_set(e, ERR_TOO_LARGE, "the text has more than %" PRId64 " bytes", f->max);
	blob_done(blob);
	*blob = (struct blob){xstrdup(text), strlen(text)};
	return true;
}

static bool set_blob(struct job_spec *s, const struct job_field *f, const char *path, struct err *e)
{
	struct blob *blob = field_address(s, f);
	AUTO_DONE(buf) data = {};
	bool standard = strcmp(path, "-") == 0;
	int r = standard ? io_read_all(STDIN_FILENO, &data, (size_t)f->max)
			 : io_read_file(path, &data, (size_t)f->max);

	if (r == -EFBIG)
		return err_set(e, ERR_TOO_LARGE, "'%s' has more than %" PRId64 " bytes", path,
			f->max);
	if (r < 0)
		return err_set(e, ERR_INVALID, "cannot read '%s': %s", path, strerror(-r));
	blob_done(blob);
	blob->len = data.len;
	blob->data = buf_steal(&data);
	return true;
}

static bool set_any(struct job_spec *s, const struct job_field *f, const char *text, struct err *e)
{
	switch (f->type) {
	case FIELD_TEXT:
		return set_text_field(s, f, text, e);
	case FIELD_LIST:
		strv_add(field_address(s, f), text);
		return true;
	case FIELD_MAP:
		return set_pair(s, f, text, e);
	case FIELD_BLOB:
		if (!blob_is_text(f))
			return set_blob(s, f, text, e);
		return *text == '@' ? set_blob(s, f, text + 1, e) : set_blob_text(s, f, text, e);
	case FIELD_TIME:
		return moment_parse(text,
			&(struct moment_how){.now = clock_now(&clock_system), .tz = s->tz},
			field_address(s, f), e);
	default:
		return job_field_parse(f, text, field_address(s, f), e);
	}
}

bool spec_args_set_field(struct job_spec *s, const struct job_field *f, const char *text,
	struct err *e)
{
	/* Pairs and directories are checked after NAME and relative paths have been expanded. */
	bool check =
		f->check && f->type != FIELD_MAP && f->offset != offsetof(struct job_spec, cwd);

	if (check ? f->check(text, e) && set_any(s, f, text, e) : set_any(s, f, text, e))
		return true;
	return err_wrap(e, "--%s", f->flag ? f->flag : f->name);
}

/* One NAME=VALUE per line, without quoting or expansion. */
static bool read_env_file(struct job_spec *s, const char *path, struct err *e)
{
	const struct job_field *env = job_field_find("env");
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, ENV_FILE_MAX);
	int number = 0;

	if (r < 0)
		return err_set(e, ERR_INVALID, "--env-file: cannot read '%s': %s", path,
			strerror(-r));
	if (text.len && strlen(text.data) != text.len)
		return err_set(e, ERR_INVALID, "--env-file: '%s' contains NUL bytes", path);
	for (char *line = text.data, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		number++;
		if (!*line || *line == '#')
			continue;
		if (!set_pair(s, env, line, e))
			return err_wrap(e, "--env-file: '%s' line %d", path, number);
	}
	return true;
}

bool spec_args_read_options(struct job_spec *s, const struct args *a, const char *but,
	struct err *e)
{
	for (size_t i = 0; i < args_count(a, "env-file"); i++)
		if (!read_env_file(s, args_nth(a, "env-file", i), e))
			return false;
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (!f->flag || (but && strcmp(f->flag, but) == 0))
			continue;
		for (size_t k = 0; k < args_count(a, f->flag); k++)
			if (!spec_args_set_field(
				    s, f, f->bare ? f->choices[f->max] : args_nth(a, f->flag, k), e))
				return false;
	}
	return when_args_read(a, &s->schedule, e);
}

bool spec_args_read(struct job_spec *s, const struct args *a, struct err *e)
{
	/*
	 * A job for another user starts in that user's home: the current directory may not be
	 * accessible to them.
	 */
	return spec_args_read_options(s, a, NULL, e) &&
	       (s->cwd || call_kind_of(s) != CALL_NONE || args_has(a, "as") || make_absolute(NULL, &s->cwd, e));
}

void spec_args_set_command(struct job_spec *s, char *const *words, size_t n)
{
	if (n == 1 && shell_syntax(words[0])) {
		s->script = xstrdup(words[0]);
		return;
	}
	for (size_t i = 0; i < n; i++)
		strv_add(&s->command, words[i]);
}
