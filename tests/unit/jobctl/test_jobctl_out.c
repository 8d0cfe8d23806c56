/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the output: tables, JSON, output of runs, escaping. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "jobctl/render/render.h"
#include "jobctl/render/run_output.h"
#include "jobctl/render/table.h"
#include <string.h>

/* ---- tables ---- */

static const struct table_column two_columns[] = {{"ID", true, false}, {"STATE", false, true},
	{"NAME", false, false}};

static void columns_are_aligned_without_trailing_blanks(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 6; i++)
		table_cell(&t, (const char *const[]){"7", "active", "a", "1234", "x", ""}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "  ID  STATE   NAME\n   7  active  a\n1234  x\n");
}

static void later_pages_keep_the_column_widths(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, "abc");
	table_flush(&t, &out);
	buf_clear(&out);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, "x");
	table_flush(&t, &out);
	assert_string_equal(out.data, "  x  x      x\n");
}

static void lines_are_cut_to_the_width_of_the_terminal(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	t.width = 14;
	for (size_t i = 0; i < 6; i++)
		table_cell(&t, (const char *const[]){"7", "x", "abcdefgh", "8", "x", "日本語"}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "ID  STATE  NA…\n 7  x      ab…\n 8  x      日…\n");
}

static void columns_shrink_before_the_line_is_cut(void **state)
{
	static const struct table_column columns[] = {{"ID", true, 0},
		{"NAME", false, TABLE_SHRINK}, {"WAITS", false, 0},
		{"COMMAND", false, TABLE_SHRINK}};
	static const struct {
		int width;
		const char *text;
	} cases[] = {
		{0, "ID  NAME                      WAITS  COMMAND\n"
		    " 7  abcdefghijklmnopqrstuvwx  -      /usr/local/bin/backup --all --verbose\n"},
		{60, "ID  NAME                      COMMAND\n"
		     " 7  abcdefghijklmnopqrstuvwx  /usr/local/bin/backup --all -…\n"},
		{40, "ID  NAME               COMMAND\n"
		     " 7  abcdefghijklmnop…  /usr/local/bin/b…\n"},
		{20, "ID  NAME     COMMAND\n"
		     " 7  abcdef…  /usr/l…\n"},
		{10, "ID  NAME\n"
		     " 7  abcde…\n"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(table) t = {};
		AUTO_DONE(buf) out = {};

		table_init(&t, columns, ELEMENTS(columns));
		t.width = cases[i].width;
		for (size_t k = 0; k < ELEMENTS(columns); k++)
			table_cell(&t, (const char *const[]){"7", "abcdefghijklmnopqrstuvwx", "-",
					       "/usr/local/bin/backup --all --verbose"}[k]);
		table_flush(&t, &out);
		assert_string_equal(out.data, cases[i].text);
	}
}

static void only_states_are_coloured_and_colour_has_no_width(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	t.colour = true;
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, (const char *const[]){"7", "failed", "failed"}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "ID  STATE   NAME\n 7  \033[31mfailed\033[0m  failed\n");
}

static void control_characters_in_cells_are_escaped(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, (const char *const[]){"1", "\033[2J", "a\nb\r\u202e\x9b"}[i]);
	table_flush(&t, &out);
	assert_null(strchr(out.data, '\033'));
	assert_null(strchr(out.data, '\r'));
	assert_non_null(strstr(out.data, "\\x1b[2J"));
	assert_non_null(strstr(out.data, "a\\nb\\r\\u202e\\x9b"));
}

/* ---- JSON and output ---- */

static void json_contains_no_control_characters(void **state)
{
	json_auto_t *o = json_object();
	AUTO_DONE(buf) out = {};
	json_t *again;

	(void)state;
	json_object_set_new(o, "x", json_string("\033[2J\x7f\xc2\x9b\u202e\U000e0041ä\"\\\n"));
	json_object_set_new(o, "cpu", json_real(0.1));
	render_json(o, JSON_COMPACT, &out);
	assert_string_equal(out.data,
		"{\"x\":\"\\u001B[2J\\u007f\\u009b\\u202e\\udb40\\udc41ä\\\"\\\\\\n\",\"cpu\":0.1}");
	again = json_loads(out.data, 0, NULL);
	assert_true(json_equal(o, again));
	json_decref(again);
}

static void output_on_a_terminal_is_escaped_except_newlines_and_tabs(void **state)
{
	AUTO_DONE(run_output) o = {};

	(void)state;
	run_output_put(&o, "a\tb\n\033]52;c;x\a\r", 14);
	run_output_end(&o);
	assert_string_equal(o.out.data, "a\tb\n\\x1b]52;c;x\\x07\\r");
}

static void a_character_split_between_two_parts_is_joined(void **state)
{
	const char *text = "aä日😀\xff\xe6";
	AUTO_DONE(run_output) o = {};

	(void)state;
	for (size_t i = 0; i < strlen(text); i++)
		run_output_put(&o, text + i, 1);
	run_output_end(&o);
	assert_string_equal(o.out.data, "aä日😀\\xff\\xe6");
}

static void raw_output_is_not_changed(void **state)
{
	AUTO_DONE(run_output) o = {.raw = true};

	(void)state;
	run_output_put(&o, "\0\033\xff", 3);
	run_output_end(&o);
	assert_int_equal(o.out.len, 3);
	assert_memory_equal(o.out.data, "\0\033\xff", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(columns_are_aligned_without_trailing_blanks),
		TEST(later_pages_keep_the_column_widths),
		TEST(lines_are_cut_to_the_width_of_the_terminal),
		TEST(columns_shrink_before_the_line_is_cut),
		TEST(only_states_are_coloured_and_colour_has_no_width),
		TEST(control_characters_in_cells_are_escaped),
		TEST(json_contains_no_control_characters),
		TEST(output_on_a_terminal_is_escaped_except_newlines_and_tabs),
		TEST(a_character_split_between_two_parts_is_joined),
		TEST(raw_output_is_not_changed),
	};

	return RUN_TESTS(tests);
}
