/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the HTTP client against a server that sends given bytes. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "wire/http_client.h"
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define STEPS_MAX 8

/* One action of the server. */
struct step {
	const char *reply;/* NULL: close the connection and accept the next one */
	size_t len;       /* 0: strlen */
	int pause_ms;     /* before the action */
	bool request;     /* read a whole request first */
	bool bytewise;    /* send one byte at a time */
};
#define READ_REQUEST .request = true

struct server {
	char dir[64], path[96];
	int fd;
	pthread_t thread;
	struct step steps[STEPS_MAX];
	struct buf requests;     /* all requests; valid after the thread has ended */
	int connections;
	_Atomic int closed;      /* connections that the server has closed between two steps */
};

/* Reads one request: the head, then the number of bytes given by its length. */
static bool read_request(struct server *s, int fd)
{
	size_t start = s->requests.len;
	char c;

	for (;;) {
		const char *text = s->requests.data ? s->requests.data + start : "", *end, *length;

		end = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (end && strlen(end + 4) >= (length ? strtoul(length + 16, NULL, 10) : 0))
			return true;
		if (recv(fd, &c, 1, 0) != 1)
			return false;
		buf_char(&s->requests, c);
	}
}

static bool send_reply(int fd, const struct step *t)
{
	size_t len = t->len ? t->len : strlen(t->reply);

	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, t->reply + at, t->bytewise ? 1 : len - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static int accept_client(struct server *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		s->connections++;
	return fd;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	AUTO_FD fd = accept_client(s);

	for (const struct step *t = s->steps; fd >= 0 && (t->reply || t->pause_ms || t->request);
		t++) {
		if (t->request && !read_request(s, fd))
			break;
		if (t->pause_ms)
			poll(NULL, 0, t->pause_ms);
		if (t->reply && !send_reply(fd, t))
			break;
		if (!t->reply && (t + 1)->request) {
			close(fd);
			s->closed++;
			fd = accept_client(s);
		}
	}
	return NULL;
}

static void server_start(struct server *s, const struct step *steps)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	*s = (struct server){};
	strcpy(s->dir, "/tmp/test_client.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof s->path, "%s/sock", s->dir);
	strcpy(address.sun_path, s->path);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	if (!steps)
		return;
	memcpy(s->steps, steps, sizeof s->steps);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Stops the server. The received requests stay valid. */
static void server_stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR); /* ends a pending accept() */
	if (s->steps[0].reply || s->steps[0].request || s->steps[0].pause_ms)
		pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
	rmdir(s->dir);
}

static void server_done(struct server *s)
{
	buf_done(&s->requests);
}

#define SERVER(...)                                                                                \
	AUTO_DONE(server) s;                                                                       \
	AUTO(http_client) *c = NULL;                                                               \
	__attribute__((unused)) json_auto_t *got = NULL;                                           \
	struct err e = {};                                                                         \
	server_start(&s, (const struct step[STEPS_MAX]){__VA_ARGS__});                             \
	assert_true(http_client_open(s.path, &c, &e))

static void end(struct server *s, struct http_client **c)
{
	http_client_free(*c);
	*c = NULL;
	server_stop(s);
}

#define OK "HTTP/1.1 200 OK\r\n"

static bool collect(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return true;
}

/* ---- responses ---- */

static void a_response_with_a_length_is_read_as_json(void **state)
{
	(void)state;
	SERVER({.reply = OK "Content-Length: 7\r\n\r\n{\"a\":1}", READ_REQUEST});
	assert_true(http_client_call(c, "GET", "/v1/x?y=1", NULL, 2000, &got, &e));
	assert_int_equal(json_integer_value(json_object_get(got, "a")), 1);
	end(&s, &c);
	assert_true(text_starts(s.requests.data, "GET /v1/x?y=1 HTTP/1.1\r\nHost: "));
	assert_null(strstr(s.requests.data, "Content-Length"));
}

static void a_response_in_single_bytes_is_read(void **state)
{
	(void)state;
	SERVER({.reply = "HTTP/1.1 100 Continue\r\n\r\n" OK "transfer-encoding: Chunked\r\n\r\n"
		       "3;ext=1\r\n{\"a\r\n4\r\n\":1}\r\n0\r\nTrailer: x\r\n\r\n",
		READ_REQUEST, .bytewise = true});
	assert_true(http_client_call(c, "GET", "/", NULL, 5000, &got, &e));
	assert_int_equal(json_integer_value(json_object_get(got, "a")), 1);
	end(&s, &c);
}

