/* SPDX-License-Identifier: Apache-2.0 */
/* One signed libcurl transfer per request. */
#include "net/aws/s3_request.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/sha256.h"
#include "base/text.h"
#include "net/aws/aws_credentials.h"
#include "net/request.h"
#include "net/s3_payload.h"
#include "net/aws/s3_sign.h"
#include "net/aws/s3_xml.h"
#include "net/transfer.h"
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define CONNECT_TIMEOUT_MS 15000L
/* bytes per second; a transfer that is slower for SLOW_TIME seconds is given up */
#define SLOW_BYTES 10L
#define SLOW_TIME 60L
#define UPLOAD_BUFFER (256L << 10)

struct s3_requests {
	sd_event *ev;                 /* borrowed */
	struct aws_credentials *keys; /* borrowed */
	struct transfers *transfers;  /* owned */
};

struct s3_transfer {
	struct transfer transfer;     /* the first member */
	struct s3_requests *all;
	struct request *request;      /* borrowed */
	struct s3_payload p;
	struct curl_slist *headers;   /* owned */
	int file;                     /* owned; -1: none */
	int file_socket;              /* owned: the daemon sends the file to its other end; -1: none */
	sd_event_source *file_source;
	int64_t size, sent;           /* bytes of the body, and of it read so far */
	int read_error;               /* errno; 0: none */
	struct buf response;
	int64_t total;                /* from Content-Range or Content-Length; -1: unknown */
	bool too_large;
};

static void s3_transfer_free(struct s3_transfer *t)
{
	aws_credentials_cancel(t->all->keys, t);
	if (t->transfer.easy)
		transfer_done(&t->transfer);
	curl_slist_free_all(t->headers);
	sd_event_source_disable_unref(t->file_source);
	auto_fd_close(&t->file);
	auto_fd_close(&t->file_socket);
	buf_done(&t->response);
	free(t);
}

void s3_request_drop(struct request *r)
{
	if (r->s3)
		s3_transfer_free(STEAL(r->s3));
}

static void s3_transfer_end(struct s3_transfer *t, enum net_outcome outcome, const char *error, int fd)
{
	struct request *r = t->request;
	AUTO_TEXT text = xstrdup(error);

	r->s3 = NULL;
	s3_transfer_free(t);
	request_end(r, outcome, text, fd);
}

/* ---- the body ---- */

/* Reads from the parts of the file as if they were one. */
static ssize_t file_read(const struct s3_transfer *t, int64_t at, char *out, size_t max)
{
	for (size_t i = 0; i < t->p.parts_n; i++) {
		const struct s3_part *part = &t->p.parts[i];

		if (at < part->length) {
			int64_t left = part->length - at;

			return pread(t->file, out, (int64_t)max < left ? max : (size_t)left, part->offset + at);
		}
		at -= part->length;
	}
	return 0;
}

static size_t on_body_wanted(char *out, size_t size, size_t n, void *arg)
{
	struct s3_transfer *t = arg;
	size_t max = size * n;
	ssize_t got;

	if (t->size - t->sent < (int64_t)max)
		max = (size_t)(t->size - t->sent);
	if (max == 0)
		return 0;
	if (t->p.verb == S3_PUT) {
		memcpy(out, t->request->payload.body + t->sent, max);
		got = (ssize_t)max;
	} else {
		got = file_read(t, t->sent, out, max);
	}
	if (got <= 0) { /* the file is shorter than the daemon said */
		t->read_error = got < 0 ? errno : ENODATA;
		return CURL_READFUNC_ABORT;
	}
	t->sent += got;
	return (size_t)got;
}

