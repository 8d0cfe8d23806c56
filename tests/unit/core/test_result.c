/* SPDX-License-Identifier: Apache-2.0 */
/* Results that commands write: which lines count, and what is said about the others. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/result.h"
#include "unit/unit.h"
#include <string.h>

static void expect(const char *text, size_t len, const char *results, const char *note)
{
	AUTO_DONE(strv) v = {};
	AUTO_TEXT said = NULL;
	AUTO_DONE(buf) all = {};

	results_parse(text, len, &v, &said);
	for (size_t i = 0; i < v.n; i++)
		buf_printf(&all, "%s|", v.v[i]);
	assert_string_equal(all.data ? all.data : "", results);
	if (!note)
		assert_null(said);
	else if (!said || !strstr(said, note))
		fail_msg("'%s' does not say '%s'", said ? said : "(none)", note);
}

static void lines_with_a_key_and_a_value_are_results(void **state)
{
	static const struct {
		const char *text, *results, *note;
	} cases[] = {
		{"", "", NULL},
		{"\n\n", "", NULL},
		{"rows=5\n", "rows=5|", NULL},
		{"rows=5", "rows=5|", NULL},
		{"a=1\n\nb=x y=z\n", "a=1|b=x y=z|", NULL},
		{"_k9=\n", "_k9=|", NULL},
		{"name=größe\n", "name=größe|", NULL},
		{"a=1\nb=2\na=3\n", "a=3|b=2|", NULL},
		{"ab=1\na=2\n", "ab=1|a=2|", NULL},
		{"rows\n", "", "line 1 of its results has no '='"},
		{"a=1\n=2\nb=3\n", "a=1|b=3|", "line 2 of its results has a key"},
		{"9a=1\n", "", "has a key"},
		{"a b=1\n", "", "has a key"},
		{"a=1\r\nb=2\n", "b=2|", "line 1 of its results has a value that is not UTF-8 or has control"},
		{"a=\xff\n", "", "not UTF-8"},
		{"a=\t\n", "", "control"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++)
		expect(cases[i].text, strlen(cases[i].text), cases[i].results, cases[i].note);
	expect("a=x\0y\n", 6, "", "control");
}

static void keys_values_and_their_number_are_bounded(void **state)
{
	AUTO_DONE(buf) text = {};
	AUTO_DONE(buf) all = {};
	char long_key[RESULT_KEY_MAX + 2] = {}, long_value[RESULT_VALUE_MAX + 2] = {};

	(void)state;
	memset(long_key, 'k', RESULT_KEY_MAX + 1);
	memset(long_value, 'v', RESULT_VALUE_MAX + 1);
	buf_printf(&text, "%s=1\nv=%s\n", long_key, long_value);
	expect(text.data, text.len, "", "line 1");
	buf_clear(&text);
	buf_printf(&text, "%s=%s\n", long_key + 1, long_value + 1);
	buf_printf(&all, "%s=%s|", long_key + 1, long_value + 1);
	expect(text.data, text.len, all.data, NULL);
	buf_clear(&text);
	buf_clear(&all);
	for (int i = 0; i <= RESULTS_MAX; i++) {
		buf_printf(&text, "k%d=%d\n", i, i);
		if (i < RESULTS_MAX)
			buf_printf(&all, "k%d=%d|", i, i);
	}
	expect(text.data, text.len, all.data, "line 33 of its results is the 33rd key");
	/* a known key is not another one */
	buf_str(&text, "k31=31\n");
	expect(text.data, text.len, all.data, "33rd key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_with_a_key_and_a_value_are_results),
		TEST(keys_values_and_their_number_are_bounded),
	};

	return RUN_TESTS(tests);
}
