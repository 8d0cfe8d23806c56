/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, payloads and answers of S3-compatible storage. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/target/s3_url.h"
#include "net/s3_payload.h"
#include "net/aws/s3_xml.h"
#include "unit/unit.h"
#include <string.h>

static void assert_url(const struct s3_place *p, const char *bucket, const char *key, const char *expected)
{
	AUTO_TEXT url = s3_url_request(p, bucket, key, NULL);

	assert_string_equal(url, expected);
}

static void buckets_are_in_the_path_or_in_the_host_name(void **state)
{
	const struct s3_place aws = {.region = "eu-west-1"}, own = {.endpoint = "http://minio:9000", .region = "x"},
			      path = {.region = "eu-west-1", .addressing = S3_ADDRESSING_PATH},
			      host = {.endpoint = "https://s3.example", .region = "x", .addressing = S3_ADDRESSING_VIRTUAL};
	AUTO_TEXT list = s3_url_request(&own, "bucket", "", "list-type=2");

	(void)state;
	assert_url(&aws, "bucket", "a/b", "https://bucket.s3.eu-west-1.amazonaws.com/a/b");
	assert_url(&aws, "my.bucket", "a", "https://s3.eu-west-1.amazonaws.com/my.bucket/a");
	assert_url(&path, "bucket", "a", "https://s3.eu-west-1.amazonaws.com/bucket/a");
	assert_url(&own, "bucket", "a b?c#d%e~f+g", "http://minio:9000/bucket/a%20b%3Fc%23d%25e~f%2Bg");
	assert_url(&host, "bucket", "a", "https://bucket.s3.example/a");
	assert_string_equal(list, "http://minio:9000/bucket?list-type=2");
}

static void names_of_buckets_and_endpoints_are_checked(void **state)
{
	static const char *const bad[] = {"s3:/bucket/x", "s3://ab/x", "s3://Bucket/x", "s3://-bucket/x", "s3://buc..ket/x", "s3://bucket-",
		"s3://user@bucket/x", "s3://host:80/x", "https://bucket/x", "s3://", "s3:///x"};
	static const char *const bad_ends[] = {"minio:9000", "ftp://h", "http://", "http://h/path", "http://u:p@h", "https://h?x", "http://a b"};
	static const char *const bad_archives[] = {"s3://bucket//x", "s3://bucket/a//b", "s3://bucket/a b", "s3://bucket/../x", "s3://bucket/.x",
		"s3://bucket/a?b", "s3://x/y"};
	struct s3_name n;
	struct err e = {};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(s3_url_parse(bad[i], &n, &e));
	for (size_t i = 0; i < ELEMENTS(bad_ends); i++)
		assert_false(s3_url_endpoint_check(bad_ends[i], &e));
	for (size_t i = 0; i < ELEMENTS(bad_archives); i++)
		assert_false(s3_url_archive_check(bad_archives[i], &e));
	assert_true(s3_url_archive_check("s3://bucket", &e));
	assert_true(s3_url_archive_check("s3://bucket/prod/x_1", &e));
	assert_true(s3_url_endpoint_check("http://[::1]:9000", &e));
	assert_true(s3_url_parse("s3://my-bucket.1/a//b", &n, &e));
	assert_string_equal(n.bucket, "my-bucket.1");
	assert_string_equal(n.key, "a//b");
}

static void only_listed_buckets_have_artifacts(void **state)
{
	struct err e = {};

	(void)state;
	assert_true(s3_url_artifact_check(NULL, NULL, &e));
	assert_true(s3_url_artifact_check("https://h/x", NULL, &e));
	assert_false(s3_url_artifact_check("s3://tools/x", NULL, &e));
	assert_string_equal(e.field, "artifact");
	assert_true(s3_url_artifact_check("s3://tools/x", "other, tools", &e));
	assert_false(s3_url_artifact_check("s3://tools/x", "tools2,atools", &e));
	assert_false(s3_url_artifact_check("s3://tool/x", "tools", &e));
}

static void a_payload_round_trips_and_others_are_refused(void **state)
{
	const struct s3_payload p = {.verb = S3_PUT_FILE, .url = "http://h/x", .region = "r", .sha256 = "abc",
		.parts = {{64, 100}, {300, 5}}, .parts_n = 2};
	static const char *const bad[] = {"1", "1:", "1:0", "-1:5", "1:2;3:4", "9223372036854775807:1", "0:99999999999", "0:1,0:1,0:1,0:1,0:1",
		"0:5368709120,0:1"};
	AUTO_DONE(net_payload) raw = {};
	struct s3_payload got;
	struct err e = {};
	AUTO_FD fd = s3_payload_memfd(&p, "body", 4, &e);

	(void)state;
	assert_true(fd >= 0 && net_payload_read(&raw, fd, &e) && s3_payload_parse(&raw, &got, &e));
	assert_int_equal(got.verb, S3_PUT_FILE);
	assert_string_equal(got.url, "http://h/x");
	assert_int_equal(got.parts_n, 2);
	assert_int_equal(got.parts[1].offset, 300);
	assert_int_equal(got.parts[1].length, 5);
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		raw.texts[6] = bad[i];
		assert_false(s3_payload_parse(&raw, &got, &e));
	}
	raw.texts[6] = "";
	raw.texts[0] = "9";
	assert_false(s3_payload_parse(&raw, &got, &e));
}

static void keys_are_read_from_a_list(void **state)
{
	static const char xml[] = "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://x/\"><Name>b</Name><IsTruncated>true</IsTruncated>"
				  "<Contents>\n <Key>a/1</Key><Size>2</Size></Contents><Contents><ETag>&quot;x&quot;</ETag><Key>b&amp;c&lt;</Key></Contents>"
				  "<Contents><Key>with\nnewline</Key></Contents><Contents><Size>1</Size></Contents>"
				  "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>";
	AUTO_DONE(buf) keys = {};
	AUTO_DONE(buf) code = {};
	bool more = false;

	(void)state;
	assert_true(s3_xml_keys(xml, &keys, &more));
	assert_true(more);
	assert_string_equal(keys.data, "a/1\nb&c<\n");
	assert_false(s3_xml_keys("<html><Contents><Key>x</Key></Contents></html>", &keys, &more));
	assert_false(s3_xml_keys("<ListBucketResult><Contents>", &keys, &more));
	assert_true(s3_xml_text("<Error><Code>SlowDown</Code></Error>", "Code", &code));
	assert_string_equal(code.data, "SlowDown");
	assert_false(s3_xml_text("<Codes>x</Codes>", "Code", &code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(buckets_are_in_the_path_or_in_the_host_name),
		TEST(names_of_buckets_and_endpoints_are_checked),
		TEST(only_listed_buckets_have_artifacts),
		TEST(a_payload_round_trips_and_others_are_refused),
		TEST(keys_are_read_from_a_list),
	};

	return RUN_TESTS(tests);
}