static int on_body_seek(void *arg, curl_off_t offset, int origin)
{
	struct s3_transfer *t = arg;

	if (origin != SEEK_SET || offset < 0 || offset > t->size)
		return CURL_SEEKFUNC_FAIL;
	t->sent = offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- the answer ---- */

static size_t on_answer_data(char *data, size_t size, size_t n, void *arg)
{
	struct s3_transfer *t = arg;
	size_t len = size * n;

	t->too_large |= len > S3_BODY_MAX - t->response.len;
	if (t->too_large)
		return 0;
	buf_add(&t->response, data, len);
	return len;
}

/* Content-Range: bytes 0-9/100 */
static size_t on_answer_header(char *data, size_t size, size_t n, void *arg)
{
	static const char name[] = "content-range:";
	struct s3_transfer *t = arg;
	AUTO_TEXT line = xstrndup(data, size * n);
	const char *slash = strchr(line, '/');
	int64_t total;

	if (strncasecmp(line, name, sizeof(name) - 1) == 0 && slash && sscanf(slash + 1, "%19" SCNd64, &total) == 1 && total >= 0)
		t->total = total;
	return size * n;
}

static void answer_describe(const struct s3_transfer *t, long status, struct buf *out)
{
	const char *xml = t->response.data ? t->response.data : "";
	AUTO_DONE(buf) code = {};
	AUTO_DONE(buf) message = {};
	AUTO_DONE(buf) both = {};

	if (status < 300)
		return;
	s3_xml_text(xml, "Code", &code);
	s3_xml_text(xml, "Message", &message);
	buf_printf(&both, "%.60s%s%.200s", code.len ? code.data : "", code.len && message.len ? ": " : "",
		message.len ? message.data : "");
	while (both.len > 0 && both.data[both.len - 1] == '.')
		both.len--;
	text_escape(out, both.data, both.len);
	if (status == 401 || status == 403)
		buf_str(out, "; check the AWS credentials of jobsched-net, see jobsched-net(8)");
}

/* The keys may have been replaced; then the next request uses the new ones. */
static bool keys_refused(const char *message)
{
	static const char *const codes[] = {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "TokenRefreshRequired"};

	for (size_t i = 0; i < ELEMENTS(codes); i++)
		if (text_starts(message, codes[i]))
			return true;
	return false;
}

static bool status_temporary(long status, const char *message)
{
	return status >= 500 || status == 429 || status == 408 || status == 425 || keys_refused(message) ||
		text_starts(message, "RequestTimeout") || text_starts(message, "SlowDown");
}

static void answer_report(struct s3_transfer *t, long status)
{
	AUTO_DONE(buf) keys = {};
	AUTO_DONE(buf) message = {};
	struct s3_result result = {.status = status, .total = t->total, .body = t->response.data, .body_len = t->response.len};
	struct err e = {};
	int fd;

	answer_describe(t, status, &message);
	result.message = message.len ? message.data : "";
	if (keys_refused(result.message))
		aws_credentials_refused(t->all->keys);
	if (status_temporary(status, result.message)) {
		AUTO_TEXT text = xprintf("the storage answered %ld %s", status, result.message);

		s3_transfer_end(t, NET_BUSY, text, -1);
		return;
	}
	if (t->p.verb == S3_LIST && status == 200) {
		if (!s3_xml_keys(t->response.data ? t->response.data : "", &keys, &result.more)) {
			s3_transfer_end(t, NET_FAILED, "the storage did not answer with a list of objects", -1);
			return;
		}
		result.body = keys.data;
		result.body_len = keys.len;
	}
	if (result.total < 0 && status == 200)
		result.total = (int64_t)t->response.len;
	fd = s3_result_memfd(&result, &e);
	s3_transfer_end(t, fd < 0 ? NET_BUSY : NET_DONE, fd < 0 ? e.msg : "", fd);
}

static void on_s3_end(struct transfer *transfer, int result)
{
	struct s3_transfer *t = (struct s3_transfer *)transfer;
	AUTO_DONE(buf) error = {};
	curl_off_t sent = 0;
	long status = 0;

	failpoint_pass(FP_STORAGE_ANSWERED);
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	if (t->read_error)
		buf_printf(&error, "could not read the file to upload: %s", strerror(t->read_error));
	else if (t->too_large)
		buf_printf(&error, "the storage sent more than %zu bytes", S3_BODY_MAX);
	else if (result != CURLE_OK)
		buf_str(&error, transfer->error[0] ? transfer->error : curl_easy_strerror((CURLcode)result));
	else if (status >= 200 && status < 300 && sent != t->size)
		buf_printf(&error, "the storage answered %ld before it had the whole body", status);
	if (error.len)
		s3_transfer_end(t, NET_BUSY, error.data, -1);
	else
		answer_report(t, status);
}

/* ---- the request ---- */

/* libcurl sends 'Expect: 100-continue' with a body of more than 1 MiB. An empty header 'Expect:' would be signed but not sent. */
static bool body_options(struct s3_transfer *t)
{
	CURL *c = t->transfer.easy;

	if (t->p.verb != S3_PUT && t->p.verb != S3_PUT_FILE)
		return true;
	return curl_easy_setopt(c, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->size) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_READFUNCTION, on_body_wanted) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_READDATA, t) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_body_seek) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_SEEKDATA, t) == CURLE_OK;
}

