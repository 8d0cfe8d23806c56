/* SPDX-License-Identifier: Apache-2.0 */
/* The ground: errors, texts, durations, instants, buffers, maps, files. */
#include "base/auto.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/io.h"
#include "base/key_value.h"
#include "base/map.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void every_error_kind_has_a_code_a_status_and_an_exit(void **state)
{
	(void)state;
	for (int k = 1; k < ERR_KIND_MAX; k++) {
		const struct err_kind_info *i = err_kind_info((enum err_kind)k);

		assert_non_null(i->code);
		assert_in_range(i->http, 400, 599);
		assert_in_range(i->exit_code, 1, 7);
		assert_int_equal(err_kind_from_code(i->code), k);
	}
	assert_int_equal(err_kind_from_code("no such code"), ERR_INTERNAL);
}

static void a_wrapped_error_keeps_its_kind_and_its_cause(void **state)
{
	struct err e = {};

	(void)state;
	assert_false(err_field(&e, "env", "bad '%s'", "x"));
	assert_false(err_wrap(&e, "add job %d", 7));
	assert_int_equal(e.kind, ERR_INVALID);
	assert_string_equal(e.field, "env");
	assert_string_equal(e.msg, "add job 7: bad 'x'");
	assert_false(err_errno(&e, ENOSPC, "write '%s'", "f"));
	assert_int_equal(e.kind, ERR_FULL);
	assert_string_equal(e.msg, "write 'f': No space left on device");
}

static void whole_numbers_only(void **state)
{
	static const char *const bad[] = {"", "-", "+1", " 1", "1 ", "0x1", "1e3", "9223372036854775808", "1.0"};
	int64_t n = 42;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(text_parse_int(bad[i], INT64_MIN, INT64_MAX, &n));
	assert_int_equal(n, 42);
	assert_true(text_parse_int("-9223372036854775808", INT64_MIN, INT64_MAX, &n));
	assert_true(n == INT64_MIN);
	assert_false(text_parse_int("11", 0, 10, &n));
}

static void sizes_have_binary_units(void **state)
{
	int64_t n;

	(void)state;
	assert_true(text_parse_size("4096", &n) && n == 4096);
	assert_true(text_parse_size("10M", &n) && n == 10 * 1024 * 1024);
	assert_true(text_parse_size("1g", &n) && n == 1 << 30);
	assert_false(text_parse_size("10MB", &n));
	assert_false(text_parse_size("M", &n));
	assert_false(text_parse_size("9999999999999G", &n));
}

static void durations_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		usec_t want;
	} good[] = {
		{"90s", 90 * USEC_SEC}, {"15m", 15 * USEC_MIN}, {"1h30m", 90 * USEC_MIN},
		{"2d", 2 * USEC_DAY}, {"500ms", 500 * USEC_MSEC}, {"1.5h", 90 * USEC_MIN},
		{"PT3H", 3 * USEC_HOUR}, {"P1DT12H", 36 * USEC_HOUR}, {"PT0.5S", USEC_SEC / 2},
		{"5 minutes", 5 * USEC_MIN}, {"1 hour 30 min", 90 * USEC_MIN}, {"1w", 7 * USEC_DAY},
	};
	static const char *const bad[] = {"", "5", "s", "-5s", "0s", "5 m 1 h", "1h1h", "P", "PT", "P1H", "1e9y",
		"999999999999999999d", "5s ", "101w5000w", "36526d", "1.h", ".5h", "PT1H2H"};
	usec_t d;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(good); i++) {
		assert_true(duration_parse(good[i].text, &d, NULL));
		assert_true(d == good[i].want);
	}
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};

		assert_false(duration_parse(bad[i], &d, &e));
		assert_int_equal(e.kind, ERR_INVALID);
	}
}

static void a_printed_duration_reads_back(void **state)
{
	char text[RFC3339_MAX];
	usec_t back;

	(void)state;
	for (usec_t d = 1; d < 100 * 365 * USEC_DAY; d = d * 7 + 3) {
		assert_true(duration_parse(duration_format(d, text), &back, NULL));
		assert_true(back == d);
	}
	assert_string_equal(duration_format(5400 * USEC_SEC, text), "1h30m");
}

