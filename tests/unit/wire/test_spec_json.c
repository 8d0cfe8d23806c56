/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the JSON conversions: errors with their members, and round trips. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/run.h"
#include "unit/unit.h"
#include "wire/error_json.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include "wire/spec_json.h"
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1024 * 1024)

static bool read_spec(const char *text, size_t len, struct job_spec *s, char **ret_key, struct err *e)
{
	json_t *o = json_read_bounded(text, len, MIB, JSON_MEMBERS_MAX, e);
	bool ok = o && spec_json_read(o, s, ret_key, e);

	json_decref(o);
	return ok;
}

/* A text with NUL is given with its length; 0 means strlen. */
static const struct bad {
	const char *text;
	const char *field;
	const char *says;
	size_t len;
} bads[] = {
	/* not JSON */
	{"", "", "not valid JSON"},
	{"null", "", "not valid JSON"},
	{"\"x\"", "", "not valid JSON"},
	{"{", "", "not valid JSON"},
	{"[]", "", "must be a JSON object"},
	{"{\"command\":[\"a\"]} x", "", "not valid JSON"},
	{"{\"command\":[\"a\",]}", "command", "not valid JSON"},
	{"{'name':1}", "", "not valid JSON"},
	{"{\"name\":\"a\", // hm\n}", "", "not valid JSON"},
	{"{\"priority\":01}", "priority", "not valid JSON"},
	{"{\"priority\":+1}", "priority", "not valid JSON"},
	{"{\"priority\":NaN}", "priority", "not valid JSON"},
	{"{\"timeout\":1e999}", "timeout", "real number overflow"},
	{"{\"priority\":99999999999999999999}", "priority", "too big integer"},
	{"\xef\xbb\xbf{}", "", "not valid JSON"},
	/* invalid strings */
	{"{\"name\":\"\xff\"}", "name", "UTF-8"},
	{"{\"env\":{\"A\":\"\xc0\xaf\"}}", "env.A", "UTF-8"},           /* overlong */
	{"{\"command\":[\"a\",\"\xed\xa0\x80\"]}", "command[1]", "UTF-8"}, /* a surrogate */
	{"{\"name\":\"\xf4\x90\x80\x80\"}", "name", "UTF-8"},           /* beyond U+10FFFF */
	{"{\"script\":\"\\ud800\"}", "script", "not valid JSON"},
	{"{\"script\":\"\\udc00\\ud800\"}", "script", "not valid JSON"},
	{"{\"script\":\"a\\u0000b\"}", "script", "NUL"},
	{"{\"scr\\u0000ipt\":\"a\"}", "scr\\u0000ipt", "NUL"},
	{"{\"script\":\"a\0b\"}", "script", "not valid JSON", 16},
	{"{\"script\":\"a\nb\"}", "script", "unexpected newline"},
	{"{\"command_b64\":[\"AA==\"]}", "command_b64", "NUL"},
	{"{\"env_b64\":{\"A\":\"AA==\"}}", "env_b64", "NUL"},
	/* members */
	{"{\"name\":\"a\",\"name\":\"b\"}", "name", "twice"},
	{"{\"env\":{\"A\":\"1\",\"A\":\"2\"}}", "env.A", "twice"},
	{"{\"colour\":\"red\"}", "colour", "unknown member"},
	{"{\"\":\"red\"}", "", "unknown member"},
	{"{\"id\":1}", "id", "unknown member"},
	{"{\"Name\":\"a\"}", "Name", "unknown member"},
	{"{\"name_b64\":\"YQ==\"}", "name_b64", "unknown member"},
	{"{\"_b64\":\"YQ==\"}", "_b64", "unknown member"},
	{"{\"command\":[\"a\"],\"command_b64\":[\"YQ==\"]}", "command_b64", "exclude"},
	{"{\"stdin_b64\":\"\",\"stdin\":\"\"}", "stdin_b64", "exclude"},
	/* types */
	{"{\"name\":null}", "name", "must be a string"},
	{"{\"name\":7}", "name", "must be a string"},
	{"{\"command\":{}}", "command", "must be a list"},
	{"{\"command\":[\"a\",1]}", "command", "must be a string"},
	{"{\"command\":[[\"a\"]]}", "command", "must be a string"},
	{"{\"command_b64\":[\"@@@@\"]}", "command_b64", "base64"},
	{"{\"command_b64\":[\"YQ\"]}", "command_b64", "base64"},
	{"{\"env\":[\"A=1\"]}", "env", "must be an object"},
	{"{\"env\":{\"A\":1}}", "env", "must be a string"},
	{"{\"stdin\":[]}", "stdin", "must be a string"},
	{"{\"stdin_b64\":\"YR==\"}", "stdin_b64", "base64"}, /* unused bits are set */
	{"{\"priority\":\"1\"}", "priority", "whole number"},
	{"{\"priority\":1.0}", "priority", "whole number"},
	{"{\"priority\":true}", "priority", "whole number"},
	{"{\"umask\":18}", "umask", "octal"},
	{"{\"umask\":\"089\"}", "umask", "octal"},
	{"{\"umask\":\"\"}", "umask", "octal"},
	{"{\"umask\":\"-22\"}", "umask", "octal"},
	{"{\"timeout\":true}", "timeout", "seconds"},
	{"{\"timeout\":\"soon\"}", "timeout", ""},
	{"{\"output_limit\":\"10M\"}", "output_limit", "whole number"},
	{"{\"key\":1,\"command\":[\"a\"]}", "key", "must be a string"},
	/* ranges */
	{"{\"name\":\"\"}", "name", "too short"},
	{"{\"name\":\"a b\"}", "name", "letters"},
	{"{\"name\":\"../x\"}", "name", "letters"},
	{"{\"name\":\"123\"}", "name", "all digits"},
	{"{\"priority\":101}", "priority", "out of range"},
	{"{\"priority\":-9223372036854775808}", "priority", "out of range"},
	{"{\"umask\":\"1000\"}", "umask", "out of range"},
	{"{\"timeout\":-1}", "timeout", "out of range"},
	{"{\"timeout\":1e300}", "timeout", "out of range"},
	{"{\"timeout\":-1e300}", "timeout", "out of range"},
	{"{\"timeout\":9223372036854775807}", "timeout", "out of range"},
	{"{\"output_limit\":-1}", "output_limit", "out of range"},
	{"{\"env\":{\"\":\"1\"}}", "env", "empty"},
	{"{\"env\":{\"A=B\":\"1\"}}", "env", "'='"},
	{"{\"env\":{\"1A\":\"1\"}}", "env", "NAME=VALUE"},
	{"{\"env\":{\"JOBSCHED_RUN\":\"1\"}}", "env", "ours"},
	{"{\"cwd\":\"tmp\"}", "cwd", "absolute"},
	{"{\"key\":\"\"}", "key", "1 to"},
};

