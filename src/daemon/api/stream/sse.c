/* SPDX-License-Identifier: Apache-2.0 */
/* Writes server-sent events. */
#include "daemon/api/stream/sse.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/request.h"
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-event.h>

#define BEAT (15 * USEC_SEC)

static const char beat_text[] = ":\n\n";

bool sse_wanted(const struct request *r)
{
	const char *accept = request_header(r, "Accept");

	return accept && strstr(accept, SSE_TYPE);
}

bool sse_last_id(const struct request *r, int64_t preset, int64_t *ret, int64_t *ret_place,
	struct err *e)
{
	const char *text = request_header(r, "Last-Event-ID");
	const char *dash = text && ret_place ? strchr(text, '-') : NULL;
	AUTO_TEXT first = text ? xstrndup(text, dash ? (size_t)(dash - text) : strlen(text)) : NULL;

	*ret = preset;
	return !text ||
	       (text_parse_int(first, 0, INT64_MAX, ret) &&
		       (!dash || text_parse_int(dash + 1, 0, INT64_MAX, ret_place))) ||
	       err_set(e, ERR_INVALID, "the Last-Event-ID header is not an id of this stream");
}

void sse_write(struct buf *out, int64_t id, const char *event, const char *data)
{
	buf_printf(out, "id: %" PRId64 "\nevent: %s\ndata: %s\n\n", id, event, data);
}

void sse_write_at(struct buf *out, int64_t id, int64_t place, const char *event, const char *data)
{
	buf_printf(out, "id: %" PRId64 "-%" PRId64 "\nevent: %s\ndata: %s\n\n", id, place, event, data);
}

/* ---- text ---- */

/* The length of the character at 'p'; 0: invalid; -1: its end is missing. */
static int character(const unsigned char *p, size_t len)
{
	int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	for (int i = 1; i < n; i++) {
		if ((size_t)i >= len)
			return -1;
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n == 0 || text_utf8_valid((const char *)p, (size_t)n) ? n : 0;
}

static void write_character(struct buf *out, const char *p, int n)
{
	unsigned char c = (unsigned char)*p;

	if (n == 0)
		buf_str(out, "\xef\xbf\xbd");
	else if (n == 1 && (c < 0x20 || c == '"' || c == '\\' || c == 0x7f))
		buf_printf(out, "\\u%04x", c);
	else
		buf_add(out, p, (size_t)n);
}

size_t sse_write_text(struct buf *out, const char *data, size_t len, bool last)
{
	size_t i = 0;

	buf_char(out, '"');
	while (i < len) {
		int n = character((const unsigned char *)data + i, len - i);

		if (n < 0 && !last)
			break;
		write_character(out, data + i, n < 0 ? 0 : n);
		i += n > 0 ? (size_t)n : 1;
	}
	buf_char(out, '"');
	return len - i;
}

/* ---- heartbeat ---- */

static int on_beat(sd_event_source *source, uint64_t usec, void *arg)
{
	struct sse_beat *b = arg;

	(void)usec;
	sd_event_source_set_time_relative(source, BEAT);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	b->due = true;
	request_wake(b->request);
	return 0;
}

void sse_beat_start(struct sse_beat *b, struct request *r)
{
	int e;

	b->request = r;
	e = sd_event_add_time_relative(request_event(r), &b->timer, CLOCK_MONOTONIC, BEAT, USEC_SEC,
		on_beat, b);
	if (e < 0)
		log_warning("an event stream has no heartbeat: %s", strerror(-e));
}

void sse_beat_stop(struct sse_beat *b)
{
	b->timer = sd_event_source_disable_unref(b->timer);
}

long sse_beat_read(struct sse_beat *b, char *out, size_t max)
{
	if (!b->due || max < strlen(beat_text))
		return 0;
	b->due = false;
	if (!request_is_valid(b->request))
		return STREAM_END;
	memcpy(out, beat_text, strlen(beat_text));
	return (long)strlen(beat_text);
}
