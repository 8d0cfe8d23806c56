/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one HTTP response: status, headers, counted or chunked body. */
#include "wire/http_response.h"
#include "base/err.h"
#include "base/text.h"
#include "wire/http_tls.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define READ_SIZE (64 * 1024)
#define CHUNK_LINE_MAX 256
#define INTERIM_MAX 8 /* 1xx responses before the final one */

void http_response_done(struct http_response *a)
{
	buf_done(&a->in);
	buf_done(&a->head);
}

void http_response_reset(struct http_response *a)
{
	buf_clear(&a->in);
	buf_clear(&a->head);
	a->at = a->got = 0;
	a->status = 0;
	a->length = 0;
	a->keep = false;
}

usec_t http_response_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : clock_boot(&clock_system) + timeout_ms * USEC_MSEC;
}

bool http_response_is_late(usec_t until)
{
	return until >= 0 && clock_boot(&clock_system) >= until;
}

bool http_response_poll(int fd, short events, usec_t until, struct err *e)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		int wait = -1, r;

		if (until >= 0) {
			usec_t left = until - clock_boot(&clock_system);

			/*
			 * Rounded up: a poll that ends too early would be repeated in a busy loop.
			 */
			wait = left <= 0 ? 0
			       : left > (usec_t)INT_MAX * USEC_MSEC
				       ? INT_MAX
				       : (int)((left + USEC_MSEC - 1) / USEC_MSEC);
		}
		r = poll(&p, 1, wait);
		if (r > 0)
			return true;
		if (r < 0 && errno != EINTR)
			return err_errno(e, errno, "cannot wait for the daemon");
		if (r == 0 && http_response_is_late(until))
			return err_set(e, ERR_UNREACHABLE, "the daemon did not answer in time");
	}
}

/* Receives at least one byte. */
static bool receive_more(struct http_response *a, int fd, usec_t until, struct err *e)
{
	/* The rest is at most the beginning of a line. */
	if (a->at > 0) {
		memmove(a->in.data, a->in.data + a->at, a->in.len - a->at);
		a->in.len -= a->at;
		a->at = 0;
	}
	for (;;) {
		char *room = buf_room(&a->in, READ_SIZE);
		ssize_t n = a->tls ? http_tls_recv(a->tls, room, READ_SIZE)
				   : recv(fd, room, READ_SIZE, 0);

		if (n > 0) {
			a->in.len += (size_t)n;
			a->in.data[a->in.len] = 0;
			a->got += (size_t)n;
			return true;
		}
		if (n == 0)
			return err_set(e, ERR_UNREACHABLE,
				"the daemon closed the connection before the response was "
				"complete");
		if (errno == EAGAIN) {
			if (!http_response_poll(fd, POLLIN, until, e))
				return false;
		} else if (errno != EINTR) {
			return err_set(e, ERR_UNREACHABLE, "the daemon closed the connection: %s",
				strerror(errno));
		}
	}
}

static bool refuse_response(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL,
		"the socket does not belong to a jobschedd: invalid HTTP response: %s", what);
}

/*
 * Reads the next line of at most 'max' bytes. The CRLF is replaced by NUL in place. Valid until
 * receive_more().
 */
static bool read_http_line(struct http_response *a, int fd, usec_t until, size_t max, char **ret,
	struct err *e)
{
	size_t seen = 0;

	for (;;) {
		size_t have = a->in.len - a->at;
		char *start = have ? a->in.data + a->at : NULL;
		char *nl = have > seen ? memchr(start + seen, '\n', have - seen) : NULL;

		if (nl) {
			if ((size_t)(nl - start) > max)
				return refuse_response(e, "a line is too long");
			if (nl == start || nl[-1] != '\r')
				return refuse_response(e, "a line ends without CR");
			nl[-1] = 0;
			if (strlen(start) != (size_t)(nl - 1 - start) || strchr(start, '\r'))
				return refuse_response(e, "a line has a control character");
			a->at += (size_t)(nl - start) + 1;
			*ret = start;
			return true;
		}
		if (have > max)
			return refuse_response(e, "a line is too long");
		seen = have;
		if (!receive_more(a, fd, until, e))
			return false;
	}
}