static void the_connection_is_kept_for_the_next_call(void **state)
{
	(void)state;
	SERVER({.reply = OK "Content-Length: 2\r\n\r\n{}", READ_REQUEST},
		{.reply = OK "Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
			READ_REQUEST});
	assert_true(http_client_call(c, "GET", "/1", NULL, 2000, &got, &e));
	json_decref(got);
	got = NULL;
	assert_true(http_client_call(c, "DELETE", "/2", NULL, 2000, &got, &e));
	end(&s, &c);
	assert_int_equal(s.connections, 1);
	assert_non_null(strstr(s.requests.data, "DELETE /2 HTTP/1.1\r\n"));
}

static void a_connection_the_server_will_close_is_not_used_again(void **state)
{
	(void)state;
	SERVER({.reply = OK "Connection: close\r\nContent-Length: 2\r\n\r\n{}", READ_REQUEST},
		{.pause_ms = 1}, {.reply = OK "Content-Length: 2\r\n\r\n[]", READ_REQUEST});
	assert_true(http_client_call(c, "GET", "/1", NULL, 2000, &got, &e));
	json_decref(got);
	got = NULL;
	assert_true(http_client_call(c, "POST", "/2", NULL, 2000, &got, &e));
	end(&s, &c);
	assert_int_equal(s.connections, 2);
}

static void a_body_is_sent_with_its_length(void **state)
{
	(void)state;
	json_auto_t *body = json_pack("{s:s}", "name", "x");

	SERVER({.reply = OK "Content-Length: 2\r\n\r\n{}", READ_REQUEST});
	assert_true(http_client_call(c, "POST", "/v1/jobs", body, 2000, &got, &e));
	end(&s, &c);
	assert_non_null(strstr(s.requests.data, "Content-Length: 12\r\n"));
	assert_non_null(strstr(s.requests.data, "\r\n\r\n{\"name\":\"x\"}"));
}

