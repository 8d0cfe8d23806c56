/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of AWS credentials, and the cache over them. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "net/aws/aws_credentials.h"
#include "net/aws/aws_sources.h"
#include "unit/unit.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT"};

static int clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS(variables); i++)
		unsetenv(variables[i]);
	setenv("HOME", "/nonexistent", 1);
	return 0;
}

/* ---- an endpoint in a child process ---- */

struct endpoint {
	pid_t pid;
	int counter[2]; /* a byte per request */
	char url[64];
};

static void endpoint_answer(int fd, const char *lifetime)
{
	char head[4096] = "", keys[512], expires[RFC3339_MAX], answer[1024];
	const char *body = "", *status = "404 Not Found";
	size_t len = 0;
	ssize_t n;

	while (!strstr(head, "\r\n\r\n") && (n = read(fd, head + len, sizeof(head) - 1 - len)) > 0)
		head[len += (size_t)n] = '\0';
	rfc3339_format(clock_now(&clock_system) + atoi(lifetime) * USEC_SEC, expires);
	snprintf(keys, sizeof(keys),
		"{\n  \"Code\" : \"Success\",\n  \"Type\" : \"AWS-HMAC\", \"AccessKeyId\":\"AK\\/1\", \"SecretAccessKey\":\"s3cret\","
		"\"Token\":\"tok\", \"Expiration\" : \"%s\"}\n",
		expires);
	if (text_starts(head, "PUT /latest/api/token ") && strstr(head, "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"))
		status = "200 OK", body = "TOKEN1";
	else if (text_starts(head, "GET /container ") && strstr(head, "Authorization: Bearer abc\r\n"))
		status = "200 OK", body = keys;
	else if (!strstr(head, "X-aws-ec2-metadata-token: TOKEN1\r\n"))
		status = "401 Unauthorized";
	else if (text_starts(head, "GET /latest/meta-data/iam/security-credentials/ "))
		status = "200 OK", body = "role-of-machine\n";
	else if (text_starts(head, "GET /latest/meta-data/iam/security-credentials/role-of-machine "))
		status = "200 OK", body = keys;
	n = snprintf(answer, sizeof(answer), "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
		strlen(body), body);
	(void)!write(fd, answer, (size_t)n);
}

static void endpoint_start(struct endpoint *p, const char *lifetime)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(pipe(p->counter), 0);
	snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d", ntohs(a.sin_port));
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid > 0) {
		close(fd);
		return;
	}
	alarm(120);
	for (;;) {
		int peer = accept(fd, NULL, NULL);

		(void)!write(p->counter[1], "x", 1);
		endpoint_answer(peer, lifetime);
		close(peer);
	}
}

static size_t endpoint_stop(struct endpoint *p)
{
	char seen[64];
	ssize_t n;

	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->counter[1]);
	n = read(p->counter[0], seen, sizeof(seen));
	close(p->counter[0]);
	return n > 0 ? (size_t)n : 0;
}

/* ---- waiting for the keys ---- */

struct got {
	sd_event *ev;
	struct aws_credentials *c;
	int calls;
	char *id, *secret, *token;
	struct err e;
};

static void on_keys(const struct aws_keys *k, const struct err *e, void *arg)
{
	struct got *g = arg;

	g->calls++;
	free(g->id);
	free(g->secret);
	free(g->token);
	g->id = k ? xstrdup(k->id) : NULL;
	g->secret = k ? xstrdup(k->secret) : NULL;
	g->token = k ? xstrdup(k->token) : NULL;
	g->e = e ? *e : (struct err){};
}

static void ask(struct got *g)
{
	int before = g->calls;

	aws_credentials_get(g->c, on_keys, g);
	while (g->calls == before)
		assert_true(sd_event_run(g->ev, (uint64_t)(60 * USEC_SEC)) > 0);
}

static void open_provider(struct got *g)
{
	struct err e = {};

	*g = (struct got){};
	assert_true(sd_event_new(&g->ev) >= 0);
	assert_true(aws_credentials_new(g->ev, &g->c, &e));
}

static void close_provider(struct got *g)
{
	free(g->id);
	free(g->secret);
	free(g->token);
	aws_credentials_free(g->c);
	sd_event_unref(g->ev);
}

/* ---- the cases ---- */

static void the_environment_comes_first(void **state)
{
	struct got g;

	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/file", 1);
	open_provider(&g);
	ask(&g);
	assert_string_equal(g.id, "AKENV");
	assert_string_equal(g.secret, "hidden");
	assert_null(g.token);
	close_provider(&g);
	unsetenv("AWS_SECRET_ACCESS_KEY");
	open_provider(&g);
	ask(&g);
	assert_null(g.id);
	assert_non_null(strstr(g.e.msg, "AWS_SECRET_ACCESS_KEY"));
	close_provider(&g);
}