static void instants_follow_rfc_3339(void **state)
{
	static const struct {
		const char *text;
		usec_t want;
	} good[] = {
		{"1970-01-01T00:00:00Z", 0}, {"2000-02-29T12:00:00Z", INT64_C(951825600) * USEC_SEC},
		{"2024-03-31T03:00:00+02:00", INT64_C(1711846800) * USEC_SEC},
		{"2024-03-31 01:00:00.25Z", INT64_C(1711846800) * USEC_SEC + 250000},
		{"2199-12-31T23:59:59Z", USEC_LAST}, {"@1700000000", INT64_C(1700000000) * USEC_SEC},
		{"@1.5", 1500000},
	};
	static const char *const bad[] = {"", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-01-01",
		"2024-01-01T00:00:00", "2024-01-01T24:00:00Z", "2024-01-01T00:00:60Z", "2200-01-01T00:00:00Z",
		"2024-01-01T00:00:00Zx", "@", "@-1", "@99999999999999999999", "2024-1-1T00:00:00Z", "1969-12-31T23:59:59Z"};
	usec_t t;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(good); i++) {
		assert_true(rfc3339_parse(good[i].text, &t, NULL));
		assert_true(t == good[i].want);
	}
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(rfc3339_parse(bad[i], &t, NULL));
}

static void a_printed_instant_reads_back(void **state)
{
	char text[RFC3339_MAX];
	usec_t back;

	(void)state;
	for (usec_t t = 0; t <= USEC_LAST; t += INT64_C(987654321) * 1234567) {
		assert_true(rfc3339_parse(rfc3339_format(t, text), &back, NULL));
		assert_true(back == t);
	}
	assert_string_equal(rfc3339_format(INT64_C(1763260871) * USEC_SEC, text), "2025-11-16T02:41:11Z");
	assert_string_equal(rfc3339_format(-1, text), "1969-12-31T23:59:59.999999Z");
}

static void utf8_is_judged_strictly(void **state)
{
	static const char *const bad[] = {"\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xe2\x82", "a\x80", "\xf8\x88\x80\x80\x80"};

	(void)state;
	assert_true(text_utf8_valid("grüße €\U0001F600", strlen("grüße €\U0001F600")));
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(text_utf8_valid(bad[i], strlen(bad[i])));
}

static void nothing_dangerous_reaches_a_terminal(void **state)
{
	struct buf b = {};
	const char *in = "a\x1b[2J\r\n\t\x7f\u202eé\x9b\xff";

	(void)state;
	text_escape(&b, in, strlen(in));
	assert_string_equal(b.data, "a\\x1b[2J\\r\\n\\t\\x7f\\u202eé\\x9b\\xff");
	buf_done(&b);
}

static void json_strings_are_quoted(void **state)
{
	struct buf b = {};

	(void)state;
	buf_json_str(&b, "a\"b\\c\n\x01é");
	buf_json_str(&b, NULL);
	assert_string_equal(b.data, "\"a\\\"b\\\\c\\u000a\\u0001é\"null");
	buf_done(&b);
}

static void base64_round_trips_and_refuses_the_rest(void **state)
{
	static const char *const bad[] = {"A", "AA", "AA=", "A===", "====", "AB==C", "AA==AAAA", "A\nAA", "AB==", "AAB="};
	struct buf text = {}, back = {};
	unsigned char all[256];

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (unsigned char)i;
	for (size_t len = 0; len <= 256; len++) {
		buf_clear(&text);
		buf_clear(&back);
		buf_base64(&text, all, len);
		assert_true(buf_base64_decode(text.data, text.len, &back));
		assert_int_equal(back.len, len);
		if (len)
			assert_memory_equal(back.data, all, len);
	}
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(buf_base64_decode(bad[i], strlen(bad[i]), &back));
	buf_done(&text);
	buf_done(&back);
}

static void lists_own_their_strings(void **state)
{
	struct strv v = {}, copy = {};

	(void)state;
	for (int i = 0; i < 100; i++)
		strv_take(&v, xprintf("%d", i));
	strv_copy(&copy, &v);
	strv_done(&v);
	assert_int_equal(copy.n, 100);
	assert_string_equal(copy.v[99], "99");
	assert_null(copy.v[100]);
	strv_done(&copy);
}

static void a_map_forgets_what_was_taken_and_nothing_else(void **state)
{
	static int values[10000];
	struct map m = {};
	size_t seen = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int64_t k = 0; k < 10000; k++)
			map_put(&m, k * 4096, &values[k]);
		for (int64_t k = 0; k < 10000; k++)
			assert_ptr_equal(map_get(&m, k * 4096), &values[k]);
		for (int64_t k = 0; k < 10000; k += 2)
			assert_ptr_equal(map_take(&m, k * 4096), &values[k]);
		assert_null(map_get(&m, 0));
		assert_null(map_take(&m, 0));
	}
	for (size_t i = 0; map_next(&m, &i);)
		seen++;
	assert_int_equal(seen, 5000);
	map_done(&m);
}

