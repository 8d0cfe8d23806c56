/* SPDX-License-Identifier: Apache-2.0 */
/* Writes text or JSON objects to standard output. */
#include "jobctl/render/render.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Enough for seconds with microseconds; 17 digits would show rounding errors: 0.30000000000000004. */
#define REAL_DIGITS 15

static const char *const format_names[FORMAT_MAX] = {
	[FORMAT_TABLE] = "table", [FORMAT_WIDE] = "wide", [FORMAT_JSON] = "json",
	[FORMAT_JSONL] = "jsonl", [FORMAT_CSV] = "csv", [FORMAT_NAME] = "name",
};

const char *render_format_name(enum format f)
{
	return format_names[f];
}

bool render_wants_json(const struct ctl *c)
{
	return c->format == FORMAT_JSON || c->format == FORMAT_JSONL;
}

bool render_is_text(const struct ctl *c)
{
	return c->format == FORMAT_TABLE || c->format == FORMAT_WIDE;
}

bool render_format_parse(const char *name, enum format *ret)
{
	for (int i = 0; i < FORMAT_MAX; i++)
		if (strcmp(format_names[i], name) == 0) {
			*ret = (enum format)i;
			return true;
		}
	return false;
}

void render_flush(struct buf *b)
{
	int r = b->len ? io_write_all(STDOUT_FILENO, b->data, b->len) : 0;

	buf_clear(b);
	if (r == -EPIPE)
		exit(128 + SIGPIPE);
	if (r < 0) {
		ctl_say("jobctl: cannot write the output: %s", strerror(-r));
		exit(EXIT_FAILURE);
	}
}

int render_text(struct buf *b)
{
	render_flush(b);
	return EXIT_SUCCESS;
}

/*
 * The length of the text that needs no escaping: printable ASCII, and the newlines between members.
 */
static size_t plain_length(const char *p)
{
	size_t n = 0;

	while ((p[n] >= 0x20 && p[n] < 0x7f) || p[n] == '\n')
		n++;
	return n;
}

/*
 * A character that text_escape() would replace. It stands inside a JSON string, because the rest of
 * JSON is ASCII.
 */
static size_t put_json_char(const char *p, struct buf *out)
{
	unsigned char first = (unsigned char)*p;
	size_t n = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	AUTO_DONE(buf) shown = {};
	unsigned code;

	text_escape(&shown, p, n);
	if (shown.data[0] != '\\') {
		buf_add(out, p, n);
		return n;
	}
	code = (unsigned)strtoul(shown.data + 2, NULL, 16);
	if (code < 0x10000)
		buf_printf(out, "\\u%04x", code);
	else
		buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			0xdc00 + ((code - 0x10000) & 0x3ff));
	return n;
}

void render_json(const json_t *j, size_t flags, struct buf *out)
{
	AUTO_TEXT text = json_dumps(j, flags | JSON_REAL_PRECISION(REAL_DIGITS));

	for (const char *p = text; p && *p;) {
		size_t n = plain_length(p);

		buf_add(out, p, n);
		p += n;
		if (*p)
			p += put_json_char(p, out);
	}
}

int render_object(const struct ctl *c, const json_t *j)
{
	AUTO_DONE(buf) out = {};

	render_json(j, c->format == FORMAT_JSON ? JSON_INDENT(2) : JSON_COMPACT, &out);
	buf_char(&out, '\n');
	return render_text(&out);
}