static void a_profile_of_the_file_is_used(void **state)
{
	static const char text[] = "# comment\n[default]\naws_access_key_id=AKDEF\naws_secret_access_key = one\n\n"
				   "[ backup ]\nregion = eu\n aws_access_key_id = AKBACK\r\nAWS_SECRET_ACCESS_KEY=two=2\n"
				   "aws_session_token = t\n[empty]\naws_access_key_id = AKEMPTY";
	struct aws_keys k = {};
	struct err e = {};

	(void)state;
	assert_true(aws_sources_profile(text, "default", &k, &e));
	assert_string_equal(k.id, "AKDEF");
	assert_string_equal(k.secret, "one");
	assert_null(k.token);
	aws_keys_done(&k);
	assert_true(aws_sources_profile(text, "backup", &k, &e));
	assert_string_equal(k.id, "AKBACK");
	assert_string_equal(k.secret, "two=2");
	assert_string_equal(k.token, "t");
	aws_keys_done(&k);
	assert_false(aws_sources_profile(text, "empty", &k, &e));
	assert_int_equal(e.kind, ERR_INVALID);
	e = (struct err){};
	assert_false(aws_sources_profile(text, "other", &k, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void answers_that_are_no_credentials_are_refused(void **state)
{
	static const char *const bad[] = {"", "{", "[]", "{\"AccessKeyId\":\"a\"}", "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\"",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\\n\"}", "{\"AccessKeyId\":\"a b\",\"SecretAccessKey\":\"b\"}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\"} x", "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":{}}",
		"{\"Code\":\"Failed\",\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\"}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Expiration\":\"tomorrow\"}"};
	struct aws_keys k = {};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};

		assert_false(aws_sources_json(bad[i], &k, &e));
		assert_int_not_equal(e.kind, ERR_NONE);
		assert_null(k.id);
	}
}

static void the_container_endpoint_is_asked_with_its_token(void **state)
{
	struct endpoint p;
	struct got g;
	char url[128], path[] = "/tmp/token.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "Bearer abc\n", 11), 11);
	close(fd);
	endpoint_start(&p, "3600");
	snprintf(url, sizeof(url), "%s/container", p.url);
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1);
	open_provider(&g);
	ask(&g);
	unlink(path);
	assert_string_equal(g.id, "AK/1");
	assert_string_equal(g.token, "tok");
	close_provider(&g);
	assert_int_equal(endpoint_stop(&p), 1);
}

static void keys_of_the_machine_are_fetched_once_until_they_expire(void **state)
{
	struct endpoint p;
	struct got g;

	(void)state;
	endpoint_start(&p, "3600");
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", p.url, 1);
	open_provider(&g);
	aws_credentials_get(g.c, on_keys, &g);
	ask(&g); /* both wait for one fetch */
	assert_int_equal(g.calls, 2);
	ask(&g);
	assert_string_equal(g.id, "AK/1");
	assert_string_equal(g.secret, "s3cret");
	assert_int_equal(g.calls, 3);
	aws_credentials_refused(g.c);
	ask(&g); /* fetches again */
	aws_credentials_refused(g.c);
	ask(&g); /* not again within ten seconds */
	close_provider(&g);
	assert_int_equal(endpoint_stop(&p), 6);
}

static void keys_that_expire_soon_are_fetched_again_but_used_if_that_fails(void **state)
{
	struct endpoint p;
	struct got g;

	(void)state;
	endpoint_start(&p, "120"); /* less than the margin */
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", p.url, 1);
	open_provider(&g);
	ask(&g);
	assert_int_equal(g.e.kind, ERR_NONE);
	ask(&g);
	assert_int_equal(endpoint_stop(&p), 6);
	ask(&g); /* nothing listens any more */
	assert_int_equal(g.e.kind, ERR_NONE);
	assert_string_equal(g.id, "AK/1");
	close_provider(&g);
}

static void without_any_source_the_error_says_what_to_set(void **state)
{
	struct got g;

	(void)state;
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	open_provider(&g);
	ask(&g);
	assert_null(g.id);
	assert_non_null(strstr(g.e.msg, "AWS_SHARED_CREDENTIALS_FILE"));
	aws_credentials_get(g.c, on_keys, &g);
	aws_credentials_cancel(g.c, &g);
	close_provider(&g);
}

#define CASE(name) cmocka_unit_test_setup(name, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_environment_comes_first),
		CASE(a_profile_of_the_file_is_used),
		CASE(answers_that_are_no_credentials_are_refused),
		CASE(the_container_endpoint_is_asked_with_its_token),
		CASE(keys_of_the_machine_are_fetched_once_until_they_expire),
		CASE(keys_that_expire_soon_are_fetched_again_but_used_if_that_fails),
		CASE(without_any_source_the_error_says_what_to_set),
	};

	return RUN_TESTS(tests);
}
