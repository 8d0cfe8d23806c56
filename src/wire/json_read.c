/* SPDX-License-Identifier: Apache-2.0 */
/* Parses untrusted JSON within limits. */
#include "wire/json_read.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include <stdint.h>
#include <string.h>

/* The position of the scan, for error messages. */
struct level {
	const char *key; /* raw text of the current member; NULL: none */
	size_t key_len;
	size_t index;    /* of the current element */
	bool array;
};

struct scan {
	struct level levels[JSON_DEPTH_MAX + 1];
	size_t depth;    /* open containers; at most JSON_DEPTH_MAX + 1 */
	size_t values;
};

/*
 * Returns the position after the string that starts at text[at] with a quote, or len if it is not
 * terminated.
 */
static size_t scan_string(const char *text, size_t len, size_t at)
{
	for (size_t i = at + 1; i < len; i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == '"')
			return i + 1;
	}
	return len;
}

static void scan_open(struct scan *s, bool array)
{
	s->values++;
	if (++s->depth <= JSON_DEPTH_MAX)
		s->levels[s->depth] = (struct level){ .array = array };
}

/*
 * Scans the text up to 'stop' without recursion and counts depth and values. The scan does not
 * check the grammar; the parser does so afterwards.
 */
static void scan_text(struct scan *s, const char *text, size_t len, size_t stop, size_t members)
{
	const char *str = NULL; /* the last string, which may be the name of a member */
	size_t str_len = 0;

	for (size_t i = 0; i < stop && s->depth <= JSON_DEPTH_MAX && s->values <= members;) {
		struct level *l = &s->levels[s->depth];
		size_t end;

		switch (text[i]) {
		case '"':
			end = scan_string(text, len, i);
			str = text + i + 1;
			str_len = end - i >= 2 ? end - i - 2 : 0;
			i = end;
			continue;
		case ':':
			l->key = str;
			l->key_len = str_len;
			break;
		case ',':
			s->values++;
			l->index++;
			l->key = str = NULL;
			break;
		case '{':
		case '[':
			scan_open(s, text[i] == '[');
			str = NULL;
			break;
		case '}':
		case ']':
			if (s->depth > 0)
				s->depth--;
			break;
		}
		i++;
	}
	/* stopped between the name of a member and its colon */
	if (s->depth <= JSON_DEPTH_MAX && !s->levels[s->depth].key && str) {
		s->levels[s->depth].key = str;
		s->levels[s->depth].key_len = str_len;
	}
}

/* jobs[17].env.PATH */
static void scan_path(const struct scan *s, struct buf *out)
{
	size_t depth = s->depth <= JSON_DEPTH_MAX ? s->depth : JSON_DEPTH_MAX;

	for (size_t i = 1; i <= depth && out->len < sizeof(((struct err *)0)->field); i++) {
		const struct level *l = &s->levels[i];

		if (l->array) {
			buf_printf(out, "[%zu]", l->index);
		} else if (l->key) {
			if (out->len > 0)
				buf_char(out, '.');
			buf_add(out, l->key, l->key_len);
		}
	}
}

static bool refuse_at(const struct scan *s, enum err_kind kind, struct err *e, const char *why)
{
	AUTO_DONE(buf) path = {};

	scan_path(s, &path);
	if (path.len == 0)
		return err_set(e, kind, "%s", why);
	err_field(e, path.data, "'%.60s': %s", path.data, why);
	if (e)
		e->kind = kind;
	return false;
}

static bool refuse_syntax(const char *text, size_t len, const json_error_t *je, struct err *e)
{
	AUTO_TEXT why = NULL;
	struct scan s = {};
	size_t at = je->position < 0 ? 0 : (size_t)je->position;

	switch (json_error_code(je)) {
	case json_error_duplicate_key:
		why = xprintf("the member is given twice");
		break;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		why = xprintf("a NUL character is not allowed; use the _b64 form for bytes");
		break;
	case json_error_invalid_utf8:
		why = xprintf("not valid UTF-8; use the _b64 form for bytes");
		break;
	default:
		why = xprintf("not valid JSON: %s (line %d, column %d)", je->text, je->line,
			je->column);
	}
	scan_text(&s, text, len, at < len ? at : len, SIZE_MAX);
	return refuse_at(&s, ERR_INVALID, e, why);
}

json_t *json_read_bounded(const char *text, size_t len, size_t max, size_t members, struct err *e)
{
	struct scan s = {};
	json_error_t je;
	json_t *j;

	if (len > max) {
		err_set(e, ERR_TOO_LARGE, "the JSON text has %zu bytes, the limit is %zu", len,
			max);
		return NULL;
	}
	/* jansson recurses once per level, so the depth is limited before parsing */
	scan_text(&s, text, len, len, members);
	if (s.depth > JSON_DEPTH_MAX) {
		refuse_at(&s, ERR_INVALID, e, "nested too deep, the limit is 64 levels");
		return NULL;
	}
	if (s.values > members) {
		refuse_at(&s, ERR_INVALID, e, "too many members in this request");
		return NULL;
	}
	j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!j)
		refuse_syntax(text, len, &je, e);
	return j;
}

json_t *json_read(const char *text, size_t len, size_t max, struct err *e)
{
	return json_read_bounded(text, len, max, SIZE_MAX, e);
}
