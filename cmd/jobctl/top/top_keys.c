/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys and their actions in each mode. */
#include "jobctl/top/top_keys.h"

#include "base/auto.h"
#include "jobctl/follow.h"
#include "jobctl/member.h"
#include "jobctl/ref.h"
#include "jobctl/top/top_model.h"
#include <inttypes.h>
#include <string.h>

#define SEARCH_MAX 128 /* bytes */
#define SIDE_STEP 8    /* columns of a step to the side */

/* ---- commands ---- */

static void push(struct top_model *m, struct top_command c)
{
	m->commands = xgrow(m->commands, m->n_commands, sizeof *m->commands);
	m->commands[m->n_commands++] = c;
}

static void refresh(struct top_model *m)
{
	push(m, (struct top_command){.verb = TOP_REFRESH});
}

static void ask_later(struct top_model *m, struct top_command c)
{
	m->asked = xgrow(m->asked, m->n_asked, sizeof *m->asked);
	m->asked[m->n_asked++] = c;
}

static void key_quit(struct top_model *m)
{
	push(m, (struct top_command){.verb = TOP_QUIT});
}

static void key_help(struct top_model *m)
{
	AUTO_DONE(buf) text = {};

	top_keys_help(&text);
	top_model_show_text(m, "keys", text.data);
}

/* ---- moving ---- */

static void other_page(struct top_model *m, size_t selected)
{
	struct top_list *l = &m->lists[m->view];

	l->selected = selected;
	l->first = 0;
	json_decref(l->rows);
	l->rows = NULL;
	refresh(m);
}

static void next_page(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];

	if (!l->next_cursor)
		return;
	strv_take(&l->cursors, STEAL(l->next_cursor));
	other_page(m, 0);
}

static void previous_page(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];

	if (l->cursors.n == 0)
		return;
	free(l->cursors.v[--l->cursors.n]);
	l->cursors.v[l->cursors.n] = NULL;
	other_page(m, SIZE_MAX); /* its last row */
}

/* Moves the selection. Beyond either end of the page the neighbouring page is loaded. */
static void move(struct top_model *m, int64_t by)
{
	struct top_list *l = &m->lists[m->view];
	int64_t n = (int64_t)json_array_size(l->rows), at = (int64_t)l->selected + by;

	if (!l->rows)
		return;
	if (at >= n && (int64_t)l->selected == n - 1)
		next_page(m);
	else if (at < 0 && l->selected == 0)
		previous_page(m);
	else
		l->selected = at < 0 ? 0 : at >= n ? (size_t)(n > 0 ? n - 1 : 0) : (size_t)at;
	top_model_resize(m, m->lines, m->columns);
}

static void key_down(struct top_model *m)
{
	move(m, 1);
}

static void key_up(struct top_model *m)
{
	move(m, -1);
}

static void key_page_down(struct top_model *m)
{
	move(m, top_model_list_lines(m));
}

static void key_page_up(struct top_model *m)
{
	move(m, -(int64_t)top_model_list_lines(m));
}

static void key_home(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];

	l->selected = l->first = 0;
	if (l->cursors.n == 0)
		return;
	strv_done(&l->cursors);
	other_page(m, 0);
}

static void key_end(struct top_model *m)
{
	move(m, INT32_MAX);
	if (m->lists[m->view].next_cursor)
		top_model_say(m, "end of this page; j or PgDn loads the next page");
}

/* ---- views ---- */

static void show_view(struct top_model *m, enum top_view view)
{
	m->view = view;
	m->mode = TOP_MODE_LIST;
	top_model_resize(m, m->lines, m->columns);
	refresh(m);
}

static void key_jobs(struct top_model *m)
{
	show_view(m, TOP_JOBS);
}

static void key_runs(struct top_model *m)
{
	show_view(m, TOP_RUNS);
}

static void key_queues(struct top_model *m)
{
	show_view(m, TOP_QUEUES);
}

static void key_nodes(struct top_model *m)
{
	show_view(m, TOP_NODES);
}

