/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two job definitions field by field and describes the changes. */
#include "core/job/job_diff.h"
#include "base/auto.h"
#include "base/buf.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include <string.h>

#define SHOWN 60      /* bytes shown of a value */
#define WORDS_MAX 400 /* bytes of the line */

static const void *field_value(const struct job_field *f, const struct job_spec *s)
{
	return (const char *)s + f->offset;
}

static bool list_equal(const struct strv *a, const struct strv *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return false;
	return true;
}

/* The pair that has the same name as 'pair'; NULL: none. */
static const char *pair_find(const struct strv *map, const char *pair)
{
	size_t len = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < map->n; i++)
		if (strncmp(map->v[i], pair, len) == 0)
			return map->v[i];
	return NULL;
}

static bool map_equal(const struct strv *a, const struct strv *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!text_equal(pair_find(b, a->v[i]), a->v[i]))
			return false;
	return true;
}

static bool blob_equal(const struct blob *a, const struct blob *b)
{
	return !a->data == !b->data && a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

bool job_diff_field_equal(const struct job_field *f, const struct job_spec *a, const struct job_spec *b)
{
	switch (f->type) {
	case FIELD_TEXT:
		return text_equal(*(char *const *)field_value(f, a), *(char *const *)field_value(f, b));
	case FIELD_LIST:
		return list_equal(field_value(f, a), field_value(f, b));
	case FIELD_MAP:
		return map_equal(field_value(f, a), field_value(f, b));
	case FIELD_BLOB:
		return blob_equal(field_value(f, a), field_value(f, b));
	default:
		return *(const int64_t *)field_value(f, a) == *(const int64_t *)field_value(f, b);
	}
}

bool job_diff_slots_equal(const struct job_spec *a, const struct job_spec *b)
{
	static const char *const those[] = {"schedule", "tz", "dst_gap", "dst_fold", "from", "until", "jitter"};

	for (size_t i = 0; i < ELEMENTS(those); i++)
		if (!job_diff_field_equal(job_field_find(those[i]), a, b))
			return false;
	return true;
}

/* ---- in words ---- */

static void value_print(struct buf *out, const char *value)
{
	AUTO_DONE(buf) shown = {};

	text_escape(&shown, value, strnlen(value, SHOWN));
	buf_printf(out, "'%s%s'", shown.data ? shown.data : "", strlen(value) > SHOWN ? "…" : "");
}

static void change_print(struct buf *out, const char *name, const char *from /* NULL: default */, const char *to)
{
	buf_printf(out, "%s ", name);
	if (from)
		value_print(out, from);
	else
		buf_str(out, "default");
	buf_str(out, " → ");
	if (to)
		value_print(out, to);
	else
		buf_str(out, "default");
}

static char *joined(const struct strv *list)
{
	AUTO_DONE(buf) b = {};

	for (size_t i = 0; i < list->n; i++)
		buf_printf(&b, "%s%s", i ? "; " : "", list->v[i]);
	return list->n ? buf_steal(&b) : NULL;
}

static void map_print(struct buf *out, const char *name, const struct strv *a, const struct strv *b)
{
	const char *comma = "";

	for (size_t i = 0; i < b->n; i++) {
		const char *before = pair_find(a, b->v[i]);

		if (text_equal(before, b->v[i]))
			continue;
		buf_printf(out, "%s%s.%.*s %s", comma, name, (int)strcspn(b->v[i], "="), b->v[i], before ? "changed" : "added");
		comma = ", ";
	}
	for (size_t i = 0; i < a->n; i++)
		if (!pair_find(b, a->v[i])) {
			buf_printf(out, "%s%s.%.*s removed", comma, name, (int)strcspn(a->v[i], "="), a->v[i]);
			comma = ", ";
		}
}

/* Commands are long, and notify channels may contain a password. */
static bool told_without_values(const struct job_field *f)
{
	static const char *const those[] = {"command", "script", "stdin", "notify"};

	for (size_t i = 0; i < ELEMENTS(those); i++)
		if (strcmp(f->name, those[i]) == 0)
			return true;
	return false;
}

static void field_change_print(struct buf *out, const struct job_field *f, const struct job_spec *a, const struct job_spec *b)
{
	AUTO_TEXT from = NULL;
	AUTO_TEXT to = NULL;

	if (told_without_values(f)) {
		buf_printf(out, "%s changed", f->name);
	} else if (f->type == FIELD_MAP) {
		map_print(out, f->name, field_value(f, a), field_value(f, b));
	} else if (f->type == FIELD_LIST) {
		from = joined(field_value(f, a));
		to = joined(field_value(f, b));
		change_print(out, f->name, from, to);
	} else if (f->type == FIELD_TEXT) {
		change_print(out, f->name, *(char *const *)field_value(f, a), *(char *const *)field_value(f, b));
	} else {
		from = job_field_print(f, *(const int64_t *)field_value(f, a));
		to = job_field_print(f, *(const int64_t *)field_value(f, b));
		buf_printf(out, "%s %s → %s", f->name, from, to);
	}
}

void job_diff_words(const struct job_spec *a, const struct job_spec *b, struct buf *out)
{
	size_t begin = out->len;

	for (size_t i = 0; i < job_fields_count; i++) {
		if (job_fields[i].quiet || job_diff_field_equal(&job_fields[i], a, b))
			continue;
		if (out->len - begin > WORDS_MAX) {
			buf_str(out, " and more");
			return;
		}
		if (out->len > begin)
			buf_str(out, ", ");
		field_change_print(out, &job_fields[i], a, b);
	}
}
