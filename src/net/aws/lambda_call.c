/* SPDX-License-Identifier: Apache-2.0 */
/* Signs the request of an invocation, sends it, and judges the response. */
#include "net/aws/lambda_call.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "core/target/lambda.h"
#include "net/aws/aws_credentials.h"
#include "net/call/net_call.h"
#include "net/request.h"
#include "net/transfer.h"
#include <curl/curl.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <systemd/sd-event.h>
#include <time.h>

#define RESPONSE_MAX (INT64_C(16) << 20) /* AWS has a limit of 6 MiB, or 20 MiB if it is streamed */
#define LOG_MAX (16 << 10)               /* base64; AWS sends the last 4 KiB of the log */
#define CONTEXT_MAX 3583                 /* limit of AWS */
#define CONNECT_TIMEOUT_MS 30000L

struct lambda_shared {
	struct transfers *transfers;      /* owned; not shared with URLs of jobs, whose addresses are checked */
	struct aws_credentials *keys;     /* borrowed */
};

struct lambda_call {
	struct net_call call;             /* the first member */
	struct transfer transfer;
	struct curl_slist *headers;       /* owned */
	sd_event_source *timer;           /* the end of the attempt, while the credentials are fetched */
	char error_type[64];              /* X-Amz-Function-Error; empty: none */
	struct buf log;                   /* X-Amz-Log-Result */
};

/* ---- the response ---- */

static size_t on_lambda_data(char *data, size_t size, size_t n, void *arg)
{
	struct lambda_call *c = arg;

	net_call_keep(&c->call, data, size * n);
	return c->call.bytes > RESPONSE_MAX ? 0 : size * n;
}

/* The value of this header, without blanks around it; NULL: it is another header. */
static const char *header_value(const char *line, size_t len, const char *name, size_t *ret_len)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return NULL;
	line += n + 1;
	len -= n + 1;
	for (; len > 0 && (*line == ' ' || *line == '\t'); len--)
		line++;
	while (len > 0 && (unsigned char)line[len - 1] <= ' ')
		len--;
	*ret_len = len;
	return line;
}

static size_t on_lambda_header(char *line, size_t size, size_t n, void *arg)
{
	struct lambda_call *c = arg;
	const char *value;
	size_t len;

	if ((value = header_value(line, size * n, "X-Amz-Function-Error", &len))) {
		AUTO_TEXT text = xstrndup(value, len);

		net_frame_text(c->error_type, sizeof(c->error_type), len ? text : "unknown");
	} else if ((value = header_value(line, size * n, "X-Amz-Log-Result", &len)) && len <= LOG_MAX) {
		buf_clear(&c->log);
		buf_add(&c->log, value, len);
	}
	return size * n;
}

/* The end of the log follows the response in the output. */
static void log_append(struct lambda_call *c)
{
	AUTO_DONE(buf) text = {};

	if (c->log.len == 0 || !buf_base64_decode(c->log.data, c->log.len, &text) || text.len == 0)
		return;
	if (c->call.response.len > 0 && c->call.response.data[c->call.response.len - 1] != '\n')
		net_call_keep(&c->call, "\n", 1);
	net_call_keep(&c->call, text.data, text.len);
}