static void key_tab(struct top_model *m)
{
	show_view(m, (m->view + 1) % TOP_VIEW_MAX);
}

static void key_back_tab(struct top_model *m)
{
	show_view(m, (m->view + TOP_VIEW_MAX - 1) % TOP_VIEW_MAX);
}

static void first_page(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];

	strv_done(&l->cursors);
	other_page(m, 0);
}

static void key_sort(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];
	const struct top_sort *sorts = top_views[m->view].sorts;

	l->sort = sorts[l->sort + 1].name ? l->sort + 1 : 0;
	first_page(m);
	top_model_say(m, "sorted by %s", sorts[l->sort].name);
}

static void key_all(struct top_model *m)
{
	if (m->view != TOP_JOBS)
		return;
	m->all_jobs = !m->all_jobs;
	first_page(m);
	top_model_say(m, m->all_jobs ? "all jobs" : "without finished and cancelled jobs");
}

static void key_hold(struct top_model *m)
{
	m->held = !m->held;
	top_model_say(m, m->held ? "updates are held; u continues them" : "updates continue");
	if (!m->held)
		refresh(m);
}

static void key_escape(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];
	bool narrowed = l->search || (m->view == TOP_RUNS && m->runs_of);

	free(STEAL(l->search));
	strv_done(&l->marks);
	if (m->view == TOP_RUNS) {
		m->runs_of = 0;
		free(STEAL(m->runs_of_name));
	}
	free(STEAL(m->message));
	if (narrowed)
		first_page(m);
}

static void key_search(struct top_model *m)
{
	buf_clear(&m->typed);
	m->mode = TOP_MODE_SEARCH;
}

/* ---- rows ---- */

static int64_t job_of(const struct top_model *m, const json_t *row)
{
	return member_int(row, m->view == TOP_RUNS ? "job" : "id");
}

static bool is_job_or_run(struct top_model *m, const json_t *row)
{
	if (m->view != TOP_JOBS && m->view != TOP_RUNS)
		top_model_say(m, "this key is for jobs and runs (1 or 2)");
	return row && (m->view == TOP_JOBS || m->view == TOP_RUNS);
}

/* Queues and nodes have few members: they are shown as they are. */
static void show_members(struct top_model *m, const json_t *row)
{
	AUTO_DONE(buf) text = {};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)row, key, value) {
		AUTO_TEXT shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		buf_printf(&text, "%-20s", key);
		text_escape(&text, shown, strlen(shown));
		buf_char(&text, '\n');
	}
	top_model_show_text(m, top_views[m->view].name, text.data ? text.data : "");
}

static void key_enter(struct top_model *m)
{
	const json_t *row = top_model_selected(m);
	bool is_run = m->view == TOP_RUNS;

	if (!row)
		return;
	if (m->view != TOP_JOBS && !is_run) {
		show_members(m, row);
		return;
	}
	push(m, (struct top_command){.verb = TOP_SHOW,
			.is_run = is_run,
			.id = member_int(row, "id"),
			.path = xprintf("%s/%" PRId64, top_views[m->view].path,
				member_int(row, "id"))});
}

static void key_why(struct top_model *m)
{
	const json_t *row = top_model_selected(m);
	AUTO_DONE(buf) path = {};

	if (!is_job_or_run(m, row))
		return;
	buf_printf(&path, "/v1/jobs/%" PRId64 "/why?limit=10", job_of(m, row));
	if (m->view == TOP_RUNS)
		buf_printf(&path, "&run=%" PRId64, member_int(row, "id"));
	push(m, (struct top_command){.verb = TOP_WHY,
			.is_run = m->view == TOP_RUNS,
			.path = buf_steal(&path)});
}

static void key_log(struct top_model *m)
{
	const json_t *row = top_model_selected(m);
	int64_t run;

	if (!is_job_or_run(m, row))
		return;
	run = member_int(m->view == TOP_RUNS ? row : json_object_get(row, "last_run"), "id");
	if (!run) {
		top_model_say(m, "this job has no run that has started; r runs it");
		return;
	}
	top_model_show_text(m, "output", "");
	m->text.at_end = true;
	m->mode = TOP_MODE_LOG;
	m->log_run = run;
	push(m, (struct top_command){.verb = TOP_LOG, .id = run});
}

