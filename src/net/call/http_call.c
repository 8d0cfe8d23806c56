/* SPDX-License-Identifier: Apache-2.0 */
/* One libcurl transfer per call, after its secrets were read. */
#include "net/call/http_call.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "core/job/call.h"
#include "net/call/call_sign.h"
#include "net/call/net_call.h"
#include "net/peer_address.h"
#include "net/request.h"
#include "net/transfer.h"
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#define RESPONSE_MAX (INT64_C(16) << 20) /* a longer response is an error */
#define CONNECT_TIMEOUT_MS 30000L
#define ACCEPT_TIMEOUT (5 * USEC_MIN)    /* of the request of an asynchronous call */
#define DIGEST_BYTES 16                  /* of the SHA-256 of a file, in its path */
#define PATH_TEXT (32 + 16 * DIGEST_BYTES)

struct http_call {
	struct net_call call;        /* the first member */
	struct transfer transfer;
	struct curl_slist *headers;  /* owned */
	int files[3];                /* owned: CA, certificate, key in memory files; 0: none */
	sd_event_source *waiting;    /* an accepted asynchronous call waits until then; NULL otherwise */
	char refused[160];           /* why the address was refused; empty: it was not */
};

static struct http_call *call_of(struct transfer *t)
{
	return (struct http_call *)((char *)t - offsetof(struct http_call, transfer));
}

/* ---- the address ---- */

/* Called with the address that is about to be connected, after the name was resolved. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_call *c = arg;

	if (purpose != CURLSOCKTYPE_IPCXN ||
		(!c->call.p.proxy && !peer_address_allowed(&a->addr, c->call.p.allow, c->refused, sizeof(c->refused))))
		return CURL_SOCKET_BAD;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Called before each request, also on a connection that another call opened. */
static int on_connected(void *arg, char *remote, char *local, int remote_port, int local_port)
{
	struct http_call *c = arg;

	(void)local;
	(void)remote_port;
	(void)local_port;
	return c->call.p.proxy || peer_address_text_allowed(remote, c->call.p.allow, c->refused, sizeof(c->refused))
		? CURL_PREREQFUNC_OK
		: CURL_PREREQFUNC_ABORT;
}

/* ---- the response ---- */

static size_t on_call_data(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	size_t len = size * n;

	net_call_keep(&c->call, data, len);
	return c->call.bytes > RESPONSE_MAX || (c->call.p.expect_size && c->call.bytes > c->call.p.expect_size) ? 0 : len;
}

