/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the model of 'jobctl top': selection, pages, search, marks, questions, output. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/top/top_keys.h"
#include "jobctl/top/top_model.h"
#include <string.h>

static json_t *jobs(int first, int n, const char *next_cursor)
{
	json_t *rows = json_array();

	for (int i = 0; i < n; i++) {
		AUTO_TEXT name = xprintf("job-%03d", first + n - 1 - i);

		json_array_append_new(rows,
			json_pack("{s:i, s:s, s:s, s:{s:i, s:s}}", "id", first + i, "name", name,
				"state", i % 2 ? "paused" : "active", "last_run", "id",
				1000 + first + i, "state", "succeeded"));
	}
	return json_pack("{s:o, s:s?}", "jobs", rows, "next_cursor", next_cursor);
}

static json_t *runs(int first, int n)
{
	json_t *rows = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(rows,
			json_pack("{s:i, s:i, s:s, s:s}", "id", first + n - 1 - i, "job", 7,
				"job_name", i == 1 ? "Backup" : "sync", "state",
				i ? "succeeded" : "running"));
	return json_pack("{s:o, s:n}", "runs", rows, "next_cursor");
}

static void give(struct top_model *m, enum top_view view, json_t *answer /* moved */)
{
	top_model_rows(m, view, answer);
	json_decref(answer);
}

static void press(struct top_model *m, const char *keys)
{
	for (; *keys; keys++)
		top_keys_press(m, *keys);
}

/* Takes all commands; returns the number of those with this verb, and the path of the last one. */
static int take(struct top_model *m, enum top_verb verb, char *ret_path, size_t size)
{
	AUTO_DONE(top_command) c = {};
	int n = 0;

	if (size)
		ret_path[0] = '\0';
	while (top_model_take(m, &c)) {
		if (c.verb == verb) {
			n++;
			if (size && c.path)
				snprintf(ret_path, size, "%s", c.path);
		}
		top_command_done(&c);
	}
	return n;
}

static int64_t selected(const struct top_model *m)
{
	return json_integer_value(json_object_get(top_model_selected(m), "id"));
}

static void expect_path(const struct top_model *m, const char *expected)
{
	AUTO_TEXT path = top_model_path(m);

	assert_string_equal(path, expected);
}

#define LIVE "/v1/jobs?state=active,paused,suspended"

static void keys_move_the_selection_within_the_list(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_JOBS);
	press(&m, "jjk"); /* without rows nothing happens */
	give(&m, TOP_JOBS, jobs(1, 50, NULL));
	top_model_resize(&m, 24, 80);
	press(&m, "jjk");
	assert_int_equal(selected(&m), 2);
	top_keys_press(&m, TOP_KEY_PAGE_DOWN);
	assert_int_equal(selected(&m), 2 + 21);
	assert_int_equal(m.lists[TOP_JOBS].first, 2); /* 21 lines, the selected row is the last one */
	press(&m, "G");
	assert_int_equal(selected(&m), 50);
	press(&m, "j");
	assert_int_equal(selected(&m), 50);
	press(&m, "gk");
	assert_int_equal(selected(&m), 1);
	assert_int_equal(m.lists[TOP_JOBS].first, 0);
}

static void a_smaller_screen_keeps_the_selected_row_visible(void **state)
{
	AUTO_DONE(top_model) m;
	const struct top_list *l = &m.lists[TOP_JOBS];

	(void)state;
	top_model_init(&m, TOP_JOBS);
	give(&m, TOP_JOBS, jobs(1, 50, NULL));
	top_model_resize(&m, 50, 200);
	for (int i = 0; i < 30; i++)
		press(&m, "j");
	for (int lines = 50; lines > 0; lines--) {
		top_model_resize(&m, lines, 20);
		assert_int_equal(selected(&m), 31);
		assert_in_range(l->selected, l->first,
			l->first + (size_t)top_model_list_lines(&m) - 1);
	}
}

static void an_update_keeps_the_selected_row(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_RUNS);
	give(&m, TOP_RUNS, runs(1, 20));
	press(&m, "jjj");
	assert_int_equal(selected(&m), 17);
	give(&m, TOP_RUNS, runs(1, 25)); /* five new runs above */
	assert_int_equal(selected(&m), 17);
	press(&m, "g");
	give(&m, TOP_RUNS, runs(1, 30)); /* the first row stays the newest run */
	assert_int_equal(selected(&m), 30);
	press(&m, "jj");
	give(&m, TOP_RUNS, runs(100, 3)); /* the selected run is gone */
	assert_int_equal(selected(&m), 100);
	give(&m, TOP_RUNS, runs(100, 0));
	assert_null(top_model_selected(&m));
	top_keys_press(&m, TOP_KEY_ENTER);
	press(&m, "lwrx ");
	assert_int_equal(take(&m, TOP_POST, NULL, 0), 0);
}

