/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a job definition as editable 'key = value' lines. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/spec_form.h"
#include <jansson.h>
#include <string.h>

static const void *form_field_address(const struct job_spec *s, const struct job_field *f)
{
	return (const char *)s + f->offset;
}

static bool is_utf8_text(const char *s, size_t len)
{
	return !memchr(s, 0, len) && text_utf8_valid(s, len);
}

/* The value can be written on one line without quotes. */
static bool is_plain_value(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || strchr(" \t\"<", s[0]) || strchr(" \t", s[len - 1]))
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* Several lines without control characters other than tabs. */
static bool is_multiline(const char *s)
{
	if (!strchr(s, '\n'))
		return false;
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

static bool text_has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, line, len) == 0 && (text[len] == '\n' || !text[len]))
			return true;
	return false;
}

static void put_heredoc(struct buf *out, const char *text)
{
	AUTO_TEXT end = xstrdup("END");

	for (int i = 1; text_has_line(text, end); i++) {
		free(end);
		end = xprintf("END%d", i);
	}
	buf_printf(out, "<<%s\n%s\n%s\n", end, text, end);
}

static void put_json(struct buf *out, const json_t *j)
{
	char *text = json_dumps(j, JSON_ENCODE_ANY);

	buf_printf(out, "%s\n", text);
	free(text);
}

/*
 * "key = value" or "key.member = value". A value that is not UTF-8 is written as key_b64 or
 * key_b64.member in base64.
 */
static void put_form_value(struct buf *out, const char *key, const char *member, const char *data,
	size_t len)
{
	bool text = is_utf8_text(data, len);
	const char *dot = member ? "." : "";

	buf_printf(out, "%s%s%s%s = ", key, text ? "" : "_b64", dot, member ? member : "");
	if (!text) {
		buf_base64(out, data, len);
		buf_char(out, '\n');
	} else if (is_multiline(data)) {
		put_heredoc(out, data);
	} else if (is_plain_value(data)) {
		buf_printf(out, "%s\n", data);
	} else {
		json_auto_t *quoted = json_string(data);

		put_json(out, quoted);
	}
}

static void put_command(struct buf *out, const struct strv *words)
{
	json_auto_t *list = json_array();
	bool text = true;

	for (size_t i = 0; i < words->n; i++)
		text = text && is_utf8_text(words->v[i], strlen(words->v[i]));
	for (size_t i = 0; i < words->n; i++) {
		AUTO_DONE(buf) coded = {};

		if (!text)
			buf_base64(&coded, words->v[i], strlen(words->v[i]));
		json_array_append_new(list, json_string(text	     ? words->v[i]
							: coded.data ? coded.data
								     : ""));
	}
	buf_str(out, text ? "command = " : "command_b64 = ");
	put_json(out, list);
}

static void put_form_map(struct buf *out, const struct job_field *f, const struct strv *pairs,
	bool (*secret)(const char *))
{
	for (size_t i = 0; i < pairs->n; i++) {
		size_t len = strcspn(pairs->v[i], "=");
		AUTO_TEXT name = xstrndup(pairs->v[i], len);
		AUTO_TEXT shown = secret ? job_env_masked(pairs->v[i], !secret(pairs->v[i]))
					 : xstrdup(pairs->v[i]);

		put_form_value(out, f->name, name, shown + len + 1, strlen(shown + len + 1));
	}
}

static void put_form_field(struct buf *out, const struct job_field *f, const struct job_spec *s,
	bool (*secret)(const char *))
{
	const struct blob *blob = form_field_address(s, f);
	const struct strv *list = form_field_address(s, f);
	const char *text;
	AUTO_TEXT number = NULL;

	switch (f->type) {
	case FIELD_TEXT:
		text = *(char *const *)form_field_address(s, f);
		if (text)
			put_form_value(out, f->name, NULL, text, strlen(text));
		return;
	case FIELD_BLOB:
		if (blob->data)
			put_form_value(out, f->name, NULL, blob->data, blob->len);
		return;
	case FIELD_LIST:
		for (size_t i = 0; i < list->n; i++)
			put_form_value(out, f->name, NULL, list->v[i], strlen(list->v[i]));
		return;
	case FIELD_MAP:
		put_form_map(out, f, list, secret);
		return;
	default:
		number = job_field_print(f, *(const int64_t *)form_field_address(s, f));
		if (*(const int64_t *)form_field_address(s, f) != f->preset)
			buf_printf(out, "%s = %s\n", f->name, number);
	}
}

void spec_form_write(const struct job_spec *s, bool (*secret)(const char *), struct buf *out)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (strcmp(f->name, "command") == 0) {
			if (s->command.n)
				put_command(out, &s->command);
		} else if (strcmp(f->name, "template") != 0) {
			put_form_field(out, f, s, secret);
		}
	}
}

static bool is_default(const struct job_field *f, const struct job_spec *s)
{
	switch (f->type) {
	case FIELD_TEXT:
		return !*(char *const *)form_field_address(s, f);
	case FIELD_BLOB:
		return !((const struct blob *)form_field_address(s, f))->data;
	case FIELD_LIST:
	case FIELD_MAP:
		return ((const struct strv *)form_field_address(s, f))->n == 0;
	default:
		return *(const int64_t *)form_field_address(s, f) == f->preset;
	}
}

void spec_form_write_defaults(const struct job_spec *s, struct buf *out)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (!f->flag || strcmp(f->name, "template") == 0 || !is_default(f, s))
			continue;
		buf_printf(out, "# %s%s = %s   %s\n", f->name, f->type == FIELD_MAP ? ".NAME" : "",
			f->type == FIELD_MAP ? "VALUE" : f->type == FIELD_BLOB ? "TEXT" : f->arg,
			strcmp(f->name, "stdin") == 0 ? "standard input of the command" : f->help);
	}
}
