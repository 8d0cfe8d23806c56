/* SPDX-License-Identifier: Apache-2.0 */
/* Masking of secrets in output, for every division into chunks. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "exec/worker/output/secret_mask.h"
#include <stdlib.h>
#include <string.h>

static void collect(const void *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
}

static struct secret_mask *mask_of(const char *a, const char *b)
{
	struct secret_mask_value v[2] = {{a, strlen(a)}, {b ? b : "", b ? strlen(b) : 0}};

	return secret_mask_new(v, b ? 2 : 1);
}

/* The output for 'text', written in chunks of this size; 0: in one chunk. */
static char *through(const char *a, const char *b, const char *text, size_t piece)
{
	AUTO(secret_mask) *m = mask_of(a, b);
	AUTO_DONE(buf) out = {};
	size_t len = strlen(text);

	for (size_t i = 0; i < len;) {
		size_t n = piece && piece < len - i ? piece : len - i;

		secret_mask_write(m, text + i, n, collect, &out);
		i += n;
	}
	secret_mask_release(m, collect, &out);
	return buf_steal(&out);
}

static void becomes(const char *a, const char *b, const char *text, const char *wanted)
{
	for (size_t piece = 0; piece < 9; piece++) {
		AUTO_TEXT got = through(a, b, text, piece);

		assert_string_equal(got, wanted);
	}
}

static void a_value_is_masked_for_every_chunk_size(void **state)
{
	(void)state;
	becomes("hunter2", NULL, "the password is hunter2, really", "the password is ***, really");
	becomes("hunter2\n", NULL, "hunter2hunter2\nhunter\n", "******\nhunter\n");
	becomes("aaab", NULL, "aaaaaaab aaac", "aaaa*** aaac");
}

static void overlapping_values_are_masked_together(void **state)
{
	(void)state;
	becomes("abcdef", "defghi", "<abcdefghi>", "<***>");
	becomes("abcd", "abcdefgh", "<abcdefgh><abcdefg>", "<***><***efg>");
	becomes("abcdefgh", "cdef", "<abcdefgh><abcdefx>", "<***><ab***x>");
	becomes("aaaa", NULL, "<aaaaaaa>", "<***>");
}

static void other_output_passes_unchanged(void **state)
{
	(void)state;
	becomes("hunter2", "correct horse", "hunter1 hunte correct hors\n",
		"hunter1 hunte correct hors\n");
	assert_null(mask_of("abc\n", "")); /* too short: it would match everywhere */
	assert_null(secret_mask_new(NULL, 0));
}

static void each_line_of_a_value_is_masked(void **state)
{
	const char *key = "--begin--\n  abcdefghij\n}\nklmnopqrst\r\n--end--\n";

	(void)state;
	becomes(key, NULL, "| klmnopqrst |\n}\nabcdefghij", "| *** |\n}\n***");
	becomes(key, NULL, "--begin--\n  abcdefghij\n}\nklmnopqrst\r\n--end--\n", "***\n");
}

/*
 * The output for 'value' followed by 'more', in base64, wrapped at 76 characters with 'end' (NULL:
 * not wrapped).
 */
static char *base64_through(const char *value, const char *more, const char *end)
{
	AUTO_TEXT both = xprintf("%s%s", value, more);
	AUTO_DONE(buf) whole = {};
	AUTO_DONE(buf) shown = {};

	buf_base64(&whole, both, strlen(both));
	for (size_t i = 0; i < whole.len; i += 76) {
		buf_add(&shown, whole.data + i, whole.len - i < 76 ? whole.len - i : 76);
		buf_str(&shown, end ? end : "");
	}
	return through(value, NULL, shown.data, 5);
}

static void the_base64_form_is_hidden_to_its_last_character(void **state)
{
	static const char *const ends[] = {NULL, "\n", "\r\n"};
	char value[200];

	(void)state;
	for (size_t len = MASK_MIN; len < sizeof(value); len++) {
		for (size_t i = 0; i < len; i++)
			value[i] = (char)('!' + i * i * 7 % 89);
		value[len] = '\0';
		for (size_t k = 0; k < 3; k++) {
			AUTO_TEXT alone = base64_through(value, "", ends[k]);
			AUTO_TEXT line = base64_through(value, "\n", ends[k]);

			assert_int_equal(alone[strspn(alone, "*\r\n")], '\0');
			/*
			 * 'Cg==' is the encoded line end; a shared group leaves only bits of the
			 * line end
			 */
			assert_true(strlen(line + strspn(line, "*\r\n")) <= 4 + 2);
		}
	}
	becomes("hunter2!", NULL,
		"aHVudGVyMiE= aHVudGVyMiEK aHVudGVyMiF4eA==", "*** ***K ***4eA==");
	becomes("hunter2", NULL, "aHVudGVyMg== aHVudGVyMgo= aHVudGVyMnh4", "*** ***o= ***h4");
	becomes("pass", NULL, "cGFzcw== cGFzcwo= cGFz cGFzYQ==", "*** ***o= cGFz cGFzYQ==");
}