static bool keys_refused(const struct buf *response)
{
	static const char *const names[] = {"ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "security token"};

	for (size_t i = 0; response->data && i < ELEMENTS(names); i++)
		if (memmem(response->data, response->len, names[i], strlen(names[i])))
			return true;
	return false;
}

static enum net_call_outcome judge_response(struct lambda_call *c, int status, struct buf *error)
{
	const struct lambda_shared *shared = c->call.shared;
	enum call_verdict v = call_status_judge(NULL, status);

	if (c->error_type[0]) {
		buf_printf(error, "the function failed (%s)", c->error_type);
		net_call_quote(&c->call, error);
		return NET_CALL_RETRY;
	}
	if (v == CALL_SUCCEEDED)
		return NET_CALL_OK;
	buf_printf(error, "Lambda answered %d", status);
	net_call_quote(&c->call, error);
	if (status == 403 && keys_refused(&c->call.response)) {
		aws_credentials_refused(shared->keys); /* the next attempt has new keys */
		return NET_CALL_RETRY;
	}
	return v == CALL_TEMPORARY ? NET_CALL_RETRY : NET_CALL_FAILED;
}

static enum net_call_outcome judge_transfer(const struct lambda_call *c, CURLcode result, struct buf *error)
{
	if (result == CURLE_WRITE_ERROR) {
		buf_printf(error, "the response has more than %" PRId64 " bytes", RESPONSE_MAX);
		return NET_CALL_FAILED;
	}
	buf_str(error, c->transfer.error[0] ? c->transfer.error : curl_easy_strerror(result));
	return result == CURLE_OPERATION_TIMEDOUT ? NET_CALL_TIMED_OUT : NET_CALL_RETRY;
}

static void on_lambda_end(struct transfer *t, int result)
{
	struct lambda_call *c = (struct lambda_call *)((char *)t - offsetof(struct lambda_call, transfer));
	struct net_call_result end = {};
	AUTO_DONE(buf) error = {};

	end.status = transfer_status(t, &end.retry_after);
	end.outcome = result == CURLE_OK ? judge_response(c, (int)end.status, &error)
					 : judge_transfer(c, (CURLcode)result, &error);
	log_append(c);
	failpoint_pass(FP_CALL_ANSWERED);
	net_call_end(&c->call, &end, &error);
}

static void lambda_call_done(struct net_call *call)
{
	struct lambda_call *c = (struct lambda_call *)call;
	const struct lambda_shared *shared = call->shared;

	aws_credentials_cancel(shared->keys, c);
	transfer_done(&c->transfer);
	sd_event_source_disable_unref(c->timer);
	curl_slist_free_all(c->headers);
	buf_done(&c->log);
}

/* ---- the request ---- */

static char *url_of(const struct call_payload *p)
{
	size_t name, at;
	const char *qualifier = lambda_target_qualifier(p->lambda, &name);
	AUTO_DONE(buf) url = {};

	if (p->endpoint)
		buf_str(&url, p->endpoint);
	else
		buf_printf(&url, "https://lambda.%s.amazonaws.com%s", p->region, text_starts(p->region, "cn-") ? ".cn" : "");
	for (at = url.len; at > 0 && url.data[at - 1] == '/'; at--)
		url.len--;
	buf_printf(&url, "/2015-03-31/functions/%.*s/invocations", (int)name, p->lambda);
	if (qualifier && qualifier[0] == '$') /* $LATEST */
		buf_printf(&url, "?Qualifier=%%24%s", qualifier + 1);
	else if (qualifier)
		buf_printf(&url, "?Qualifier=%s", qualifier);
	return buf_steal(&url);
}

static void header_add(struct lambda_call *c, const char *name, const char *value)
{
	AUTO_TEXT line = xprintf("%s: %s", name, value);

	c->headers = curl_slist_append(c->headers, line);
	explicit_bzero(line, strlen(line));
}

/* The function finds the headers of the scheduler in clientContext.custom; Lambda does not pass HTTP headers on. */
static void context_add(struct lambda_call *c)
{
	AUTO_DONE(buf) json = {};
	AUTO_DONE(buf) coded = {};

	buf_str(&json, "{\"custom\":{");
	for (size_t i = 0; i < c->call.p.headers_n; i++) {
		const char *header = c->call.p.headers[i];
		size_t len = strcspn(header, ":");
		const char *value = header + len + (header[len] == ':');
		AUTO_TEXT name = xstrndup(header, len);

		if (i)
			buf_char(&json, ',');
		buf_json_str(&json, name);
		buf_char(&json, ':');
		buf_json_str(&json, value + strspn(value, " "));
	}
	buf_str(&json, "}}");
	buf_base64(&coded, json.data, json.len);
	if (coded.len <= CONTEXT_MAX)
		header_add(c, "X-Amz-Client-Context", coded.data);
}

static bool headers_set(struct lambda_call *c, const struct aws_keys *keys)
{
	const struct call_payload *p = &c->call.p;

	header_add(c, "Content-Type", "application/json");
	header_add(c, "X-Amz-Invocation-Type", p->event ? "Event" : "RequestResponse");
	if (!p->event)
		header_add(c, "X-Amz-Log-Type", "Tail");
	context_add(c);
	for (size_t i = 0; i < p->headers_n; i++)
		c->headers = curl_slist_append(c->headers, p->headers[i]);
	if (keys->token)
		header_add(c, "X-Amz-Security-Token", keys->token);
	return curl_easy_setopt(c->transfer.easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK;
}

static bool keys_set(CURL *easy, const struct call_payload *p, const struct aws_keys *keys)
{
	AUTO_TEXT how = xprintf("aws:amz:%s:lambda", p->region);

	return curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, how) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_USERNAME, keys->id) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PASSWORD, keys->secret) == CURLE_OK;
}

