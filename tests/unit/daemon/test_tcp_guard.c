/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of requests over TCP: targets, hosts, origins, tokens, rates, addresses. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/token.h"
#include "daemon/api/access.h"
#include "daemon/api/auth/http_guard.h"
#include "daemon/api/auth/rate_limit.h"
#include "daemon/api/auth/tcp_address.h"
#include "unit/unit.h"
#include "wire/http_url.h"
#include <string.h>

static void a_target_must_be_in_its_normal_form(void **state)
{
	static const char *const good[] = {"/", "/v1/jobs", "/v1/jobs/a.b-c_d?name=%2F..%2f", "/v1/jobs/%41",
		"/ui/app.js", "/v1/jobs?tokens=1", "/v1/jobs?name=a;b//c"};
	static const char *const bad[] = {"/v1/jobs#x", "/v1/jobs?a=1#jst_x", "", "v1/jobs", "*", "//", "//v1/jobs", "/v1//jobs", "/v1/./jobs",
		"/v1/../jobs", "/..", "/.", "/v1/jobs/..", "/v1;x/jobs", "/v1%2fjobs", "/v1%2Fjobs", "/v1/%2e%2e",
		"/v1/%5c", "/v1\\jobs", "/%00", "/%25", "http://h/v1/jobs", "/v1/jobs?token=x", "/v1/jobs?a=1&TOKEN=x",
		"/v1/jobs?access_token", "/v1/jobs?q=jst_0", "/jst_0", "/v1/jobs?%3b&authorization=x"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(good); i++)
		if (!http_guard_target(good[i], NULL))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (http_guard_target(bad[i], NULL))
			fail_msg("'%s' is accepted", bad[i]);
}

static void only_names_of_this_server_and_addresses_are_hosts(void **state)
{
	AUTO_DONE(strv) names = {};
	static const char *const good[] = {"127.0.0.1", "10.1.2.3:80", "[::1]", "[2001:db8::1]:443", "localhost:1",
		"LOCALHOST", "jobs.example", "Jobs.Example:8470"};
	static const char *const bad[] = {"", "evil.example", "jobs.example.evil", "jobs.example:", "jobs.example:0",
		"jobs.example:65536", "[::1", "::1", "127.0.0.1.evil", "127.0.0.1:x", "[jobs.example]", "0x7f.1", "a@jobs.example"};

	(void)state;
	strv_add(&names, "jobs.example");
	for (size_t i = 0; i < ELEMENTS(good); i++)
		if (!http_guard_host(good[i], &names, NULL))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (http_guard_host(bad[i], &names, NULL))
			fail_msg("'%s' is accepted", bad[i]);
	assert_false(http_guard_host(NULL, &names, NULL));
}

static void a_token_is_read_as_it_was_written(void **state)
{
	struct token_text t = {.id = "0123456789abcdef"}, read;
	char text[TOKEN_TEXT_LEN + 1], first[TOKEN_HASH_LEN + 1], second[TOKEN_HASH_LEN + 1];

	(void)state;
	memset(t.secret, 'a', TOKEN_SECRET_LEN);
	token_text_write(&t, text);
	assert_int_equal(strlen(text), TOKEN_TEXT_LEN);
	assert_true(token_text_parse(text, strlen(text), &read));
	assert_string_equal(read.id, t.id);
	assert_string_equal(read.secret, t.secret);
	token_text_hash(&t, first);
	for (size_t i = 0; i < TOKEN_TEXT_LEN; i++) {
		char kept = text[i];

		text[i] = 'G';
		assert_false(token_text_parse(text, strlen(text), &read));
		text[i] = kept;
		assert_false(token_text_parse(text, i, &read));
	}
	t.secret[TOKEN_SECRET_LEN - 1] = 'b';
	token_text_hash(&t, second);
	assert_false(token_hash_equal(first, second));
	assert_true(token_hash_equal(first, first));
}

static void a_token_permits_its_role_and_scope_only(void **state)
{
	const struct access system = {.self = 999};
	struct caller c = {.uid = 1000, .number = 1000, .token = true};
	struct err e = {};

	(void)state;
	assert_true(access_may(&system, &c, VERB_SEE, 1000));
	assert_false(access_may(&system, &c, VERB_SEE, 2000));
	assert_false(access_may(&system, &c, VERB_SUBMIT, 1000));
	c.everyone = true;
	assert_true(access_may(&system, &c, VERB_SEE, 2000));
	assert_false(access_may(&system, &c, VERB_CANCEL, 2000));
	c.role = TOKEN_OPERATOR;
	assert_true(access_may(&system, &c, VERB_CANCEL, 1000));
	assert_false(access_may(&system, &c, VERB_CANCEL, 2000)); /* 'everyone' is for viewers */
	assert_false(access_may(&system, &c, VERB_FREEZE, 1000));
	c.role = TOKEN_ADMIN;
	assert_true(access_may(&system, &c, VERB_CANCEL, 2000));
	assert_false(access_may(&system, &c, VERB_TRIGGER, 0)); /* of root */
	c.uid = 0;
	c.number = 0;
	assert_true(access_may(&system, &c, VERB_TRIGGER, 0));
	c.role = TOKEN_OPERATOR; /* of root: only root's own jobs */
	assert_false(access_may(&system, &c, VERB_SEE, 1000));
	c.role = TOKEN_ADMIN;
	assert_true(access_scope_parse("see,pause", &c.verbs, &e));
	assert_true(access_may(&system, &c, VERB_SEE, 0));
	assert_false(access_may(&system, &c, VERB_TRIGGER, 0));
	assert_true(access_may(&system, &c, VERB_SESSION, 0));
	assert_false(access_scope_parse("see,,pause", &c.verbs, &e));
	assert_false(access_scope_parse("fly", &c.verbs, &e));
	for (int v = 0; v < VERB_MAX; v++)
		assert_non_null(access_verb_name((enum access_verb)v));
}

