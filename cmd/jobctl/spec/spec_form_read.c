/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a job definition from 'key = value' lines. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/key_value.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/spec_form.h"
#include <jansson.h>
#include <string.h>

struct reader {
	const char *at;  /* the rest of the text */
	int line;        /* number of the line last read */
	struct job_spec *s;
	unsigned char seen[128]; /* per field: already set; for fields that can be set once */
};

/* The next line without its newline; NULL: end of the text. Caller frees. */
static char *next_form_line(struct reader *r)
{
	size_t len;
	char *line;

	if (!*r->at)
		return NULL;
	len = strcspn(r->at, "\n");
	line = xstrndup(r->at, len);
	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = 0; /* some editors end lines with CR LF */
	r->at += len + (r->at[len] == '\n');
	r->line++;
	return line;
}

/* Lines up to 'end' are copied unchanged, including carriage returns. */
static bool read_heredoc(struct reader *r, const char *end, struct buf *out, struct err *e)
{
	int from = r->line;
	size_t len = strlen(end);

	for (bool first = true; *r->at; first = false) {
		size_t n = strcspn(r->at, "\n");

		r->line++;
		if (n == len && strncmp(r->at, end, n) == 0) {
			r->at += n + (r->at[n] == '\n');
			return true;
		}
		if (!first)
			buf_char(out, '\n');
		buf_add(out, r->at, n);
		r->at += n + (r->at[n] == '\n');
	}
	r->line = from;
	return err_set(e, ERR_INVALID, "the line '%s' that ends the text is missing", end);
}

static bool read_quoted(const char *value, struct buf *out, struct err *e)
{
	json_error_t je;
	json_auto_t *v = json_loads(value, JSON_DECODE_ANY, &je);

	if (!json_is_string(v))
		return err_set(e, ERR_INVALID,
			"a value that begins with '\"' must be a JSON string: %s", je.text);
	buf_add(out, json_string_value(v), json_string_length(v));
	return true;
}

static bool read_form_value(struct reader *r, const char *value, bool b64, struct buf *out,
	struct err *e)
{
	if (b64)
		return buf_base64_decode(value, strlen(value), out) ||
		       err_set(e, ERR_INVALID, "the value is not base64 with padding");
	if (text_starts(value, "<<") && value[2])
		return read_heredoc(r, value + 2, out, e);
	if (value[0] == '"')
		return read_quoted(value, out, e);
	buf_str(out, value);
	return true;
}

/* ---- fields ---- */

static void *form_field_target(struct reader *r, const struct job_field *f)
{
	return (char *)r->s + f->offset;
}

static bool check(const struct job_field *f, const char *text, struct err *e)
{
	return !f->check || f->check(text, e);
}

static bool read_command(struct reader *r, const char *value, bool b64, struct err *e)
{
	json_error_t je;
	json_auto_t *list = json_loads(value, 0, &je);
	const json_t *word;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, ERR_INVALID,
			"the command must be a JSON array, as [\"backup\", \"--all\"]%s%s",
			list ? "" : ": ", list ? "" : je.text);
	json_array_foreach(list, i, word) {
		AUTO_DONE(buf) bytes = {};

		if (!json_is_string(word))
			return err_set(e, ERR_INVALID, "word %zu of the command is not a string",
				i + 1);
		if (b64 && !buf_base64_decode(json_string_value(word), json_string_length(word),
				   &bytes))
			return err_set(e, ERR_INVALID, "word %zu of the command is not base64",
				i + 1);
		strv_take(&r->s->command,
			b64 ? buf_steal(&bytes) : xstrdup(json_string_value(word)));
	}
	return true;
}

static bool read_pair(struct reader *r, const struct job_field *f, const char *name,
	struct buf *value, struct err *e)
{
	AUTO_TEXT pair = xprintf("%s=%s", name, value->data ? value->data : "");
	struct strv *map = form_field_target(r, f);
	size_t len = strlen(name) + 1;