static void moving_beyond_a_page_loads_the_next_one(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_JOBS);
	expect_path(&m, LIVE "&limit=200");
	give(&m, TOP_JOBS, jobs(1, 200, "200"));
	press(&m, "G");
	take(&m, TOP_REFRESH, NULL, 0);
	press(&m, "j");
	assert_int_equal(take(&m, TOP_REFRESH, NULL, 0), 1);
	assert_null(m.lists[TOP_JOBS].rows); /* one page is in memory */
	expect_path(&m, LIVE "&limit=200&cursor=200");
	give(&m, TOP_JOBS, jobs(201, 200, "400"));
	assert_int_equal(selected(&m), 201);
	press(&m, "k");
	expect_path(&m, LIVE "&limit=200");
	give(&m, TOP_JOBS, jobs(1, 200, "200"));
	assert_int_equal(selected(&m), 200); /* the last row of the page before */
	press(&m, "j");
	give(&m, TOP_JOBS, jobs(201, 200, NULL));
	press(&m, "Gj");
	expect_path(&m, LIVE "&limit=200&cursor=200"); /* there is no further page */
	press(&m, "g");
	expect_path(&m, LIVE "&limit=200");
}

static void the_daemon_searches_jobs(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_JOBS);
	give(&m, TOP_JOBS, jobs(1, 5, NULL));
	press(&m, "/ba");
	assert_int_equal(m.mode, TOP_MODE_SEARCH);
	top_keys_press(&m, 0xe9);
	top_keys_press(&m, TOP_KEY_BACKSPACE); /* the whole character */
	press(&m, "q"); /* is typed */
	top_keys_press(&m, TOP_KEY_ENTER);
	assert_int_equal(m.mode, TOP_MODE_LIST);
	expect_path(&m, LIVE "&name=%2Abaq%2A&limit=200");
	press(&m, "/a*");
	top_keys_press(&m, TOP_KEY_ENTER);
	expect_path(&m, LIVE "&name=a%2A&limit=200");
	press(&m, "/z");
	top_keys_press(&m, TOP_KEY_ESCAPE); /* the search before remains */
	expect_path(&m, LIVE "&name=a%2A&limit=200");
	top_keys_press(&m, TOP_KEY_ESCAPE);
	press(&m, "a");
	expect_path(&m, "/v1/jobs?limit=200");
}

static void runs_are_searched_in_the_page(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_RUNS);
	press(&m, "/back");
	top_keys_press(&m, TOP_KEY_ENTER);
	expect_path(&m, "/v1/runs?planned=false&limit=1000");
	give(&m, TOP_RUNS, runs(1, 20));
	assert_int_equal(json_array_size(m.lists[TOP_RUNS].rows), 1);
	assert_int_equal(selected(&m), 19);
}

static void s_sorts_by_the_next_key(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_JOBS);
	press(&m, "s");
	expect_path(&m, LIVE "&limit=1000");
	give(&m, TOP_JOBS, jobs(1, 3, NULL));
	assert_int_equal(selected(&m), 3); /* job-001 is the last one */
	press(&m, "ssss");
	expect_path(&m, LIVE "&limit=200");
}

static void r_and_p_apply_to_the_selected_or_the_marked_rows(void **state)
{
	AUTO_DONE(top_model) m;
	char path[100];

	(void)state;
	top_model_init(&m, TOP_JOBS);
	give(&m, TOP_JOBS, jobs(1, 5, NULL));
	press(&m, "r");
	assert_int_equal(take(&m, TOP_POST, path, sizeof path), 1);
	assert_string_equal(path, "/v1/jobs/1/run");
	press(&m, "p");
	assert_int_equal(take(&m, TOP_POST, path, sizeof path), 1);
	assert_string_equal(path, "/v1/jobs/1/pause");
	press(&m, "jp");
	take(&m, TOP_POST, path, sizeof path);
	assert_string_equal(path, "/v1/jobs/2/resume"); /* it is paused */
	press(&m, "g  ");
	assert_true(top_model_is_marked(&m, json_array_get(m.lists[TOP_JOBS].rows, 0)));
	press(&m, "r");
	assert_int_equal(take(&m, TOP_POST, NULL, 0), 2);
	press(&m, "g "); /* unmarks */
	assert_int_equal(m.lists[TOP_JOBS].marks.n, 1);
	top_keys_press(&m, TOP_KEY_ESCAPE);
	assert_int_equal(m.lists[TOP_JOBS].marks.n, 0);
}

static void a_cancellation_needs_a_yes(void **state)
{
	AUTO_DONE(top_model) m;
	char path[100];

	(void)state;
	top_model_init(&m, TOP_RUNS);
	give(&m, TOP_RUNS, runs(1, 5));
	press(&m, "x");
	assert_int_equal(m.mode, TOP_MODE_ASK);
	assert_string_equal(m.question, "[y/N] cancel run sync#5?");
	press(&m, "n");
	assert_int_equal(take(&m, TOP_POST, NULL, 0), 0);
	press(&m, "xy");
	assert_int_equal(take(&m, TOP_POST, path, sizeof path), 1);
	assert_string_equal(path, "/v1/runs/5/cancel");
	press(&m, "jx"); /* it has ended */
	assert_int_equal(m.mode, TOP_MODE_LIST);
	assert_string_equal(m.message, "this run has ended");
}