static void a_written_file_is_whole_or_the_old_one(void **state)
{
	char dir[] = "/tmp/jobsched-base-XXXXXX";
	AUTO_TEXT path = NULL;
	struct buf b = {};

	(void)state;
	assert_non_null(mkdtemp(dir));
	path = xprintf("%s/file", dir);
	assert_int_equal(io_write_file(path, "one", 3, 0600), 0);
	assert_int_equal(io_write_file(path, "three", 5, 0600), 0);
	assert_int_equal(io_read_file(path, &b, 100), 0);
	assert_string_equal(b.data, "three");
	buf_clear(&b);
	assert_int_equal(io_read_file(path, &b, 4), -EFBIG);
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
	buf_done(&b);
}

static void a_locked_file_is_locked_for_others(void **state)
{
	char path[] = "/tmp/jobsched-lock-XXXXXX";
	int made = mkstemp(path), first, second;

	(void)state;
	close(made);
	first = io_lock_file(path);
	assert_true(first >= 0);
	second = io_lock_file(path);
	assert_int_equal(second, -EWOULDBLOCK);
	close(first);
	unlink(path);
}

static void lines_are_split_at_the_first_equals_sign(void **state)
{
	static const struct {
		const char *line, *key, *value;
		enum key_value_line kind;
	} rows[] = {
		{" name =  a = b \t", "name", "a = b", KEY_VALUE_PAIR},
		{"name=", "name", "", KEY_VALUE_PAIR},
		{"=x", "", "x", KEY_VALUE_PAIR},
		{"\tword ", "word", NULL, KEY_VALUE_OTHER},
		{"[sandbox a=b]", "[sandbox a=b]", NULL, KEY_VALUE_OTHER},
		{"", "", NULL, KEY_VALUE_NONE},
		{"  # a = b", "# a = b", NULL, KEY_VALUE_NONE},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_TEXT line = xstrdup(rows[i].line);
		char *key = NULL, *value = NULL;

		assert_int_equal(key_value_split(line, &key, &value), rows[i].kind);
		assert_string_equal(key, rows[i].key);
		if (rows[i].value)
			assert_string_equal(value, rows[i].value);
		else
			assert_null(value);
	}
}

static void a_peer_that_hangs_up_is_tried_with_growing_delays(void **state)
{
	struct backoff b = {.min = 100 * USEC_MSEC, .max = 5 * USEC_SEC};
	usec_t now = USEC_SEC, sum = 0;
	unsigned lines = 0, told = 0, n;

	(void)state;
	for (int i = 0; i < 20; i++) {
		usec_t delay;

		backoff_connected(&b, now);
		delay = backoff_failed(&b, now + USEC_MSEC);
		assert_in_range(delay, i ? 200 * USEC_MSEC : 0, i ? 5 * USEC_SEC : 0);
		if (backoff_log_level(&b, now, &n) != LOG_LEVEL_DEBUG) {
			lines++;
			told += n;
		}
		now += delay;
		sum += delay;
	}
	assert_in_range(sum, 70 * USEC_SEC, 80 * USEC_SEC);
	assert_int_equal(lines, 2); /* the first, and one after a minute */
	assert_in_range(told, 15, 20);
}

static void a_stable_connection_is_tried_again_at_once(void **state)
{
	struct backoff b = {.min = 100 * USEC_MSEC, .max = 5 * USEC_SEC};
	unsigned n;

	(void)state;
	backoff_failed(&b, 1);
	backoff_failed(&b, 2);
	backoff_connected(&b, 3);
	assert_int_equal(backoff_failed(&b, 3 + BACKOFF_STABLE), 0);
	assert_int_equal(backoff_log_level(&b, 4 + BACKOFF_STABLE, &n), LOG_LEVEL_WARNING);
	assert_int_equal(n, 1);
	assert_int_equal(backoff_stable(&b), 1);
	assert_int_equal(backoff_failed(&b, 5 + BACKOFF_STABLE), 100 * USEC_MSEC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(every_error_kind_has_a_code_a_status_and_an_exit),
		TEST(a_wrapped_error_keeps_its_kind_and_its_cause),
		TEST(whole_numbers_only),
		TEST(sizes_have_binary_units),
		TEST(durations_are_read_as_people_write_them),
		TEST(a_printed_duration_reads_back),
		TEST(instants_follow_rfc_3339),
		TEST(a_printed_instant_reads_back),
		TEST(utf8_is_judged_strictly),
		TEST(nothing_dangerous_reaches_a_terminal),
		TEST(json_strings_are_quoted),
		TEST(base64_round_trips_and_refuses_the_rest),
		TEST(lines_are_split_at_the_first_equals_sign),
		TEST(lists_own_their_strings),
		TEST(a_map_forgets_what_was_taken_and_nothing_else),
		TEST(a_written_file_is_whole_or_the_old_one),
		TEST(a_locked_file_is_locked_for_others),
		TEST(a_peer_that_hangs_up_is_tried_with_growing_delays),
		TEST(a_stable_connection_is_tried_again_at_once),
	};

	return RUN_TESTS(tests);
}