static void a_bucket_refills_and_is_one_of_many(void **state)
{
	struct rate_limit l = {};

	(void)state;
	rate_limit_init(&l, 1, 3);
	for (int i = 0; i < 3; i++)
		assert_true(rate_limit_take(&l, 7, USEC_SEC));
	assert_false(rate_limit_take(&l, 7, USEC_SEC));
	assert_true(rate_limit_is_empty(&l, 7, USEC_SEC));
	assert_true(rate_limit_take(&l, 8, USEC_SEC));
	assert_true(rate_limit_take(&l, 7, 2 * USEC_SEC));
	assert_false(rate_limit_take(&l, 7, 2 * USEC_SEC));
	for (int64_t key = 0; key < 100000; key++) /* the memory is bounded */
		rate_limit_take(&l, key << 20, 2 * USEC_SEC);
	assert_true(l.buckets.used < 20000);
	rate_limit_done(&l);
}

static void addresses_are_read_and_compared(void **state)
{
	static const char *const bad[] = {"", "8470", ":8470", "localhost:1", "1.2.3.4", "1.2.3.4:65536", "::1:80", "[::1]",
		"[1.2.3.4]:80", "1.2.3.4:-1", "[::1:80"};
	struct sockaddr_storage a, b;
	char text[TCP_ADDRESS_TEXT];
	struct err e = {};
	socklen_t len;

	(void)state;
	assert_true(tcp_address_parse("127.0.0.1:8470", &a, &len, &e));
	assert_true(tcp_address_is_loopback(&a));
	assert_int_equal(tcp_address_port(&a), 8470);
	assert_true(tcp_address_parse("[::ffff:127.0.0.1]:1", &b, &len, &e));
	assert_true(tcp_address_is_loopback(&b));
	assert_true(tcp_address_key(&a) == tcp_address_key(&b));
	tcp_address_text(&b, text);
	assert_string_equal(text, "127.0.0.1");
	assert_true(tcp_address_parse("[2001:db8::1]:1", &a, &len, &e));
	assert_true(tcp_address_parse("[2001:db8::2]:1", &b, &len, &e));
	assert_true(tcp_address_key(&a) == tcp_address_key(&b)); /* one /64 */
	assert_true(tcp_address_parse("[2001:db8:0:1::2]:1", &b, &len, &e));
	assert_false(tcp_address_key(&a) == tcp_address_key(&b));
	assert_true(tcp_address_parse("0.0.0.0:1", &a, &len, &e));
	assert_false(tcp_address_is_loopback(&a));
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (tcp_address_parse(bad[i], &a, &len, &e))
			fail_msg("'%s' is accepted", bad[i]);
}

static void a_url_without_tls_must_be_on_this_machine(void **state)
{
	static const char *const bad[] = {"", "jobs.example", "ftp://x", "http://jobs.example", "https://", "https://h/path",
		"https://h:0", "https://h:x", "https://u@h", "https://[::1", "https://h?x", "http://127.evil@h", "https://-h"};
	AUTO_DONE(http_url) u = {};
	struct err e = {};

	(void)state;
	assert_true(http_url_parse("https://Jobs.example/", &u, &e));
	assert_true(u.tls);
	assert_string_equal(u.shown, "Jobs.example:443");
	http_url_done(&u);
	assert_true(http_url_parse("http://[::1]:8470", &u, &e));
	assert_string_equal(u.host, "::1");
	assert_string_equal(u.shown, "[::1]:8470");
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		AUTO_DONE(http_url) other = {};

		if (http_url_parse(bad[i], &other, &e))
			fail_msg("'%s' is accepted", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_target_must_be_in_its_normal_form),
		TEST(only_names_of_this_server_and_addresses_are_hosts),
		TEST(a_token_is_read_as_it_was_written),
		TEST(a_token_permits_its_role_and_scope_only),
		TEST(a_bucket_refills_and_is_one_of_many),
		TEST(addresses_are_read_and_compared),
		TEST(a_url_without_tls_must_be_on_this_machine),
	};

	return RUN_TESTS(tests);
}