static bool transfer_options(struct s3_transfer *t)
{
	CURL *c = t->transfer.easy;
	char range[64];

	if (t->p.verb == S3_GET && t->p.length > 0) {
		snprintf(range, sizeof(range), "Range: bytes=%" PRId64 "-%" PRId64, t->p.from, t->p.from + t->p.length - 1);
		t->headers = curl_slist_append(t->headers, range);
	}
	return curl_easy_setopt(c, CURLOPT_URL, t->p.url) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(t->request->timeout / USEC_MSEC)) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, SLOW_TIME) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_answer_header) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_HEADERDATA, t) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer_data) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEDATA, t) == CURLE_OK && body_options(t);
}

static void on_keys(const struct aws_keys *keys, const struct err *e, void *arg)
{
	struct s3_transfer *t = arg;

	if (!keys) {
		s3_transfer_end(t, NET_BUSY, e->msg, -1);
		return;
	}
	failpoint_pass(FP_STORAGE_SEND);
	t->transfer.on_end = on_s3_end;
	t->transfer.easy = curl_easy_init();
	if (!t->transfer.easy || !transfer_options(t) ||
		!s3_sign(t->transfer.easy, keys, t->p.region, *t->p.sha256 ? t->p.sha256 : S3_SIGN_EMPTY, &t->headers) ||
		!transfer_start(&t->transfer, t->all->transfers))
		s3_transfer_end(t, NET_FAILED, "libcurl refuses the request to the storage", -1);
}

/* ---- the file of an upload ---- */

static int on_file(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct s3_transfer *t = arg;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&t->file, CMSG_DATA(c), sizeof(int));
	t->file_source = sd_event_source_disable_unref(t->file_source);
	if (t->file < 0)
		s3_transfer_end(t, NET_BUSY, "the daemon sent no file", -1);
	else
		aws_credentials_get(t->all->keys, on_keys, t);
	return 0;
}

static bool file_request(struct s3_transfer *t, struct err *e)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, errno, "could not ask for the file");
	t->file_socket = pair[0];
	r = sd_event_add_io(t->all->ev, &t->file_source, t->file_socket, EPOLLIN, on_file, t);
	if (r < 0) {
		close(pair[1]);
		return err_errno(e, -r, "could not ask for the file");
	}
	request_need_file(t->request, pair[1]);
	return true;
}

bool s3_request_start(struct request *r, struct s3_requests *all, struct err *e)
{
	struct s3_transfer *t = xcalloc(1, sizeof(*t));

	*t = (struct s3_transfer){.all = all, .request = r, .file = -1, .file_socket = -1, .total = -1};
	r->s3 = t;
	if (!s3_payload_parse(&r->payload, &t->p, e)) {
		s3_request_drop(r);
		return false;
	}
	t->size = t->p.verb == S3_PUT ? (int64_t)r->payload.body_len : 0;
	for (size_t i = 0; i < t->p.parts_n; i++)
		t->size += t->p.parts[i].length;
	if (t->p.verb == S3_PUT_FILE && !file_request(t, e)) {
		s3_request_drop(r);
		return false;
	}
	if (t->p.verb != S3_PUT_FILE)
		aws_credentials_get(all->keys, on_keys, t);
	return true;
}

bool s3_requests_new(struct sd_event *ev, struct aws_credentials *keys, struct s3_requests **ret, struct err *e)
{
	AUTO(s3_requests) *all = xcalloc(1, sizeof(*all));

	all->ev = ev;
	all->keys = keys;
	if (!transfers_new(ev, &all->transfers, e))
		return false;
	*ret = STEAL(all);
	return true;
}

void s3_requests_free(struct s3_requests *all)
{
	if (!all)
		return;
	transfers_free(all->transfers);
	free(all);
}