static bool body_matches(const struct http_call *c)
{
	regex_t r;
	bool found;

	if (!c->call.p.expect_body)
		return true;
	if (regcomp(&r, c->call.p.expect_body, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	found = regexec(&r, c->call.response.data ? c->call.response.data : "", 0, NULL, 0) == 0;
	regfree(&r);
	return found;
}

static enum net_call_outcome judge_response(struct http_call *c, int status, struct buf *error)
{
	enum call_verdict v = call_status_judge(c->call.p.expect_status, status);

	if (v == CALL_SUCCEEDED && !body_matches(c)) {
		buf_printf(error, "the server answered %d, and the response does not match '%.100s'", status,
			c->call.p.expect_body);
		return NET_CALL_RETRY;
	}
	if (v == CALL_SUCCEEDED)
		return NET_CALL_OK;
	buf_printf(error, "the server answered %d", status);
	if (c->call.p.expect_status && status < 300)
		buf_printf(error, " instead of %.100s", c->call.p.expect_status);
	if (status >= 300 && status < 400)
		buf_str(error, "; redirects are not followed, use the final URL");
	net_call_quote(&c->call, error);
	if (status == 410 && c->call.p.suspend_on_410)
		return NET_CALL_GONE;
	return v == CALL_TEMPORARY ? NET_CALL_RETRY : NET_CALL_FAILED;
}

static enum net_call_outcome judge_transfer(struct http_call *c, CURLcode result, struct buf *error)
{
	static const CURLcode final[] = {CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL,
		CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_WRITE_ERROR};

	if (c->refused[0]) {
		buf_str(error, c->refused);
		return NET_CALL_FAILED;
	}
	if (result == CURLE_WRITE_ERROR)
		buf_printf(error, "the response has more than %" PRId64 " bytes",
			c->call.p.expect_size && c->call.p.expect_size < RESPONSE_MAX ? c->call.p.expect_size : RESPONSE_MAX);
	else
		buf_str(error, c->transfer.error[0] ? c->transfer.error : curl_easy_strerror(result));
	if (result == CURLE_SSL_CONNECT_ERROR && error->data && strstr(error->data, "wrong version number"))
		buf_str(error, "; the server does not speak TLS on this port");
	if (result == CURLE_OPERATION_TIMEDOUT)
		return NET_CALL_TIMED_OUT;
	for (size_t i = 0; i < ELEMENTS(final); i++)
		if (final[i] == result)
			return NET_CALL_FAILED;
	return NET_CALL_RETRY;
}

/* ---- the end ---- */

static void http_call_done(struct net_call *call)
{
	struct http_call *c = (struct http_call *)call;

	transfer_give_back(&c->transfer, call->shared);
	sd_event_source_disable_unref(c->waiting);
	curl_slist_free_all(c->headers);
	for (size_t i = 0; i < ELEMENTS(c->files); i++)
		if (c->files[i] > 0)
			close(c->files[i]);
}

static int on_no_report(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	net_call_fail(arg, NET_CALL_TIMED_OUT, "the target has not reported the end in time");
	return 0;
}

/* The target has accepted the call. It reports the end to the daemon, which then cancels the request. */
static bool http_call_wait(struct http_call *c)
{
	c->call.bytes = 0;
	buf_clear(&c->call.response);
	transfer_done(&c->transfer);
	return sd_event_add_time(c->call.ev, &c->waiting, CLOCK_BOOTTIME, (uint64_t)c->call.end_at, 0, on_no_report, c) >= 0;
}

static void on_call_end(struct transfer *t, int result)
{
	struct http_call *c = call_of(t);
	struct net_call_result end = {};
	AUTO_DONE(buf) error = {};

	end.status = transfer_status(t, &end.retry_after);
	end.outcome = result == CURLE_OK ? judge_response(c, (int)end.status, &error)
					 : judge_transfer(c, (CURLcode)result, &error);
	failpoint_pass(FP_CALL_ANSWERED);
	if (result == CURLE_OK && end.status == 202 && c->call.p.async && http_call_wait(c))
		return;
	net_call_end(&c->call, &end, &error);
}

/* ---- the request ---- */

static bool header_is(const char *header, const char *name)
{
	size_t len = strlen(name);

	return strncasecmp(header, name, len) == 0 && header[len] == ':';
}

static bool headers_add(struct http_call *c, struct err *e)
{
	bool typed = false;

	for (size_t i = 0; i < c->call.p.headers_n; i++) {
		AUTO_TEXT text = call_secrets_expand(&c->call.secrets, c->call.p.headers[i], e);

		if (!text)
			return false;
		typed |= header_is(text, "Content-Type");
		c->headers = curl_slist_append(c->headers, text);
		explicit_bzero(text, strlen(text));
	}
	c->headers = curl_slist_append(c->headers, "Expect:"); /* not 'Expect: 100-continue' */
	if (c->call.request->payload.body_len > 0 && !typed) {
		char first = c->call.request->payload.body[0];

		c->headers = curl_slist_append(c->headers,
			first == '{' || first == '[' ? "Content-Type: application/json"
						     : "Content-Type: text/plain; charset=utf-8");
	}
	return true;
}

/* Several keys give several signatures, so that a receiver can accept the old and the new key. */
static bool signature_add(struct http_call *c, struct err *e)
{
	const struct net_payload *p = &c->call.request->payload;
	AUTO_DONE(buf) signatures = {};
	AUTO_TEXT line = NULL;
	int64_t now = (int64_t)time(NULL);

	for (size_t i = 0; i < c->call.p.sign_n; i++) {
		const struct buf *key = call_secrets_get(&c->call.secrets, c->call.p.sign[i], strlen(c->call.p.sign[i]));

		if (!key || key->len < 16)
			return err_set(e, ERR_INVALID, "the signing key '%s' has fewer than 16 bytes", c->call.p.sign[i]);
		call_sign_add(&signatures, key, c->call.p.key, now, p->body, p->body_len);
	}
	if (c->call.p.sign_n == 0)
		return true;
	line = xprintf("webhook-timestamp: %" PRId64, now);
	c->headers = curl_slist_append(c->headers, line);
	free(line);
	line = xprintf("webhook-signature: %s", signatures.data);
	c->headers = curl_slist_append(c->headers, line);
	return true;
}

/*
 * The path of a memory file. libcurl uses open connections, TLS sessions and parsed CA certificates again if the paths of the
 * files are equal, and the number of a descriptor soon belongs to the file of another job. So the path depends on the content:
 * each bit of its digest is '/' or '/.', which lead to the same file.
 */
static void tls_path(char path[PATH_TEXT], int fd, const struct buf *content)
{
	unsigned char digest[SHA256_LEN];
	struct sha256 s;
	char *at = stpcpy(path, "/proc/self/fd");

	sha256_init(&s);
	sha256_add(&s, content->data, content->len);
	sha256_end(&s, digest);
	for (size_t i = 0; i < 8 * DIGEST_BYTES; i++)
		at = stpcpy(at, digest[i / 8] >> i % 8 & 1 ? "/." : "/");
	snprintf(at, (size_t)(path + PATH_TEXT - at), "/%d", fd);
}

/* libcurl reads the files by name, and every TLS library supports that. */
static bool tls_file_set(struct http_call *c, size_t at, CURLoption option, const char *secret,
	struct err *e)
{
	const struct buf *value = secret ? call_secrets_get(&c->call.secrets, secret, strlen(secret)) : NULL;
	char path[PATH_TEXT];

	if (!secret)
		return true;
	if (!value || value->len == 0)
		return err_set(e, ERR_INVALID, "the secret '%s' is empty", secret);
	c->files[at] = io_memfd_sealed("jobsched-tls", value->data, value->len);
	if (c->files[at] < 0)
		return err_errno(e, -c->files[at], "could not make a memory file");
	tls_path(path, c->files[at], value);
	return curl_easy_setopt(c->transfer.easy, option, path) == CURLE_OK ||
		err_set(e, ERR_INTERNAL, "libcurl does not support TLS files");
}

static bool tls_set(struct http_call *c, struct err *e)
{
	/* otherwise the certificates of the system would be accepted, too */
	if (c->call.p.tls_ca && curl_easy_setopt(c->transfer.easy, CURLOPT_CAPATH, NULL) != CURLE_OK)
		return err_set(e, ERR_INTERNAL, "libcurl does not support TLS files");
	return tls_file_set(c, 0, CURLOPT_CAINFO, c->call.p.tls_ca, e) &&
		tls_file_set(c, 1, CURLOPT_SSLCERT, c->call.p.tls_cert, e) &&
		tls_file_set(c, 2, CURLOPT_SSLKEY, c->call.p.tls_key, e);
}

static bool body_set(struct http_call *c)
{
	const struct net_payload *p = &c->call.request->payload;
	CURL *easy = c->transfer.easy;

	if (strcmp(c->call.p.method, "HEAD") == 0)
		return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
	if (p->body_len > 0 || strcmp(c->call.p.method, "POST") == 0 || strcmp(c->call.p.method, "PUT") == 0 ||
		strcmp(c->call.p.method, "PATCH") == 0) {
		if (curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->body_len) != CURLE_OK ||
			curl_easy_setopt(easy, CURLOPT_POSTFIELDS, p->body) != CURLE_OK)
			return false;
	}
	return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->call.p.method) == CURLE_OK;
}

