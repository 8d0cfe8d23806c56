/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches run output; escapes control characters for terminals. */
#include "jobctl/render/run_output.h"

#include "base/auto.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/render/render.h"
#include "wire/http_client.h"
#include <inttypes.h>
#include <string.h>

#define CHAR_MAX_BYTES 4
#define ARCHIVED_PART "1048576" /* bytes of one request */
#define ARCHIVED_PART_BYTES 1048576
#define STALL_MS 60000 /* timeout between two parts of output that is not followed */

void run_output_done(struct run_output *o)
{
	buf_done(&o->part);
	buf_done(&o->out);
}

/* Newlines and tabs are not escaped. */
static void escape_text(struct buf *out, const char *s, size_t len)
{
	while (len > 0) {
		size_t n = 0;

		while (n < len && s[n] != '\n' && s[n] != '\t')
			n++;
		text_escape(out, s, n);
		if (n < len)
			buf_char(out, s[n++]);
		s += n;
		len -= n;
	}
}

/* The number of bytes at the end that begin a character and do not complete it. */
static size_t incomplete_char_length(const char *s, size_t len)
{
	for (size_t back = 1; back <= len && back < CHAR_MAX_BYTES; back++) {
		unsigned char c = (unsigned char)s[len - back];

		if (c < 0x80)
			return 0;
		if (c >= 0xc0)
			return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
	}
	return 0;
}

void run_output_put(struct run_output *o, const char *data, size_t len)
{
	size_t left;

	o->bytes += (int64_t)len;
	if (o->raw) {
		buf_add(&o->out, data, len);
		return;
	}
	buf_add(&o->part, data, len);
	left = incomplete_char_length(o->part.data, o->part.len);
	escape_text(&o->out, o->part.data, o->part.len - left);
	memmove(o->part.data, o->part.data + o->part.len - left, left);
	o->part.len = left;
}

void run_output_end(struct run_output *o)
{
	escape_text(&o->out, o->part.data, o->part.len);
	buf_clear(&o->part);
}

static bool on_output_chunk(const char *data, size_t len, void *arg)
{
	struct run_output *o = arg;

	run_output_put(o, data, len);
	render_flush(&o->out);
	return true;
}

static bool on_fetch(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return true;
}

static int64_t header_number(const struct ctl *c, const char *name)
{
	const char *text = http_client_header(c->client, name);
	int64_t n;

	return text && text_parse_int(text, 0, INT64_MAX, &n) ? n : 0;
}

static bool stream_output(struct ctl *c, const struct run_output_range *p, http_client_chunk_fn *fn,
	void *arg, int64_t *ret_total, int64_t *ret_dropped, struct err *e)
{
	AUTO_DONE(buf) path = {};

	buf_printf(&path, "/v1/runs/%" PRId64 "/output?from=%" PRId64, p->run, p->from);
	if (p->attempt)
		buf_printf(&path, "&attempt=%" PRId64, p->attempt);
	if (p->follow)
		buf_str(&path, "&follow=true");
	if (!connect_daemon(c, e) ||
		!http_client_stream(c->client, path.data, p->follow ? -1 : STALL_MS, fn, arg, e))
		return false;
	*ret_total = header_number(c, "X-Jobsched-Output-Bytes");
	*ret_dropped = header_number(c, "X-Jobsched-Output-Dropped");
	return true;
}

bool run_output_say_note(struct ctl *c)
{
	const char *note = http_client_header(c->client, "X-Jobsched-Output-Note");
	AUTO_DONE(buf) text = {};

	if (!note)
		return false;
	text_escape(&text, note, strlen(note));
	ctl_say("(%s)", text.data);
	return true;
}

bool run_output_copy(struct ctl *c, struct run_output *o, const struct run_output_range *p,
	int64_t *ret_total, int64_t *ret_dropped, struct err *e)
{
	bool ok = stream_output(c, p, on_output_chunk, o, ret_total, ret_dropped, e);

	run_output_end(o);
	render_flush(&o->out);
	return ok;
}

bool run_output_copy_archived(struct ctl *c, struct run_output *o, const char *name, int64_t attempt, struct err *e)
{
	int64_t from = 0, got;
	bool ok;

	do {
		AUTO_DONE(buf) path = {};
		AUTO_TEXT offset = xprintf("%" PRId64, from);
		AUTO_TEXT number = xprintf("%" PRId64, attempt);
		int64_t before = o->bytes;

		buf_str(&path, "/v1/archive/output");
		api_query_add(&path, "name", name);
		api_query_add(&path, "from", offset);
		api_query_add(&path, "length", ARCHIVED_PART);
		if (attempt)
			api_query_add(&path, "attempt", number);
		ok = connect_daemon(c, e) && http_client_stream(c->client, path.data, STALL_MS, on_output_chunk, o, e);
		got = o->bytes - before;
		from += got;
	} while (ok && got == ARCHIVED_PART_BYTES);
	run_output_end(o);
	render_flush(&o->out);
	return ok;
}

bool run_output_fetch(struct ctl *c, const struct run_output_range *p, struct buf *ret,
	int64_t *ret_total, int64_t *ret_dropped, struct err *e)
{
	return stream_output(c, p, on_fetch, ret, ret_total, ret_dropped, e);
}