static void key_runs_of(struct top_model *m)
{
	const json_t *row = top_model_selected(m);
	AUTO_DONE(buf) name = {};

	if (m->view != TOP_JOBS || !row)
		return;
	ref_of_job(row, &name);
	m->runs_of = member_int(row, "id");
	free(m->runs_of_name);
	m->runs_of_name = buf_steal(&name);
	m->view = TOP_RUNS;
	first_page(m);
}

static void key_mark(struct top_model *m)
{
	struct strv *marks = &m->lists[m->view].marks;
	const json_t *row = top_model_selected(m);
	AUTO_DONE(buf) key = {};

	if (!is_job_or_run(m, row))
		return;
	top_rows_key(row, m->view, &key);
	for (size_t i = 0; i < marks->n; i++)
		if (text_equal(marks->v[i], key.data)) {
			free(marks->v[i]);
			memmove(marks->v + i, marks->v + i + 1, (marks->n - i) * sizeof *marks->v);
			marks->n--;
			key_down(m);
			return;
		}
	strv_add(marks, key.data);
	if (m->lists[m->view].selected + 1 < json_array_size(m->lists[m->view].rows))
		key_down(m);
}

/* ---- actions on the marked rows, or on the selected one ---- */

typedef void action_fn(struct top_model *m, const json_t *row);

static size_t each_chosen(struct top_model *m, action_fn *fn)
{
	const struct top_list *l = &m->lists[m->view];
	const json_t *row;
	size_t i, n = 0;

	json_array_foreach(l->rows, i, row)
		if (l->marks.n ? top_model_is_marked(m, row) : i == l->selected) {
			if (fn)
				fn(m, row);
			n++;
		}
	return n;
}

static struct top_command post(const struct top_model *m, const json_t *row, const char *what,
	const char *done)
{
	AUTO_DONE(buf) words = {};

	if (m->view == TOP_RUNS && text_equal(what, "cancel")) {
		ref_of_run(row, &words);
		return (struct top_command){.verb = TOP_POST,
			.path = xprintf("/v1/runs/%" PRId64 "/cancel", member_int(row, "id")),
			.said = xprintf("%s run %s", done, words.data)};
	}
	if (m->view == TOP_RUNS)
		buf_printf(&words, "%" PRId64, member_int(row, "job"));
	else
		ref_job_words(row, &words);
	return (struct top_command){.verb = TOP_POST,
		.path = xprintf("/v1/jobs/%" PRId64 "/%s", job_of(m, row), what),
		.said = xprintf("%s job %s", done, words.data)};
}

static void run_row(struct top_model *m, const json_t *row)
{
	push(m, post(m, row, "run", "queued a run of"));
}

static void key_run(struct top_model *m)
{
	if (is_job_or_run(m, top_model_selected(m)))
		each_chosen(m, run_row);
}

static void pause_row(struct top_model *m, const json_t *row)
{
	bool active = text_equal(member_text(row, "state"), "active");

	push(m, post(m, row, active ? "pause" : "resume", active ? "paused" : "resumed"));
}

static void key_pause(struct top_model *m)
{
	if (m->view == TOP_JOBS)
		each_chosen(m, pause_row);
	else
		top_model_say(m, "only jobs can be paused (1 shows the jobs)");
}

static void cancel_row(struct top_model *m, const json_t *row)
{
	ask_later(m, post(m, row, "cancel", "cancelled"));
}

static void key_cancel(struct top_model *m)
{
	const json_t *row = top_model_selected(m);
	AUTO_DONE(buf) name = {};
	size_t n;

	if (!is_job_or_run(m, row))
		return;
	if (m->view == TOP_RUNS && m->lists[m->view].marks.n == 0 && follow_run_is_final(row)) {
		top_model_say(m, "this run has ended");
		return;
	}
	n = each_chosen(m, cancel_row);
	if (n == 0)
		return;
	if (m->view == TOP_RUNS)
		ref_of_run(row, &name);
	else
		ref_of_job(row, &name);
	free(m->question);
	m->question = n > 1 ? xprintf("[y/N] cancel %zu %s?", n, top_views[m->view].name)
			    : xprintf("[y/N] cancel %s %s?",
				      m->view == TOP_RUNS ? "run" : "job", name.data);
	m->mode = TOP_MODE_ASK;
}