static bool options_set(struct http_call *c, const char *url)
{
	CURL *easy = c->transfer.easy;
	usec_t timeout = c->call.p.async && c->call.request->timeout > ACCEPT_TIMEOUT ? ACCEPT_TIMEOUT : c->call.request->timeout;
	int64_t ms = timeout / USEC_MSEC;

	return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK && body_set(c) &&
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(ms > 0 ? ms : 1)) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS) == CURLE_OK &&
		/* an empty string also disables the variables http_proxy and others */
		curl_easy_setopt(easy, CURLOPT_PROXY, c->call.p.proxy ? c->call.p.proxy : "") == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, c) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PREREQDATA, c) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_call_data) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEDATA, c) == CURLE_OK;
}

static bool http_call_send(struct net_call *call, struct err *e)
{
	struct http_call *c = (struct http_call *)call;
	AUTO_TEXT url = call_secrets_expand(&c->call.secrets, c->call.p.url, e);
	bool ok;

	c->transfer.on_end = on_call_end;
	if (!url || !headers_add(c, e) || !signature_add(c, e))
		return false;
	if (!transfer_open(&c->transfer, call->shared, e) || !tls_set(c, e))
		return false;
	ok = options_set(c, url) && failpoint_ok(FP_CALL_SEND, e) && transfer_start(&c->transfer, call->shared);
	explicit_bzero(url, strlen(url));
	return ok || err_set(e, ERR_INVALID, "libcurl refuses the request");
}

/* The transfers are not shared with webhooks, whose addresses are not checked. */
static bool http_calls_open(struct sd_event *ev, struct aws_credentials *aws, void **ret, struct err *e)
{
	struct transfers *t = NULL;

	(void)aws;
	if (!transfers_new(ev, &t, e))
		return false;
	*ret = t;
	return true;
}

static void http_calls_close(void *shared)
{
	transfers_free(shared);
}

const struct net_call_type http_call_type = {.size = sizeof(struct http_call),
	.open = http_calls_open,
	.close = http_calls_close,
	.send = http_call_send,
	.done = http_call_done};