static void a_bad_submission_is_refused_under_the_name_of_its_member(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bads); i++) {
		const struct bad *b = &bads[i];
		AUTO_DONE(job_spec) s = {};
		AUTO_TEXT key = NULL;
		struct err e = {};
		bool ok;

		job_spec_init(&s);
		ok = read_spec(b->text, b->len ? b->len : strlen(b->text), &s, &key, &e);
		if (!ok && e.kind == ERR_INVALID && !strcmp(e.field, b->field) && strstr(e.msg, b->says))
			continue;
		print_error("%s: %s, field '%s', message '%s'\n", b->text,
			ok ? "accepted" : err_kind_info(e.kind)->code, e.field, e.msg);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void a_text_over_its_limit_is_too_large(void **state)
{
	struct err e = {};

	(void)state;
	assert_null(json_read("{\"a\":1}", 7, 6, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

static json_t *read_nested(size_t depth, struct err *e)
{
	AUTO_DONE(buf) b = {};

	for (size_t i = 0; i < depth; i++)
		buf_char(&b, '[');
	for (size_t i = 0; i < depth; i++)
		buf_char(&b, ']');
	return json_read(b.data, b.len, b.len, e);
}

static void nesting_over_64_levels_is_refused(void **state)
{
	static const size_t deep[] = { 65, 66, 100, 2048, 2049, 100000, 1000000 };
	json_t *j = read_nested(64, NULL);

	(void)state;
	assert_non_null(j);
	json_decref(j);
	for (size_t i = 0; i < ELEMENTS(deep); i++) {
		struct err e = {};

		assert_null(read_nested(deep[i], &e));
		assert_int_equal(e.kind, ERR_INVALID);
		assert_non_null(strstr(e.msg, "too deep"));
	}
}

static json_t *read_flat(size_t members, struct err *e)
{
	AUTO_DONE(buf) b = {};

	buf_str(&b, "{\"command\":[");
	for (size_t i = 0; i + 2 < members; i++)
		buf_str(&b, i ? ",0" : "0");
	buf_str(&b, "]}");
	return json_read_bounded(b.data, b.len, b.len, JSON_MEMBERS_MAX, e);
}

static void members_are_counted_before_they_are_parsed(void **state)
{
	json_t *j = read_flat(JSON_MEMBERS_MAX, NULL);
	struct err e = {};

	(void)state;
	assert_non_null(j);
	json_decref(j);
	assert_null(read_flat(JSON_MEMBERS_MAX + 2, &e));
	assert_string_equal(e.field, "command[9999]");
	assert_null(read_flat(1000000, &e));
	assert_non_null(strstr(e.msg, "too many"));
}

static void a_single_string_is_a_list_of_one(void **state)
{
	AUTO_DONE(job_spec) s = {};
	const char *text = "{\"command\":\"true\",\"timeout\":\"1h30m\",\"grace\":0.25,\"umask\":\"0022\"}";

	(void)state;
	job_spec_init(&s);
	assert_true(spec_json_from_text(text, &s, NULL));
	assert_int_equal(s.command.n, 1);
	assert_string_equal(s.command.v[0], "true");
	assert_int_equal(s.timeout, 90 * USEC_MIN);
	assert_int_equal(s.grace, 250 * USEC_MSEC);
	assert_int_equal(s.umask, 022);
}

static void a_stored_spec_has_no_key(void **state)
{
	AUTO_DONE(job_spec) s = {};
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	assert_false(spec_json_from_text("{\"key\":\"k\"}", &s, &e));
	assert_string_equal(e.field, "key");
}

static void the_canonical_text_does_not_depend_on_the_order_of_members(void **state)
{
	AUTO_DONE(job_spec) a = {};
	AUTO_DONE(job_spec) b = {};
	AUTO_TEXT ta = NULL;
	AUTO_TEXT tb = NULL;

	(void)state;
	job_spec_init(&a);
	job_spec_init(&b);
	assert_true(spec_json_from_text("{\"env\":{\"A\":\"1\",\"B\":\"2\"},\"command\":[\"x\"],\"grace\":10}", &a, NULL));
	assert_true(spec_json_from_text("{ \"command\" : \"x\",\n\"env\":{\"B\":\"2\",\"A\":\"1\"}}", &b, NULL));
	ta = spec_json_to_text(&a);
	tb = spec_json_to_text(&b);
	assert_string_equal(ta, tb);
	assert_string_equal(ta, "{\"command\":[\"x\"],\"env\":{\"A\":\"1\",\"B\":\"2\"}}");
}

/* ---- round trips ---- */

static char *random_text(bool bytes)
{
	static const char *const pieces[] = { "a", "\"", "\\", "\n", "\x1b", "\x7f", "\t", "\r", "\b", "\f", "\x0b", "ä", "€", "😀", "=", " ", "/" };
	AUTO_DONE(buf) b = {};

	buf_char(&b, '/');
	for (long n = random() % 20; n > 0; n--) {
		if (bytes && random() % 4 == 0)
			buf_char(&b, (char)(1 + random() % 255));
		else
			buf_str(&b, pieces[random() % (long)ELEMENTS(pieces)]);
	}
	return buf_steal(&b);
}

/* Valid values for fields with their own grammar. */
static const char *valid_text(const struct job_field *f)
{
	static const struct {
		const char *field, *text;
	} valid[] = {{"name", "a-name"}, {"after", "parent:any"}, {"catchup", "all:7"}, {"overlap", "queue:2"}, {"rate", "10/1m:3"}, {"queue", "night"}, {"sandbox", "strict"},
		{"when", "load<1.5"}, {"backoff", "exp:1s..1h"}, {"on_exit", "75=retry,0|2=ok"}, {"notify", "mail:a@b.example"},
		{"template", "a-template"}, {"cpu", "1.5"}, {"ionice", "best-effort:3"}, {"limits", "4096"},
		{"secrets", "file:/a b"}, {"node_labels", "zone=a"}, {"artifact", "https://a.example/b"},
		{"sha256", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		{"http", "POST"}, {"url", "https://a.example/b"}, {"headers", "A: b"}, {"expect_status", "200-299,404"},
		{"expect_body", "a+"}, {"sign", "KEY"}, {"tls_ca", "CA"}, {"tls_cert", "CERT"}, {"tls_key", "KEY"},
		{"kafka", "a.example:9092,b.example/t"}, {"message_key", "k"}, {"sasl", "PLAIN"}, {"sasl_user", "U"}, {"sasl_password", "P"},
		{"lambda", "f:prod"}, {"region", "eu-central-1"},
		{"origin", "/etc/crontab:7"}, {"tracestate", "a=1,b=2"}, {"baggage", "a=1,b=two"},
		{"traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"},
		{"warrant", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}};

	for (size_t i = 0; i < ELEMENTS(valid); i++)
		if (strcmp(valid[i].field, f->name) == 0)
			return valid[i].text;
	return NULL;
}

static void random_field(const struct job_field *f, void *at)
{
	bool bytes = f->bytes && random() % 2;
	long n = random() % 4;

	switch (f->type) {
	case FIELD_TEXT:
		*(char **)at = valid_text(f) ? xstrdup(valid_text(f)) : random_text(bytes);
		break;
	case FIELD_BLOB:
		((struct blob *)at)->data = random_text(bytes);
		((struct blob *)at)->len = strlen(((struct blob *)at)->data) + (bytes ? 1 : 0);
		break;
	case FIELD_LIST:
	case FIELD_MAP:
		for (long i = 0; i < n; i++) {
			AUTO_TEXT v = valid_text(f) ? xstrdup(valid_text(f)) : random_text(bytes);

			if (strcmp(f->name, "limits") == 0) /* which has fixed names */
				strv_take(at, xprintf("%s=%s", i == 0 ? "core" : i == 1 ? "fsize" : "nofile", v));
			else
				strv_take(at, f->type == FIELD_MAP ? xprintf("K%ld=%s", i, v) : xstrdup(v));
		}
		break;
	default:
		*(int64_t *)at = f->min + (int64_t)((uint64_t)random() * 1009 % (uint64_t)(f->max - f->min + 1));
	}
}

/* The text as Jansson writes it, which stores of earlier versions contain. */
static void assert_text_of_jansson(const char *text, const struct job_spec *s)
{
	json_t *o = spec_json_write(s);
	char *wanted;

	if (s->umask == JOB_UMASK_UNSAID)
		json_object_del(o, "umask");
	else if (!json_object_get(o, "umask"))
		json_object_set_new(o, "umask", json_string("022"));
	wanted = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
	assert_string_equal(text, wanted);
	free(wanted);
	json_decref(o);
}

static void any_spec_reads_back_as_it_was_written(void **state)
{
	(void)state;
	srandom(17);
	for (int round = 0; round < 2000; round++) {
		AUTO_DONE(job_spec) a = {};
		AUTO_DONE(job_spec) b = {};
		AUTO_TEXT first = NULL;
		AUTO_TEXT second = NULL;
		struct err e = {};

		job_spec_init(&a);
		job_spec_init(&b);
		for (size_t i = 0; i < job_fields_count; i++)
			if (random() % 2)
				random_field(&job_fields[i], (char *)&a + job_fields[i].offset);
		first = spec_json_to_text(&a);
		assert_text_of_jansson(first, &a);
		if (!spec_json_from_text(first, &b, &e))
			fail_msg("%s: %s", first, e.msg);
		second = spec_json_to_text(&b);
		assert_string_equal(first, second);
		assert_int_equal(a.command.n, b.command.n);
		for (size_t i = 0; i < a.command.n; i++)
			assert_string_equal(a.command.v[i], b.command.v[i]);
		assert_int_equal(a.stdin_data.len, b.stdin_data.len);
		if (a.stdin_data.data)
			assert_memory_equal(a.stdin_data.data, b.stdin_data.data, a.stdin_data.len);
		assert_true(text_equal(a.script, b.script));
		assert_int_equal(a.timeout, b.timeout);
	}
}

static void bytes_are_written_as_b64_only_if_they_are_not_utf8(void **state)
{
	AUTO_DONE(job_spec) s = {};
	AUTO_TEXT text = NULL;

	(void)state;
	job_spec_init(&s);
	strv_add(&s.command, "a\xff");
	strv_add(&s.env, "A=ä");
	text = spec_json_to_text(&s);
	assert_string_equal(text, "{\"command_b64\":[\"Yf8=\"],\"env\":{\"A\":\"ä\"},\"umask\":\"022\"}");
}

static void a_job_object_has_every_field_of_the_table(void **state)
{
	struct job j = { .id = 7, .uid = 1000, .owner = (char *)"b\xffob", .name = (char *)"backup",
		.queue = (char *)"default", .spec = (char *)"{\"command\":[\"x\"]}", .revision = 1,
		.created_at = USEC_SEC };
	json_t *o = row_json_job(&j, NULL);

	(void)state;
	assert_non_null(o);
	for (size_t i = 0; i < job_fields_count; i++)
		assert_non_null(json_object_get(o, job_fields[i].name));
	assert_string_equal(json_string_value(json_object_get(o, "owner")), "b\\xffob");
	assert_string_equal(json_string_value(json_object_get(o, "created_at")), "1970-01-01T00:00:01Z");
	assert_true(json_is_null(json_object_get(o, "next_at")));
	assert_true(json_is_null(json_object_get(o, "last_run")));
	json_decref(o);
}

static void an_invalid_stored_spec_is_an_internal_error(void **state)
{
	struct job j = { .id = 7, .spec = (char *)"{\"colour\":1}" };
	struct err e = {};

	(void)state;
	assert_null(row_json_job(&j, &e));
	assert_int_equal(e.kind, ERR_INTERNAL);
}

static void an_error_reads_back_as_it_was_written(void **state)
{
	struct err in = {}, out = {};
	json_t *o;

	(void)state;
	err_field(&in, "env", "no such\xff");
	o = error_json_write(&in);
	assert_true(error_json_read(o, &out));
	json_decref(o);
	assert_int_equal(out.kind, ERR_INVALID);
	assert_string_equal(out.field, "env");
	assert_string_equal(out.msg, "no such\\xff");
	o = json_object();
	assert_false(error_json_read(o, &out));
	json_decref(o);
}

static void a_stored_definition_without_umask_keeps_the_old_default(void **state)
{
	AUTO_DONE(job_spec) old;
	AUTO_DONE(job_spec) new;
	AUTO_DONE(job_spec) again;
	AUTO_TEXT text = NULL;

	(void)state;
	job_spec_init(&old);
	assert_true(spec_json_from_text("{\"command\":[\"true\"]}", &old, NULL));
	assert_int_equal(old.umask, 077);
	job_spec_init(&new);
	strv_add(&new.command, "true");
	assert_int_equal(new.umask, 022);
	text = spec_json_to_text(&new);
	job_spec_init(&again);
	assert_true(spec_json_from_text(text, &again, NULL));
	assert_int_equal(again.umask, 022);
}

/* Clients and stored digests depend on the exact text. */
static void values_are_written_as_jansson_writes_them(void **state)
{
	static const char *const texts[] = {"{}", "[]", "null", "true", "-9223372036854775807", "-9223372036854775808", "0.1", "1e300", "\"\"",
		"{\"b\":[1,2.5,false,[],{}],\"a\":{\"z\":null,\"y\":\"\"},\"B\":-0.000001}",
		"\"\\u0001\\u001f\\u007f\\b\\f\\n\\r\\t\\\\\\/\\\"\\u00e4\\u20ac\\ud83d\\ude00\"", "{\"a\\\"\\u0002\":\"x\",\"\":1}"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(texts); i++) {
		json_t *j = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		AUTO_DONE(buf) ours = {};
		char *theirs;

		assert_non_null(j);
		theirs = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		json_value_write(j, &ours);
		assert_string_equal(ours.data, theirs);
		free(theirs);
		json_decref(j);
	}
}

/* json_pack() returns NULL for a text that is not UTF-8. */
static void a_value_that_could_not_be_made_is_written_as_nothing(void **state)
{
	json_t *bad = json_pack("{s:s}", "name", "\xff");
	AUTO_DONE(buf) out = {};

	(void)state;
	assert_null(bad);
	json_value_write(bad, &out);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_written_as_jansson_writes_them),
		TEST(a_value_that_could_not_be_made_is_written_as_nothing),
		TEST(a_bad_submission_is_refused_under_the_name_of_its_member),
		TEST(a_text_over_its_limit_is_too_large),
		TEST(nesting_over_64_levels_is_refused),
		TEST(members_are_counted_before_they_are_parsed),
		TEST(a_single_string_is_a_list_of_one),
		TEST(a_stored_spec_has_no_key),
		TEST(the_canonical_text_does_not_depend_on_the_order_of_members),
		TEST(any_spec_reads_back_as_it_was_written),
		TEST(bytes_are_written_as_b64_only_if_they_are_not_utf8),
		TEST(a_job_object_has_every_field_of_the_table),
		TEST(an_invalid_stored_spec_is_an_internal_error),
		TEST(an_error_reads_back_as_it_was_written),
		TEST(a_stored_definition_without_umask_keeps_the_old_default),
	};

	return RUN_TESTS(tests);
}
