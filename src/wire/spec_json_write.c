/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a job definition as JSON using the field table. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define B64 "_b64"
#define TEXT_USUAL 255 /* bytes of the text of an ordinary job */

static bool is_plain_text(const char *data, size_t len)
{
	return !memchr(data, '\0', len) && text_utf8_valid(data, len);
}

static json_t *write_bytes(const char *data, size_t len, bool b64)
{
	AUTO_DONE(buf) b = {};

	if (!b64)
		return json_stringn(data, len);
	buf_base64(&b, data, len);
	return json_stringn(b.data ? b.data : "", b.len);
}

static bool list_is_plain(const struct strv *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!text_utf8_valid(l->v[i], strlen(l->v[i])))
			return false;
	}
	return true;
}

static json_t *write_list(const struct strv *l, bool b64)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(a, write_bytes(l->v[i], strlen(l->v[i]), b64));
	return a;
}

static json_t *write_map(const struct strv *l, bool b64)
{
	json_t *o = json_object();

	for (size_t i = 0; i < l->n; i++) {
		const char *eq = strchr(l->v[i], '=');
		AUTO_TEXT key = eq ? xstrndup(l->v[i], (size_t)(eq - l->v[i])) : NULL;

		if (eq)
			json_object_set_new(o, key, write_bytes(eq + 1, strlen(eq + 1), b64));
	}
	return o;
}

static json_t *write_number(const struct job_field *f, int64_t n)
{
	AUTO_TEXT text = NULL;

	switch (f->type) {
	case FIELD_INT:
	case FIELD_SIZE:
		return json_integer(n);
	case FIELD_DURATION:
		return json_value_seconds(n);
	case FIELD_TIME:
		if (n == 0)
			return json_null();
		break;
	default:
		break;
	}
	text = job_field_print(f, n);
	return json_string(text);
}

/* The value of a field. *ret_b64: it must be written as base64. NULL: it has its default. */
static json_t *write_field(const struct job_field *f, const void *at, bool *ret_b64)
{
	const struct strv *list = at;
	const struct blob *blob = at;
	const char *text;
	int64_t n;

	*ret_b64 = false;
	switch (f->type) {
	case FIELD_TEXT:
		text = *(char *const *)at;
		*ret_b64 = text && !is_plain_text(text, strlen(text));
		return text ? write_bytes(text, strlen(text), *ret_b64) : NULL;
	case FIELD_BLOB:
		*ret_b64 = blob->data && !is_plain_text(blob->data, blob->len);
		return blob->data ? write_bytes(blob->data, blob->len, *ret_b64) : NULL;
	case FIELD_LIST:
		*ret_b64 = !list_is_plain(list);
		return list->n > 0 ? write_list(list, *ret_b64) : NULL;
	case FIELD_MAP:
		*ret_b64 = !list_is_plain(list);
		return list->n > 0 ? write_map(list, *ret_b64) : NULL;
	default:
		n = *(const int64_t *)at;
		return n == f->preset ? NULL : write_number(f, n);
	}
}

static json_t *write_default(const struct job_field *f)
{
	switch (f->type) {
	case FIELD_LIST:
		return json_array();
	case FIELD_MAP:
		return json_object();
	case FIELD_TEXT:
	case FIELD_BLOB:
		return json_null();
	default:
		return write_number(f, f->preset);
	}
}

static void set_base64(json_t *o, const char *field, json_t *v)
{
	char name[80];

	snprintf(name, sizeof(name), "%s" B64, field);
	json_object_set_new_nocheck(o, name, v);
}

static void write_spec(json_t *o, const struct job_spec *s, bool defaults)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		bool b64;
		json_t *v = write_field(f, (const char *)s + f->offset, &b64);

		if (v && b64)
			set_base64(o, f->name, v);
		else if (v)
			json_object_set_new_nocheck(o, f->name, v);
		else if (defaults)
			json_object_set_new_nocheck(o, f->name, write_default(f));
	}
}

json_t *spec_json_write(const struct job_spec *s)
{
	json_t *o = json_object();

	write_spec(o, s, false);
	return o;
}

json_t *spec_json_write_all(const struct job_spec *s)
{
	json_t *o = json_object();

	write_spec(o, s, true);
	return o;
}