/* ---- text ---- */

static void scroll(struct top_model *m, int64_t by)
{
	int64_t at = (int64_t)m->text.first + by;

	m->text.first = at < 0 ? 0 : (size_t)at;
	m->text.at_end = false;
	top_model_resize(m, m->lines, m->columns);
}

static void text_down(struct top_model *m)
{
	scroll(m, 1);
}

static void text_up(struct top_model *m)
{
	scroll(m, -1);
}

static void text_page_down(struct top_model *m)
{
	scroll(m, top_model_text_lines(m));
}

static void text_page_up(struct top_model *m)
{
	scroll(m, -(int64_t)top_model_text_lines(m));
}

static void text_home(struct top_model *m)
{
	m->text.column = 0;
	scroll(m, -INT32_MAX);
}

static void text_end(struct top_model *m)
{
	scroll(m, INT32_MAX);
}

static void text_left(struct top_model *m)
{
	m->text.column = m->text.column > SIDE_STEP ? m->text.column - SIDE_STEP : 0;
}

static void text_right(struct top_model *m)
{
	if (m->text.column < TOP_LINE_BYTES)
		m->text.column += SIDE_STEP;
}

static void text_close(struct top_model *m)
{
	if (m->mode == TOP_MODE_LOG)
		push(m, (struct top_command){.verb = TOP_LOG_END});
	m->log_run = 0;
	m->mode = TOP_MODE_LIST;
	refresh(m);
}

/* ---- tables ---- */

struct key_row {
	int keys[3];       /* 0: none */
	void (*fn)(struct top_model *m);
	const char *names; /* in the help; NULL: not listed */
	const char *help;
};

static const struct key_row list_keys[] = {
	{{'j', TOP_KEY_DOWN}, key_down, "j k, Up Down", "select a row; at an end the next page is loaded"},
	{{'k', TOP_KEY_UP}, key_up, NULL, NULL},
	{{TOP_KEY_PAGE_DOWN, 'F' - '@'}, key_page_down, "PgUp PgDn", "move by a screen"},
	{{TOP_KEY_PAGE_UP, 'B' - '@'}, key_page_up, NULL, NULL},
	{{TOP_KEY_HOME, 'g'}, key_home, "g G, Home End", "first row of all, last row of the page"},
	{{TOP_KEY_END, 'G'}, key_end, NULL, NULL},
	{{TOP_KEY_TAB}, key_tab, "Tab, 1 2 3 4", "jobs, runs, queues, nodes"},
	{{TOP_KEY_BACK_TAB}, key_back_tab, NULL, NULL},
	{{'1'}, key_jobs, NULL, NULL},
	{{'2'}, key_runs, NULL, NULL},
	{{'3'}, key_queues, NULL, NULL},
	{{'4'}, key_nodes, NULL, NULL},
	{{TOP_KEY_ENTER}, key_enter, "Enter", "show details"},
	{{'l'}, key_log, "l", "follow the output of the run, or of the job's last run"},
	{{'w'}, key_why, "w", "explain why a job or run waits, ran or did not run"},
	{{'o'}, key_runs_of, "o", "show the runs of the selected job only"},
	{{'r'}, key_run, "r", "run the job now"},
	{{'p'}, key_pause, "p", "pause the job, or resume it"},
	{{'x'}, key_cancel, "x", "cancel the job or run; asks first"},
	{{' '}, key_mark, "Space", "mark a row; r, p and x then apply to all marked rows"},
	{{'/'}, key_search, "/", "search; for jobs a part of the name, or a pattern with * and ?"},
	{{TOP_KEY_ESCAPE}, key_escape, "Esc", "end the search, remove marks"},
	{{'s'}, key_sort, "s", "sort by another column"},
	{{'a'}, key_all, "a", "show or hide finished and cancelled jobs"},
	{{'u'}, key_hold, "u", "hold the updates, or continue them"},
	{{'?', 'h'}, key_help, "?", "this help"},
	{{'q'}, key_quit, "q", "leave this program, or a text"},
};
static const struct key_row text_keys[] = {
	{{'j', TOP_KEY_DOWN, TOP_KEY_ENTER}, text_down, NULL, NULL},
	{{'k', TOP_KEY_UP}, text_up, NULL, NULL},
	{{TOP_KEY_PAGE_DOWN, ' ', 'F' - '@'}, text_page_down, NULL, NULL},
	{{TOP_KEY_PAGE_UP, 'b', 'B' - '@'}, text_page_up, NULL, NULL},
	{{TOP_KEY_HOME, 'g'}, text_home, NULL, NULL},
	{{TOP_KEY_END, 'G'}, text_end, "G", "in the output: go to the end and stay there"},
	{{TOP_KEY_LEFT}, text_left, "Left Right", "in a text: move to the side"},
	{{TOP_KEY_RIGHT}, text_right, NULL, NULL},
	{{'q', TOP_KEY_ESCAPE}, text_close, NULL, NULL},
	{{'?', 'h'}, text_close, NULL, NULL},
};