	if (!check(f, pair, e))
		return false;
	for (size_t i = 0; i < map->n; i++)
		if (strncmp(map->v[i], pair, len) == 0)
			return err_set(e, ERR_INVALID, "'%s.%s' is set twice", f->name, name);
	strv_take(map, STEAL(pair));
	return true;
}

static bool read_single(struct reader *r, const struct job_field *f, struct buf *value,
	struct err *e)
{
	const char *text = value->data ? value->data : "";
	struct blob *blob = form_field_target(r, f);

	if (r->seen[f - job_fields]++)
		return err_set(e, ERR_INVALID, "'%s' is set twice", f->name);
	if (f->type == FIELD_BLOB) {
		blob->len = value->len;
		blob->data = buf_steal(value);
		return true;
	}
	if (strlen(text) != value->len)
		return err_set(e, ERR_INVALID, "'%s' contains a NUL", f->name);
	if (f->type >= FIELD_INT)
		return job_field_parse(f, text, form_field_target(r, f), e);
	if ((int64_t)value->len < f->min || (int64_t)value->len > f->max)
		return err_set(e, ERR_INVALID, "'%s' must have %lld to %lld bytes", f->name,
			(long long)f->min, (long long)f->max);
	if (!check(f, text, e))
		return false;
	*(char **)form_field_target(r, f) = buf_steal(value);
	return true;
}

static bool read_form_field(struct reader *r, const struct job_field *f,
	const char *name /* of a pair */, struct buf *value, struct err *e)
{
	const char *text = value->data ? value->data : "";

	if (f->type == FIELD_MAP) {
		if (!name)
			return err_set(e, ERR_INVALID, "write '%s.NAME = VALUE'", f->name);
		return strlen(text) == value->len
			       ? read_pair(r, f, name, value, e)
			       : err_set(e, ERR_INVALID, "'%s.%s' contains a NUL", f->name, name);
	}
	if (name)
		return err_set(e, ERR_INVALID, "'%s' has no members", f->name);
	if (f->type != FIELD_LIST)
		return read_single(r, f, value, e);
	if (!check(f, text, e))
		return false;
	strv_add(form_field_target(r, f), text);
	return true;
}

/* key, key_b64, key.NAME, key_b64.NAME */
static const struct job_field *find_form_field(char *key, char **ret_name, bool *ret_b64)
{
	static const char coded[] = "_b64";
	char *dot = strchr(key, '.');
	size_t len;

	if (dot)
		*dot = 0;
	*ret_name = dot ? dot + 1 : NULL;
	len = strlen(key);
	*ret_b64 = len > strlen(coded) && strcmp(key + len - strlen(coded), coded) == 0;
	if (*ret_b64)
		key[len - strlen(coded)] = 0;
	return strcmp(key, "template") == 0 ? NULL : job_field_find(key);
}

static bool read_form_line(struct reader *r, char *line, struct err *e)
{
	char *key, *name, *value;
	const struct job_field *f;
	AUTO_DONE(buf) bytes = {};
	bool b64;

	switch (key_value_split(line, &key, &value)) {
	case KEY_VALUE_NONE:
		return true;
	case KEY_VALUE_OTHER:
		return err_set(e, ERR_INVALID, "'%.40s' is not 'key = value'", key);
	default:
		break;
	}
	f = find_form_field(key, &name, &b64);
	if (!f || (b64 && !f->bytes))
		return err_set(e, ERR_INVALID, "unknown key '%.40s'", key);
	if (f->offset == offsetof(struct job_spec, command) && !r->seen[f - job_fields]++)
		return read_command(r, value, b64, e);
	return read_form_value(r, value, b64, &bytes, e) && read_form_field(r, f, name, &bytes, e);
}

bool spec_form_read(const char *text, struct job_spec *s, struct err *e)
{
	struct reader r = {.at = text, .s = s};
	AUTO_TEXT line = NULL;

	_Static_assert(sizeof(r.seen) > 64, "one element per field");
	while ((line = next_form_line(&r))) {
		int at = r.line;

		if (!read_form_line(&r, line, e))
			return err_wrap(e, "line %d", at);
		free(STEAL(line));
	}
	return job_spec_check(s, e);
}