static bool parse_status(const char *line, int *ret, struct err *e)
{
	if (!text_starts(line, "HTTP/1.") || (line[7] != '1' && line[7] != '0') || line[8] != ' ')
		return refuse_response(e, "no HTTP/1.1 status line");
	line += 9;
	for (int i = 0; i < 3; i++)
		if (line[i] < '0' || line[i] > '9')
			return refuse_response(e, "no status code");
	if (line[3] && line[3] != ' ')
		return refuse_response(e, "no status code");
	*ret = (line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0');
	if (*ret < 100 || *ret > 599)
		return refuse_response(e, "no status code");
	return true;
}

/* "Name: value" becomes "Name\0value\0" in a->head. */
static bool add_header(struct http_response *a, char *line, struct err *e)
{
	char *colon = strchr(line, ':'), *value, *end;

	if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
		return refuse_response(e, "a header line is malformed");
	value = colon + 1 + strspn(colon + 1, " \t");
	end = value + strlen(value);
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = 0;
	buf_add(&a->head, line, (size_t)(colon - line));
	buf_char(&a->head, 0);
	buf_add(&a->head, value, (size_t)(end - value) + 1);
	return true;
}

/* Reads headers up to the empty line. */
static bool read_headers(struct http_response *a, int fd, usec_t until, struct err *e)
{
	size_t total = 0;
	char *line;

	buf_clear(&a->head);
	for (;;) {
		if (!read_http_line(a, fd, until, HTTP_CLIENT_HEAD_MAX, &line, e))
			return false;
		if (!*line)
			return true;
		total += strlen(line) + 2;
		if (total > HTTP_CLIENT_HEAD_MAX)
			return refuse_response(e, "the head is too long");
		if (!add_header(a, line, e))
			return false;
	}
}

/* The n-th header of this name; NULL: there are fewer. */
static const char *header_nth(const struct http_response *a, const char *name, int n)
{
	for (size_t at = 0; at < a->head.len;) {
		const char *key = a->head.data + at, *value = key + strlen(key) + 1;

		if (strcasecmp(key, name) == 0 && n-- == 0)
			return value;
		at += (size_t)(value - key) + strlen(value) + 1;
	}
	return NULL;
}

const char *http_response_header(const struct http_response *a, const char *name)
{
	return header_nth(a, name, 0);
}

/* Determines the length of the body, which must be given exactly once. */
static bool decide_length(struct http_response *a, struct err *e)
{
	const char *length = header_nth(a, "Content-Length", 0);
	const char *coding = header_nth(a, "Transfer-Encoding", 0);

	if (header_nth(a, "Content-Length", 1) || header_nth(a, "Transfer-Encoding", 1) ||
	    (length && coding))
		return refuse_response(e, "the length is given twice");
	if (a->status == 204 || a->status == 304) {
		a->length = 0;
		return true;
	}
	if (coding) {
		if (strcasecmp(coding, "chunked") != 0)
			return refuse_response(e, "unknown transfer coding");
		a->length = -1;
		return true;
	}
	if (!length)
		return refuse_response(e, "no length");
	if (!text_parse_int(length, 0, INT64_MAX, &a->length))
		return refuse_response(e, "the length is not a number");
	return true;
}

bool http_response_read_head(struct http_response *a, int fd, usec_t until, struct err *e)
{
	for (int i = 0; i <= INTERIM_MAX; i++) {
		const char *connection;
		char *line;
		bool old;

		if (!read_http_line(a, fd, until, HTTP_CLIENT_HEAD_MAX, &line, e) ||
		    !parse_status(line, &a->status, e))
			return false;
		old = line[7] == '0';
		if (!read_headers(a, fd, until, e))
			return false;
		if (a->status < 200)
			continue;
		connection = http_response_header(a, "Connection");
		a->keep = !old && !(connection && strcasecmp(connection, "close") == 0);
		return decide_length(a, e);
	}
	return refuse_response(e, "too many interim responses");
}

static usec_t next_deadline(const struct http_response_limits *l)
{
	return l->until >= 0 ? l->until : http_response_deadline(l->pause_ms);
}

/* Passes exactly 'left' bytes to 'fn' as they arrive. *ret_stop: 'fn' stopped early. */
static bool pass_body(struct http_response *a, int fd, const struct http_response_limits *l,
	int64_t left, http_client_chunk_fn *fn, void *arg, bool *ret_stop, struct err *e)
{
	*ret_stop = false;
	while (left > 0) {
		size_t have = a->in.len - a->at;

		if (have == 0) {
			if (!receive_more(a, fd, next_deadline(l), e))
				return false;
			continue;
		}
		if ((int64_t)have > left)
			have = (size_t)left;
		a->at += have;
		left -= (int64_t)have;
		if (!fn(a->in.data + a->at - have, have, arg)) {
			a->keep = false;
			*ret_stop = true;
			return true;
		}
	}
	return true;
}

static bool parse_chunk_size(const char *line, int64_t *ret, struct err *e)
{
	int64_t size = 0;
	size_t n = strspn(line, "0123456789abcdefABCDEF");

	if (n == 0 || n > 15 || (line[n] && line[n] != ';' && line[n] != ' '))
		return refuse_response(e, "a chunk has no size");
	for (size_t i = 0; i < n; i++) {
		char c = line[i];

		size = size * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	*ret = size;
	return true;
}

static bool read_chunks(struct http_response *a, int fd, const struct http_response_limits *l,
	http_client_chunk_fn *fn, void *arg, struct err *e)
{
	size_t total = 0, trailer = 0;
	int64_t size = 0;
	char *line;
	bool stop;

	for (;;) {
		if (!read_http_line(a, fd, next_deadline(l), CHUNK_LINE_MAX, &line, e) ||
		    !parse_chunk_size(line, &size, e))
			return false;
		if (size == 0)
			break;
		if ((uint64_t)size > l->max - total)
			return refuse_response(e, "the body is too long");
		total += (size_t)size;
		if (!pass_body(a, fd, l, size, fn, arg, &stop, e))
			return false;
		if (stop)
			return true;
		if (!read_http_line(a, fd, next_deadline(l), CHUNK_LINE_MAX, &line, e))
			return false;
		if (*line)
			return refuse_response(e, "a chunk is longer than its size");
	}
	do {
		if (!read_http_line(a, fd, next_deadline(l), HTTP_CLIENT_HEAD_MAX, &line, e))
			return false;
		trailer += strlen(line);
		if (trailer > HTTP_CLIENT_HEAD_MAX)
			return refuse_response(e, "the trailer is too long");
	} while (*line);
	return true;
}

bool http_response_read_body(struct http_response *a, int fd, const struct http_response_limits *l,
	http_client_chunk_fn *fn, void *arg, struct err *e)
{
	bool stop;

	if (a->length < 0) {
		if (!read_chunks(a, fd, l, fn, arg, e))
			return false;
	} else {
		if ((uint64_t)a->length > l->max)
			return refuse_response(e, "the body is too long");
		if (!pass_body(a, fd, l, a->length, fn, arg, &stop, e))
			return false;
	}
	/*
	 * Unexpected bytes after the body would be taken for the next response, so the connection
	 * is not reused.
	 */
	if (a->at != a->in.len)
		a->keep = false;
	return true;
}