/* As in the header 'Authorization: Basic', which encodes user:password, and in tokens for URLs. */
static void the_base64_form_behind_other_bytes_is_hidden(void **state)
{
	static const char *const before[] = {"", "a", "ab", "abc", "user:"}, *const after[] = {"", "\n", "xy", "xyz"};
	const char *value = "\377\376tok?>_9~A+/zz\373\357\276";

	(void)state;
	for (size_t i = 0; i < ELEMENTS(before); i++)
		for (size_t k = 0; k < 2 * ELEMENTS(after); k++) {
			AUTO_TEXT both = xprintf("%s%s%s", before[i], value, after[k / 2]);
			size_t first = (8 * strlen(before[i]) + 5) / 6, end = 8 * (strlen(before[i]) + strlen(value)) / 6;
			AUTO_DONE(buf) coded = {};
			AUTO_TEXT shown = NULL;

			buf_base64(&coded, both, strlen(both));
			for (size_t c = 0; k % 2 && c < coded.len; c++)
				coded.data[c] = coded.data[c] == '+' ? '-' : coded.data[c] == '/' ? '_' : coded.data[c];
			shown = through(value, NULL, coded.data, 5);
			assert_memory_equal(shown, coded.data, first); /* what has bits of the bytes before it */
			assert_memory_equal(shown + first, MASK_TEXT, 3);
			assert_true(strlen(shown) <= first + 3 + coded.len - end);
		}
	becomes("hunter2", NULL, "dXNlcjpodW50ZXIy dTpodW50ZXIyCg==", "dXNlcjp*** dTp***Cg==");
	becomes("hunter2", NULL, "dXM6aHVudGVyMg==", "dXM6***");
}

static void a_prefix_of_a_secret_is_held_back_and_released_masked(void **state)
{
	AUTO(secret_mask) *m = mask_of("hunter2", NULL);
	AUTO_DONE(buf) out = {};

	(void)state;
	secret_mask_write(m, "a: hunte", 8, collect, &out);
	assert_string_equal(out.data, "a: ");
	assert_true(secret_mask_holds(m));
	secret_mask_release(m, collect, &out);
	assert_string_equal(out.data, "a: ***");
	assert_false(secret_mask_holds(m));
	secret_mask_write(m, "r2.", 3, collect, &out); /* its rest belongs to the same MASK_TEXT */
	assert_string_equal(out.data, "a: ***.");
	secret_mask_write(m, "b: hu", 5, collect, &out);
	/* a few bytes may be the end of a prompt, so they are not masked */
	secret_mask_release(m, collect, &out);
	assert_string_equal(out.data, "a: ***.b: hu");
	secret_mask_write(m, "nter", 4, collect, &out);
	secret_mask_write(m, "2.", 2, collect, &out);
	assert_string_equal(out.data, "a: ***.b: hu***.");
	secret_mask_write(m, "hunte", 5, collect, &out);
	secret_mask_release(m, collect, &out);
	secret_mask_write(m, "d", 1, collect, &out);
	assert_string_equal(out.data, "a: ***.b: hu***.***d");
}

static void count(const void *data, size_t len, void *arg)
{
	(void)data;
	*(size_t *)arg += len;
}

/* A quadratic algorithm would need 10^12 steps. */
static void the_time_is_linear_in_the_worst_case(void **state)
{
	size_t len = MASK_BYTES_MAX, out = 0;
	char *value = xcalloc(1, len), chunk[4096];
	AUTO(secret_mask) *m = NULL;
	usec_t start = clock_boot(&clock_system);

	(void)state;
	memset(value, 'a', len);
	value[len - 1] = 'b';
	m = secret_mask_new(&(struct secret_mask_value){value, len}, 1);
	memset(chunk, 'a', sizeof(chunk));
	for (int i = 0; i < 4096; i++)
		secret_mask_write(m, chunk, i % 2 ? 1 : sizeof(chunk), count, &out);
	secret_mask_release(m, count, &out);
	assert_in_range(out, 2048 * 4097 - len, 2048 * 4097);
	assert_true(clock_boot(&clock_system) - start < 60 * USEC_SEC);
	free(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_value_is_masked_for_every_chunk_size),
		TEST(overlapping_values_are_masked_together),
		TEST(other_output_passes_unchanged),
		TEST(each_line_of_a_value_is_masked),
		TEST(the_base64_form_is_hidden_to_its_last_character),
		TEST(the_base64_form_behind_other_bytes_is_hidden),
		TEST(a_prefix_of_a_secret_is_held_back_and_released_masked),
		TEST(the_time_is_linear_in_the_worst_case),
	};

	return RUN_TESTS(tests);
}