static void put_help(const struct key_row *v, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].names)
			buf_printf(out, "%-15s%s\n", v[i].names, v[i].help);
}

void top_keys_help(struct buf *out)
{
	put_help(list_keys, ELEMENTS(list_keys), out);
	put_help(text_keys, ELEMENTS(text_keys), out);
}

static void press(struct top_model *m, const struct key_row *v, size_t n, int key)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ELEMENTS(v[i].keys); k++)
			if (key && v[i].keys[k] == key) {
				v[i].fn(m);
				return;
			}
}

/* ---- typing ---- */

static void append_char(struct buf *out, int c)
{
	if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		if (c < 0x10000) {
			buf_char(out, (char)(0xe0 | c >> 12));
		} else {
			buf_char(out, (char)(0xf0 | c >> 18));
			buf_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

static void erase_char(struct buf *b)
{
	while (b->len > 0 && ((unsigned char)b->data[b->len - 1] & 0xc0) == 0x80)
		b->data[--b->len] = '\0';
	if (b->len > 0)
		b->data[--b->len] = '\0';
}

static void type_search(struct top_model *m, int key)
{
	struct top_list *l = &m->lists[m->view];

	if (key == TOP_KEY_BACKSPACE)
		erase_char(&m->typed);
	else if (key == TOP_KEY_ESCAPE)
		m->mode = TOP_MODE_LIST;
	else if (key >= ' ' && key != 0x7f && key < 0x110000 && m->typed.len < SEARCH_MAX)
		append_char(&m->typed, key);
	if (key != TOP_KEY_ENTER)
		return;
	m->mode = TOP_MODE_LIST;
	free(l->search);
	l->search = m->typed.len ? xstrdup(m->typed.data) : NULL;
	first_page(m);
}

static void answer_question(struct top_model *m, int key)
{
	bool yes = key == 'y' || key == 'Y';

	for (size_t i = 0; i < m->n_asked; i++)
		if (yes)
			push(m, m->asked[i]);
		else
			top_command_done(&m->asked[i]);
	m->n_asked = 0;
	m->mode = TOP_MODE_LIST;
	if (yes)
		strv_done(&m->lists[m->view].marks);
	else
		top_model_say(m, "nothing was done");
}

void top_keys_press(struct top_model *m, int key)
{
	switch (m->mode) {
	case TOP_MODE_SEARCH:
		type_search(m, key);
		break;
	case TOP_MODE_ASK:
		answer_question(m, key);
		break;
	case TOP_MODE_LIST:
		press(m, list_keys, ELEMENTS(list_keys), key);
		break;
	default:
		press(m, text_keys, ELEMENTS(text_keys), key);
	}
}