static void an_error_response_becomes_an_error(void **state)
{
	static const char body[] =
		"{\"error\":{\"code\":\"conflict\",\"message\":\"the name is taken\","
		"\"field\":\"name\"}}";
	AUTO_TEXT answer = xprintf(
		"HTTP/1.1 409 Conflict\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);

	(void)state;
	SERVER({.reply = answer, READ_REQUEST});
	assert_false(http_client_call(c, "POST", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_CONFLICT);
	assert_string_equal(e.msg, "the name is taken");
	assert_string_equal(e.field, "name");
	end(&s, &c);
}

static void an_error_without_a_json_object_has_its_status(void **state)
{
	(void)state;
	SERVER({.reply = "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops", READ_REQUEST},
		{.reply = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", READ_REQUEST});
	assert_false(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_INTERNAL);
	assert_non_null(strstr(e.msg, "500"));
	assert_false(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	end(&s, &c);
}

static void headers_are_found_in_any_case(void **state)
{
	(void)state;
	SERVER({.reply = OK "X-Jobsched-Output-Bytes: \t 12 \r\nContent-Length: 2\r\n\r\n{}",
		READ_REQUEST});
	assert_true(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	assert_string_equal(http_client_header(c, "x-jobsched-output-bytes"), "12");
	assert_null(http_client_header(c, "x-jobsched-output"));
	end(&s, &c);
}

static void a_refusal_before_the_body_was_sent_is_read(void **state)
{
	json_auto_t *body = json_object();
	AUTO_TEXT big = xcalloc(4 * 1024 * 1024 + 1, 1);

	(void)state;
	memset(big, 'x', 4 * 1024 * 1024);
	json_object_set_new(body, "script", json_string(big));
	/* Sends 413 and closes the connection after reading a few bytes. */
	SERVER({.reply = "HTTP/1.1 413 Too Large\r\nContent-Length: 66\r\n\r\n"
			 "{\"error\":{\"code\":\"too_large\",\"message\":\"too "
			 "big\",\"field\":null}}   ",
		       .pause_ms = 50},
		{.pause_ms = 300});
	assert_false(http_client_call(c, "POST", "/v1/jobs", body, 1000, &got, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
	end(&s, &c);
}

/* ---- invalid responses ---- */

static void refuses(const char *answer, size_t len)
{
	SERVER({.reply = answer, .len = len, READ_REQUEST});
	if (http_client_call(c, "GET", "/", NULL, 2000, &got, &e))
		fail_msg("accepted: %s", answer);
	/* Refused because of its content, not because of missing data. */
	assert_int_equal(e.kind, ERR_INTERNAL);
	end(&s, &c);
}

static void invalid_responses_are_refused(void **state)
{
	static const char *const answers[] = {
		"hello\r\n\r\n",
		"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
		OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		OK "Transfer-Encoding: gzip\r\n\r\n{}",
		OK "Content-Length: -2\r\n\r\n{}",
		OK "Content-Length: +2\r\n\r\n{}",
		OK "Content-Length: 0x2\r\n\r\n{}",
		OK "Content-Length: 99999999999999999999\r\n\r\n{}",
		OK "Content-Length: 9000000000\r\n\r\n{}",
		OK "Content-Length : 2\r\n\r\n{}",
		OK "Content-Length: 2\r\n folded: x\r\n\r\n{}",
		OK "Content-Length: 2 \n\r\n{}",
		OK "X: a\rb\r\nContent-Length: 2\r\n\r\n{}",
		OK "no colon\r\nContent-Length: 2\r\n\r\n{}",
		OK "\r\n{}",
		OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n0\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n{}\r\n0\r\n\r\n",
		OK "Content-Length: 3\r\n\r\n{]}",
		OK "Content-Length: 14\r\n\r\n{\"a\":1,\"a\":2} ",
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(answers); i++)
		refuses(answers[i], 0);
	refuses(OK "X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
		sizeof(OK "X: a\0b\r\nContent-Length: 2\r\n\r\n{}") - 1);
}

static void an_endless_head_is_refused(void **state)
{
	AUTO_DONE(buf) line = {};
	AUTO_DONE(buf) lines = {};

	(void)state;
	buf_str(&line, OK "X: ");
	while (line.len < HTTP_CLIENT_HEAD_MAX + 100)
		buf_char(&line, 'x');
	refuses(line.data, line.len);
	buf_str(&lines, OK);
	while (lines.len < HTTP_CLIENT_HEAD_MAX + 100)
		buf_str(&lines, "X: y\r\n");
	buf_str(&lines, "Content-Length: 2\r\n\r\n{}");
	refuses(lines.data, lines.len);
}

/* ---- lost connections ---- */

static void a_socket_without_a_listener_is_unreachable(void **state)
{
	AUTO(http_client) *c = NULL;
	struct err e = {};

	(void)state;
	assert_false(http_client_open("/nonexistent/sock", &c, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_null(c);
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
	AUTO(http_client) *c = NULL;
	struct err e = {};
	char path[200];

	(void)state;
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = 0;
	assert_false(http_client_open(path, &c, &e));
	assert_int_equal(e.kind, ERR_INVALID);
	assert_false(http_client_open("", &c, &e));
	assert_int_equal(e.kind, ERR_INVALID);
}

static void a_write_without_a_response_is_uncertain(void **state)
{
	(void)state;
	SERVER({.reply = "HTTP/1.1 20", READ_REQUEST});
	assert_false(http_client_call(c, "POST", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	end(&s, &c);
}

static void a_write_with_an_incomplete_response_is_uncertain(void **state)
{
	(void)state;
	SERVER({.reply = OK "Content-Length: 100\r\n\r\n{", READ_REQUEST});
	assert_false(http_client_call(c, "POST", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	end(&s, &c);
}

static void a_read_with_an_incomplete_response_is_unreachable(void **state)
{
	(void)state;
	SERVER({.reply = OK "Transfer-Encoding: chunked\r\n\r\n5\r\n{", READ_REQUEST});
	assert_false(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	end(&s, &c);
}

static void a_read_on_a_closed_kept_connection_is_sent_again(void **state)
{
	(void)state;
	SERVER({.reply = OK "Content-Length: 2\r\n\r\n{}", READ_REQUEST}, {.pause_ms = 1},
		{.reply = OK "Content-Length: 2\r\n\r\n[]", READ_REQUEST});
	assert_true(http_client_call(c, "GET", "/1", NULL, 2000, &got, &e));
	json_decref(got);
	got = NULL;
	poll(NULL, 0, 50);
	assert_true(http_client_call(c, "GET", "/2", NULL, 2000, &got, &e));
	assert_true(json_is_array(got));
	end(&s, &c);
	assert_int_equal(s.connections, 2);
}

static void a_write_on_a_new_connection_that_was_closed_unused_is_sent_again(void **state)
{
	(void)state;
	SERVER({.pause_ms = 1}, {.reply = OK "Content-Length: 2\r\n\r\n[]", READ_REQUEST});
	for (int i = 0; i < 10000 && !s.closed; i++)
		poll(NULL, 0, 1);
	assert_int_equal(s.closed, 1);
	assert_true(http_client_call(c, "POST", "/", NULL, 20000, &got, &e));
	assert_true(json_is_array(got));
	end(&s, &c);
	assert_int_equal(s.connections, 2);
}

/* ---- timeouts ---- */

static void a_server_that_does_not_respond_causes_a_timeout(void **state)
{
	usec_t before = clock_boot(&clock_system), took;

	(void)state;
	SERVER({.pause_ms = 6000, READ_REQUEST});
	assert_false(http_client_call(c, "GET", "/", NULL, 100, &got, &e));
	took = clock_boot(&clock_system) - before;
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_true(took >= 100 * USEC_MSEC && took < 5500 * USEC_MSEC);
	end(&s, &c);
}

static void a_slow_server_causes_a_timeout_of_the_whole_call(void **state)
{
	(void)state;
	SERVER({.reply = OK, READ_REQUEST}, {.reply = "A: b\r\n", .pause_ms = 80},
		{.reply = "A: b\r\n", .pause_ms = 80}, {.reply = "A: b\r\n", .pause_ms = 80},
		{.reply = "Content-Length: 2\r\n\r\n{}", .pause_ms = 80});
	assert_false(http_client_call(c, "POST", "/", NULL, 150, &got, &e));
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	end(&s, &c);
}

/* ---- streams ---- */

static void a_stream_is_passed_on_as_it_arrives(void **state)
{
	AUTO_DONE(buf) text = {};

	(void)state;
	SERVER({.reply = OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", READ_REQUEST},
		{.reply = "6\r\n wor", .pause_ms = 30},
		{.reply = "ld\r\n0\r\n\r\n", .pause_ms = 30},
		{.reply = OK "Content-Length: 2\r\n\r\n{}", READ_REQUEST});
	assert_true(http_client_stream(c, "/out", -1, collect, &text, &e));
	assert_string_equal(text.data, "hello world");
	assert_true(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	end(&s, &c);
	assert_int_equal(s.connections, 1);
}

static void an_incomplete_stream_is_an_error(void **state)
{
	AUTO_DONE(buf) text = {};

	(void)state;
	SERVER({.reply = OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", READ_REQUEST});
	assert_false(http_client_stream(c, "/out", -1, collect, &text, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_string_equal(text.data, "hello");
	end(&s, &c);
}

static void a_stream_without_data_causes_a_timeout(void **state)
{
	AUTO_DONE(buf) text = {};

	(void)state;
	SERVER({.reply = OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", READ_REQUEST},
		{.reply = "5\r\nhello\r\n", .pause_ms = 60},
		{.reply = "0\r\n\r\n", .pause_ms = 500});
	assert_false(http_client_stream(c, "/out", 200, collect, &text, &e));
	assert_string_equal(text.data, "hellohello");
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	end(&s, &c);
}

static bool enough(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return false;
}

static void a_receiver_can_end_the_stream(void **state)
{
	AUTO_DONE(buf) text = {};

	(void)state;
	SERVER({.reply = OK "Content-Length: 100\r\n\r\nhello", READ_REQUEST}, {.pause_ms = 1},
		{.reply = OK "Content-Length: 2\r\n\r\n{}", READ_REQUEST});
	assert_true(http_client_stream(c, "/out", 2000, enough, &text, &e));
	assert_string_equal(text.data, "hello");
	assert_true(http_client_call(c, "GET", "/", NULL, 2000, &got, &e));
	end(&s, &c);
	assert_int_equal(s.connections, 2);
}

static void an_error_instead_of_a_stream_is_an_error(void **state)
{
	static const char body[] = "{\"error\":{\"code\":\"not_found\",\"message\":\"no run 7\"}}";
	AUTO_TEXT answer =
		xprintf("HTTP/1.1 404 No\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	AUTO_DONE(buf) text = {};

	(void)state;
	SERVER({.reply = answer, READ_REQUEST});
	assert_false(http_client_stream(c, "/out", 2000, collect, &text, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_int_equal(text.len, 0);
	end(&s, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_response_with_a_length_is_read_as_json),
		TEST(a_response_in_single_bytes_is_read),
		TEST(the_connection_is_kept_for_the_next_call),
		TEST(a_connection_the_server_will_close_is_not_used_again),
		TEST(a_body_is_sent_with_its_length),
		TEST(an_error_response_becomes_an_error),
		TEST(an_error_without_a_json_object_has_its_status),
		TEST(headers_are_found_in_any_case),
		TEST(a_refusal_before_the_body_was_sent_is_read),
		TEST(invalid_responses_are_refused),
		TEST(an_endless_head_is_refused),
		TEST(a_socket_without_a_listener_is_unreachable),
		TEST(a_path_too_long_for_a_socket_is_refused),
		TEST(a_write_without_a_response_is_uncertain),
		TEST(a_write_with_an_incomplete_response_is_uncertain),
		TEST(a_read_with_an_incomplete_response_is_unreachable),
		TEST(a_read_on_a_closed_kept_connection_is_sent_again),
		TEST(a_write_on_a_new_connection_that_was_closed_unused_is_sent_again),
		TEST(a_server_that_does_not_respond_causes_a_timeout),
		TEST(a_slow_server_causes_a_timeout_of_the_whole_call),
		TEST(a_stream_is_passed_on_as_it_arrives),
		TEST(an_incomplete_stream_is_an_error),
		TEST(a_stream_without_data_causes_a_timeout),
		TEST(a_receiver_can_end_the_stream),
		TEST(an_error_instead_of_a_stream_is_an_error),
	};

	return RUN_TESTS(tests);
}
