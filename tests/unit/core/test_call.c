/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: their fields, the meaning of statuses, the guard of addresses. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/target/address_guard.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/target/kafka.h"
#include "core/target/lambda.h"
#include "unit/unit.h"
#include <string.h>

static bool allowed(const char *host, const char *list)
{
	struct address a;
	const char *why = NULL;

	assert_true(address_guard_parse(host, &a));
	return address_guard_allows(&a, list, &why);
}

static void special_addresses_are_refused(void **state)
{
	static const char *const refused[] = {"0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
		"127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.168.1.1",
		"198.18.0.1", "198.19.255.255", "224.0.0.1", "255.255.255.255", "localhost", "a.LOCALHOST", "::",
		"::1", "fe80::1", "febf::1", "fc00::1", "fdff::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
		"::ffff:a9fe:a9fe", "64:ff9b::10.0.0.1", "2002:7f00:1::"};
	static const char *const open[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.0", "169.253.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
		"192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:db8::1", "2600::1",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(refused); i++)
		if (allowed(refused[i], NULL))
			fail_msg("%s is allowed", refused[i]);
	for (size_t i = 0; i < ELEMENTS(open); i++)
		if (!allowed(open[i], NULL))
			fail_msg("%s is refused", open[i]);
}

static void listed_addresses_are_allowed(void **state)
{
	(void)state;
	assert_true(allowed("10.2.3.4", "127.0.0.1, 10.2.0.0/16"));
	assert_false(allowed("10.3.0.0", "127.0.0.1, 10.2.0.0/16"));
	assert_true(allowed("127.0.0.1", "127.0.0.1"));
	assert_false(allowed("127.0.0.2", "127.0.0.1"));
	assert_true(allowed("::1", "10.0.0.0/8 ::1"));
	assert_true(allowed("::ffff:10.2.3.4", "10.2.0.0/16"));
	assert_true(allowed("fd12:3456::1", "fd12:3400::/23"));
	assert_false(allowed("fd12:3656::1", "fd12:3400::/23"));
	assert_true(allowed("192.168.7.7", "0.0.0.0/0"));
	assert_true(address_guard_list_check("127.0.0.1, ::1 fd00::/8", NULL));
	assert_false(address_guard_list_check("example.org", NULL));
	assert_false(address_guard_list_check("10.0.0.0/33", NULL));
}

static void statuses_have_their_meaning(void **state)
{
	(void)state;
	for (int s = 100; s < 600; s++) {
		enum call_verdict want = s >= 200 && s < 300 ? CALL_SUCCEEDED
			: s == 408 || s == 425 || s == 429 || s >= 500 ? CALL_TEMPORARY
			: CALL_FINAL;

		assert_int_equal(call_status_judge(NULL, s), want);
	}
	assert_int_equal(call_status_judge("404,200-204", 404), CALL_SUCCEEDED);
	assert_int_equal(call_status_judge("404,200-204", 204), CALL_SUCCEEDED);
	assert_int_equal(call_status_judge("404,200-204", 205), CALL_FINAL);
	assert_int_equal(call_status_judge("404", 503), CALL_TEMPORARY);
}

static void invalid_fields_are_refused(void **state)
{
	(void)state;
	assert_true(call_url_check("https://example.org/a?b#c", NULL));
	assert_true(call_url_check("http://[2001:db8::1]:8080/{secret:A}", NULL));
	assert_false(call_url_check("https://", NULL));
	assert_false(call_url_check("https://:80/", NULL));
	assert_false(call_url_check("file:///etc/passwd", NULL));
	assert_false(call_url_check("https://user:password@example.org/", NULL));
	assert_false(call_url_check("https://example.org/a b", NULL));
	assert_false(call_url_check("https://example.org/\r\nHost: x", NULL));
	assert_true(call_header_check("X-A: b", NULL));
	assert_true(call_header_check("X-A:", NULL));
	assert_false(call_header_check("X A: b", NULL));
	assert_false(call_header_check("X-A: b\r\nX-B: c", NULL));
	assert_false(call_header_check("content-length: 1", NULL));
	assert_false(call_header_check("jobsched-run: 1", NULL));
	assert_false(call_header_check("Idempotency-Key: 1", NULL));
	assert_true(call_statuses_check("200-299,404", NULL));
	assert_false(call_statuses_check("299-200", NULL));
	assert_false(call_statuses_check("200,", NULL));
	assert_false(call_statuses_check("2xx", NULL));
	assert_true(call_pattern_check("^a[bc]+(d|e)\\.$", NULL));
	assert_false(call_pattern_check("(a)\\1", NULL));
	assert_false(call_pattern_check("a{1,1000}", NULL));
	assert_false(call_pattern_check("(a", NULL));
}

static void the_host_of_a_url_is_found(void **state)
{
	char host[64];

	(void)state;
	assert_true(call_url_host("https://example.org:1/x", host, sizeof(host)));
	assert_string_equal(host, "example.org");
	assert_true(call_url_host("http://[::1]:80/", host, sizeof(host)));
	assert_string_equal(host, "::1");
	assert_false(call_url_host("http://{secret:A}.example.org/", host, sizeof(host)));
}