static void views_have_their_own_selection(void **state)
{
	AUTO_DONE(top_model) m;
	char path[100];

	(void)state;
	top_model_init(&m, TOP_JOBS);
	give(&m, TOP_JOBS, jobs(1, 5, NULL));
	press(&m, "jj2");
	assert_int_equal(m.view, TOP_RUNS);
	give(&m, TOP_RUNS, runs(1, 5));
	press(&m, "1");
	assert_int_equal(selected(&m), 3);
	press(&m, "o");
	assert_int_equal(m.view, TOP_RUNS);
	expect_path(&m, "/v1/runs?planned=false&job=3&limit=200");
	top_keys_press(&m, TOP_KEY_ESCAPE);
	expect_path(&m, "/v1/runs?planned=false&limit=200");
	top_keys_press(&m, TOP_KEY_TAB);
	expect_path(&m, "/v1/queues");
	press(&m, "p"); /* not for queues */
	assert_non_null(strstr(m.message, "only jobs can be paused"));
	top_keys_press(&m, TOP_KEY_BACK_TAB);
	top_keys_press(&m, TOP_KEY_BACK_TAB);
	take(&m, TOP_LOG, NULL, 0);
	press(&m, "l");
	assert_int_equal(take(&m, TOP_LOG, path, sizeof path), 1);
	assert_int_equal(m.log_run, 1003);
	press(&m, "q");
	assert_int_equal(take(&m, TOP_LOG_END, NULL, 0), 1);
	press(&m, "q");
	assert_int_equal(take(&m, TOP_QUIT, NULL, 0), 1);
}

static void output_is_joined_to_lines_and_bounded(void **state)
{
	AUTO_DONE(top_model) m;
	AUTO_DONE(buf) line = {};

	(void)state;
	top_model_init(&m, TOP_JOBS);
	give(&m, TOP_JOBS, jobs(1, 1, NULL));
	press(&m, "l");
	top_model_output(&m, "a\tb\nhal", 7);
	top_model_output(&m, "f\n", 2);
	assert_int_equal(m.text.lines.n, 2);
	assert_string_equal(m.text.lines.v[0], "a       b");
	assert_string_equal(m.text.lines.v[1], "half");
	assert_false(m.text.open_line);
	for (int i = 0; i < 20000; i++)
		top_model_output(&m, "some line\n", 10);
	assert_true(m.text.lines.n <= TOP_TEXT_LINES);
	assert_true(m.text.cut);
	assert_true(m.text.at_end);
	assert_int_equal(m.text.first, m.text.lines.n - 22);
	press(&m, "k"); /* new output no longer scrolls the text */
	assert_false(m.text.at_end);
	for (int i = 0; i < 1000; i++)
		buf_str(&line, "0123456789äöü");
	for (int i = 0; i < 1000; i++)
		top_model_output(&m, line.data, line.len);
	assert_true(m.text.bytes <= TOP_TEXT_BYTES);
	for (size_t i = 0; i < m.text.lines.n; i++) {
		assert_true(strlen(m.text.lines.v[i]) <= 2 * TOP_LINE_BYTES);
		assert_true(text_utf8_valid(m.text.lines.v[i], strlen(m.text.lines.v[i])));
	}
}

static void the_connection_is_reported(void **state)
{
	AUTO_DONE(top_model) m;

	(void)state;
	top_model_init(&m, TOP_JOBS);
	m.now = 10 * USEC_SEC;
	top_model_up(&m);
	assert_null(m.message);
	top_model_down(&m, "gone");
	m.now = 20 * USEC_SEC;
	top_model_down(&m, "still gone");
	assert_int_equal(m.down_since, 10 * USEC_SEC);
	top_model_up(&m);
	assert_int_equal(m.down_since, 0);
	assert_string_equal(m.message, "connected to the daemon again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_move_the_selection_within_the_list),
		cmocka_unit_test(a_smaller_screen_keeps_the_selected_row_visible),
		cmocka_unit_test(an_update_keeps_the_selected_row),
		cmocka_unit_test(moving_beyond_a_page_loads_the_next_one),
		cmocka_unit_test(the_daemon_searches_jobs),
		cmocka_unit_test(runs_are_searched_in_the_page),
		cmocka_unit_test(s_sorts_by_the_next_key),
		cmocka_unit_test(r_and_p_apply_to_the_selected_or_the_marked_rows),
		cmocka_unit_test(a_cancellation_needs_a_yes),
		cmocka_unit_test(views_have_their_own_selection),
		cmocka_unit_test(output_is_joined_to_lines_and_bounded),
		cmocka_unit_test(the_connection_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