static bool options_set(struct lambda_call *c, const struct aws_keys *keys)
{
	const struct net_payload *body = &c->call.request->payload;
	int64_t ms = (c->call.end_at - clock_boot(&clock_system)) / USEC_MSEC;
	CURL *easy = c->transfer.easy;
	AUTO_TEXT url = url_of(&c->call.p);

	return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK && curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->body_len) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->body_len ? body->body : "") == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(ms > 0 ? ms : 1)) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS) == CURLE_OK &&
		/* an empty string also disables the variables http_proxy and others */
		curl_easy_setopt(easy, CURLOPT_PROXY, c->call.p.proxy ? c->call.p.proxy : "") == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_lambda_header) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HEADERDATA, c) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_lambda_data) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEDATA, c) == CURLE_OK && keys_set(easy, &c->call.p, keys) && headers_set(c, keys);
}

static bool invoke(struct lambda_call *c, const struct aws_keys *keys, struct err *e)
{
	const struct lambda_shared *shared = c->call.shared;

	c->timer = sd_event_source_disable_unref(c->timer);
	c->transfer.on_end = on_lambda_end;
	c->transfer.easy = curl_easy_init();
	if (!c->transfer.easy)
		return err_set(e, ERR_INTERNAL, "could not start libcurl");
	if (!failpoint_ok(FP_CALL_SEND, e))
		return false;
	return (options_set(c, keys) && transfer_start(&c->transfer, shared->transfers)) ||
		err_set(e, ERR_INVALID, "libcurl refuses the request");
}

static void on_keys(const struct aws_keys *keys, const struct err *why, void *arg)
{
	struct lambda_call *c = arg;
	struct err e = {};

	if (!keys) /* nothing was sent; the endpoint of the credentials may work later */
		net_call_fail(&c->call, NET_CALL_RETRY, why->msg);
	else if (!invoke(c, keys, &e))
		net_call_fail(&c->call, NET_CALL_NOT_STARTED, e.msg);
}

static int on_attempt_end(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	net_call_fail(arg, NET_CALL_TIMED_OUT, "the AWS credentials did not arrive in time");
	return 0;
}

/* on_keys() may end and free the call before this function returns. */
static bool lambda_call_send(struct net_call *call, struct err *e)
{
	struct lambda_call *c = (struct lambda_call *)call;
	const struct lambda_shared *shared = call->shared;

	if (sd_event_add_time(call->ev, &c->timer, CLOCK_BOOTTIME, (uint64_t)call->end_at, 1, on_attempt_end, c) < 0)
		return err_set(e, ERR_INTERNAL, "could not make a timer");
	aws_credentials_get(shared->keys, on_keys, c);
	return true;
}

/* ---- all invocations ---- */

static void lambda_calls_close(void *arg)
{
	struct lambda_shared *shared = arg;

	transfers_free(shared->transfers);
	free(shared);
}

static bool lambda_calls_open(struct sd_event *ev, struct aws_credentials *aws, void **ret, struct err *e)
{
	struct lambda_shared *shared = xcalloc(1, sizeof(*shared));

	shared->keys = aws;
	if (!transfers_new(ev, &shared->transfers, e)) {
		lambda_calls_close(shared);
		return false;
	}
	*ret = shared;
	return true;
}

const struct net_call_type lambda_call_type = {.size = sizeof(struct lambda_call),
	.open = lambda_calls_open,
	.close = lambda_calls_close,
	.send = lambda_call_send,
	.done = lambda_call_done};