static void references_to_secrets_are_found(void **state)
{
	const char *text = "a {secret:ONE} {secret:} {secret:a b} {secret:TWO}{secret:x", *name;
	size_t at = 0, from, len;

	(void)state;
	assert_true(call_secret_next(text, &at, &from, &name, &len));
	assert_int_equal(from, 2);
	assert_memory_equal(name, "ONE", len);
	assert_true(call_secret_next(text, &at, &from, &name, &len));
	assert_memory_equal(name, "TWO", len);
	assert_int_equal(len, 3);
	assert_false(call_secret_next(text, &at, &from, &name, &len));
}

static void a_call_has_no_command_and_declares_its_secrets(void **state)
{
	AUTO_DONE(job_spec) s;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	s.http = xstrdup("GET");
	assert_false(job_spec_check(&s, &e));
	s.url = xstrdup("https://example.org/{secret:A}");
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "secrets");
	strv_add(&s.secrets, "A=file:/a");
	assert_true(job_spec_check(&s, &e));
	s.tls_cert = xstrdup("A");
	assert_false(job_spec_check(&s, &e));
	s.tls_key = xstrdup("A");
	assert_true(job_spec_check(&s, &e));
	strv_add(&s.command, "true");
	assert_false(job_spec_check(&s, &e));
	free(STEAL(s.http));
	assert_false(job_spec_check(&s, &e)); /* the other fields need 'http' */
}

static void a_text_that_is_not_a_url_is_named(void **state)
{
	struct job_spec s;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	s.http = xstrdup("GET");
	strv_add(&s.command, "ftp://example.org/");
	assert_false(call_check(&s, &e));
	assert_string_equal(e.msg, "'ftp://example.org/' is not a URL that begins with http:// or https://");
	strv_add(&s.command, "and more");
	assert_false(call_check(&s, &e));
	assert_non_null(strstr(e.msg, "not both"));
	job_spec_done(&s);
}

static void broker_lists_are_split(void **state)
{
	static const char *const good[] = {"kafka/t", "kafka1:9092,kafka-2.example.org/t.x_y-1", "[2001:db8::1]:9092,10.0.0.1:1/t"};
	static const char *const bad[] = {"", "/", "kafka", "kafka/", "/t", ",/t", "kafka,/t", "kafka:/t", "kafka:123456/t", "kafka:9a/t",
		"ssl://kafka:1/t", "a/b/c", "a/..", "a b/t", "[::1/t", "[]/t", "a/t t", "a@b/t"};
	const char *target = good[2];
	size_t at = 0, brokers;
	char host[KAFKA_BROKER_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(good); i++)
		if (!kafka_target_check(good[i], NULL))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (kafka_target_check(bad[i], NULL))
			fail_msg("%s is accepted", bad[i]);
	assert_string_equal(kafka_target_topic(target, &brokers), "t");
	assert_int_equal(brokers, strlen(target) - 2);
	assert_true(kafka_broker_next(target, &at, host, sizeof(host)));
	assert_string_equal(host, "2001:db8::1");
	assert_true(kafka_broker_next(target, &at, host, sizeof(host)));
	assert_string_equal(host, "10.0.0.1");
	assert_false(kafka_broker_next(target, &at, host, sizeof(host)));
}

static void functions_are_allowed_by_user_and_pattern(void **state)
{
	static const char *const good[] = {"f", "a-b_C9", "f:prod", "f:$LATEST", "f:7"};
	static const char *const bad[] = {"", ":", ":q", "f:", "f:a:b", "a/b", "a b", "arn:aws:lambda:eu-central-1:123456789012:function:f", "f?x=1",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	const char *list = "alice:report-*, ping carol:*";

	(void)state;
	for (size_t i = 0; i < ELEMENTS(good); i++)
		if (!lambda_target_check(good[i], NULL))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (lambda_target_check(bad[i], NULL))
			fail_msg("%s is accepted", bad[i]);
	assert_true(lambda_region_check("us-gov-west-1", NULL));
	assert_false(lambda_region_check("eu.example", NULL) || lambda_region_check("-eu", NULL) || lambda_region_check("EU", NULL));
	assert_true(lambda_functions_check(list, NULL));
	assert_false(lambda_functions_check("alice:", NULL) || lambda_functions_check(":f", NULL) || lambda_functions_check("a b;c", NULL));
	assert_true(lambda_functions_allow(list, "alice", "report-7:prod"));
	assert_true(lambda_functions_allow(list, "bob", "ping"));
	assert_true(lambda_functions_allow(list, "carol", "anything"));
	assert_false(lambda_functions_allow(list, "bob", "report-7"));
	assert_false(lambda_functions_allow(list, "alice", "ping-2"));
	assert_false(lambda_functions_allow(list, "ali", "report-7"));
	assert_false(lambda_functions_allow(list, NULL, "report-7"));
	assert_false(lambda_functions_allow(NULL, "alice", "ping"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(special_addresses_are_refused),
		TEST(listed_addresses_are_allowed),
		TEST(statuses_have_their_meaning),
		TEST(invalid_fields_are_refused),
		TEST(the_host_of_a_url_is_found),
		TEST(references_to_secrets_are_found),
		TEST(a_call_has_no_command_and_declares_its_secrets),
		TEST(a_text_that_is_not_a_url_is_named),
		TEST(broker_lists_are_split),
		TEST(functions_are_allowed_by_user_and_pattern),
	};

	return RUN_TESTS(tests);
}