/* ---- the canonical text ---- */

/*
 * Jansson could sort and write the object of spec_json_write(), but would take most of the time of a submission. So the members
 * of ordinary jobs are written directly, as Jansson writes them.
 */

static void list_write(struct buf *out, const struct strv *l)
{
	for (size_t i = 0; i < l->n; i++) {
		buf_char(out, i ? ',' : '[');
		json_value_write_text(out, l->v[i], strlen(l->v[i]));
	}
	buf_char(out, ']');
}

/* As job_field_print(): at least three digits. */
static void octal_write(struct buf *out, uint64_t n)
{
	char digits[24], *at = digits + sizeof(digits);
	const char *end = at;

	do {
		*--at = (char)('0' + (n & 7));
		n >>= 3;
	} while (n || end - at < 3);
	json_value_write_text(out, at, (size_t)(end - at));
}

/* A member that differs from its default. */
struct member {
	const struct job_field *field;
	const void *at;
	bool b64;
};

static void member_write(struct buf *out, const struct member *m)
{
	const struct blob *blob = m->at;
	const char *text;
	json_t *v;

	buf_char(out, '"');
	buf_str(out, m->field->name);
	buf_str(out, m->b64 ? "_b64\":" : "\":");
	switch (m->b64 ? FIELD_TYPE_MAX : m->field->type) {
	case FIELD_TEXT:
		text = *(char *const *)m->at;
		json_value_write_text(out, text, strlen(text));
		break;
	case FIELD_BLOB:
		json_value_write_text(out, blob->data, blob->len);
		break;
	case FIELD_LIST:
		list_write(out, m->at);
		break;
	case FIELD_INT:
	case FIELD_SIZE:
		buf_json_int(out, *(const int64_t *)m->at);
		break;
	case FIELD_OCTAL:
		octal_write(out, (uint64_t)*(const int64_t *)m->at);
		break;
	default:
		v = write_field(m->field, m->at, &(bool){false});
		v = v ? v : write_default(m->field);
		json_value_write(v, out);
		json_decref(v);
		break;
	}
}

/* Whether a member is written, and in which form. */
static bool member_set(const struct job_spec *s, struct member *m)
{
	const struct strv *list = m->at;
	const struct blob *blob = m->at;
	const char *text;

	switch (m->field->type) {
	case FIELD_TEXT:
		text = *(char *const *)m->at;
		m->b64 = text && !is_plain_text(text, strlen(text));
		return text != NULL;
	case FIELD_BLOB:
		m->b64 = blob->data && !is_plain_text(blob->data, blob->len);
		return blob->data != NULL;
	case FIELD_LIST:
	case FIELD_MAP:
		m->b64 = !list_is_plain(list);
		return list->n > 0;
	default:
		/*
		 * a stored definition without umask has the default of earlier versions, so the current
		 * default is written explicitly
		 */
		if (m->at == &s->umask)
			return s->umask != JOB_UMASK_UNSAID;
		return *(const int64_t *)m->at != m->field->preset;
	}
}

/* In the order of the names as they are written. */
static int member_compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = strcmp(x->field->name, y->field->name);
	char one[80], other[80];

	if (order == 0 || (!x->b64 && !y->b64))
		return order;
	snprintf(one, sizeof(one), "%s%s", x->field->name, x->b64 ? B64 : "");
	snprintf(other, sizeof(other), "%s%s", y->field->name, y->b64 ? B64 : "");
	return strcmp(one, other);
}

char *spec_json_to_text(const struct job_spec *s)
{
	struct member *set = xrealloc(NULL, job_fields_count * sizeof(*set));
	struct buf b = {};
	size_t n = 0;

	for (size_t i = 0; i < job_fields_count; i++) {
		struct member m = {.field = &job_fields[i], .at = (const char *)s + job_fields[i].offset};

		if (member_set(s, &m))
			set[n++] = m;
	}
	qsort(set, n, sizeof(*set), member_compare);
	buf_room(&b, TEXT_USUAL);
	for (size_t i = 0; i < n; i++) {
		buf_char(&b, i ? ',' : '{');
		member_write(&b, &set[i]);
	}
	buf_str(&b, n ? "}" : "{}");
	free(set);
	return buf_steal(&b);
}
