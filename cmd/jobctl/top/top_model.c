/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps lists, texts and messages; applies updates without moving the selected row. */
#include "jobctl/top/top_model.h"

#include "base/auto.h"
#include "jobctl/api.h"
#include "jobctl/member.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_TIME (8 * USEC_SEC)

void top_command_done(struct top_command *c)
{
	free(c->path);
	free(c->said);
	*c = (struct top_command){};
}

void top_model_init(struct top_model *m, enum top_view view)
{
	*m = (struct top_model){.view = view, .lines = 24, .columns = 80};
}

static void list_done(struct top_list *l)
{
	json_decref(l->rows);
	strv_done(&l->cursors);
	strv_done(&l->marks);
	free(l->next_cursor);
	free(l->search);
}

static void text_done(struct top_text *t)
{
	free(t->title);
	strv_done(&t->lines);
	*t = (struct top_text){};
}

void top_model_done(struct top_model *m)
{
	for (size_t i = 0; i < TOP_VIEW_MAX; i++)
		list_done(&m->lists[i]);
	text_done(&m->text);
	free(m->runs_of_name);
	buf_done(&m->typed);
	free(m->question);
	free(m->message);
	json_decref(m->status);
	free(m->down_why);
	for (size_t i = m->next_command; i < m->n_commands; i++)
		top_command_done(&m->commands[i]);
	for (size_t i = 0; i < m->n_asked; i++)
		top_command_done(&m->asked[i]);
	free(m->commands);
	free(m->asked);
}

/* ---- screen ---- */

int top_model_list_lines(const struct top_model *m)
{
	int n = m->lines - (m->lines >= 4 ? 3 : 2); /* title, header, message */

	return n > 0 ? n : 1;
}

int top_model_text_lines(const struct top_model *m)
{
	return m->lines > 2 ? m->lines - 2 : 1;
}

static void keep_selected_visible(struct top_model *m)
{
	struct top_list *l = &m->lists[m->view];
	size_t n = json_array_size(l->rows), shown = (size_t)top_model_list_lines(m);

	if (!l->rows)
		return; /* the selection is for the page that is being loaded */
	if (l->selected >= n)
		l->selected = n ? n - 1 : 0;
	if (l->first > l->selected)
		l->first = l->selected;
	if (l->selected >= l->first + shown)
		l->first = l->selected - shown + 1;
	if (l->first + shown > n)
		l->first = n > shown ? n - shown : 0;
}

static void text_scroll_to(struct top_model *m, size_t first)
{
	size_t n = m->text.lines.n, shown = (size_t)top_model_text_lines(m);
	size_t last = n > shown ? n - shown : 0;

	m->text.first = first < last ? first : last;
	m->text.at_end = m->text.first == last;
}

void top_model_resize(struct top_model *m, int lines, int columns)
{
	m->lines = lines > 0 ? lines : 1;
	m->columns = columns > 0 ? columns : 1;
	keep_selected_visible(m);
	text_scroll_to(m, m->text.at_end ? SIZE_MAX : m->text.first);
}

/* ---- lists ---- */

const json_t *top_model_selected(const struct top_model *m)
{
	const struct top_list *l = &m->lists[m->view];

	return json_array_get(l->rows, l->selected);
}

static size_t find_key(const struct top_list *l, enum top_view view, const char *key)
{
	const json_t *row;
	size_t i;

	json_array_foreach(l->rows, i, row) {
		AUTO_DONE(buf) own = {};

		top_rows_key(row, view, &own);
		if (text_equal(own.data, key))
			return i;
	}
	return SIZE_MAX;
}

bool top_model_is_marked(const struct top_model *m, const json_t *row)
{
	const struct strv *marks = &m->lists[m->view].marks;
	AUTO_DONE(buf) key = {};

	top_rows_key(row, m->view, &key);
	for (size_t i = 0; i < marks->n; i++)
		if (text_equal(marks->v[i], key.data))
			return true;
	return false;
}

/* The selected row keeps its place on the screen if it still exists. */
void top_model_rows(struct top_model *m, enum top_view view, const json_t *answer)
{
	struct top_list *l = &m->lists[view];
	AUTO_DONE(buf) key = {};
	const json_t *row = json_array_get(l->rows, l->selected);
	bool first_row = l->selected == 0 && l->first == 0;
	size_t found;

	if (row)
		top_rows_key(row, view, &key);
	json_decref(l->rows);
	/* the daemon searches the names of jobs; other lists are searched here */
	l->rows = top_rows_select(answer, view, view == TOP_JOBS ? NULL : l->search, l->sort);
	free(l->next_cursor);
	l->next_cursor = xstrdup(member_text(answer, "next_cursor"));
	found = key.data ? find_key(l, view, key.data) : SIZE_MAX;
	/* a cursor on the first row of the runs stays there, where new runs appear */
	if (found != SIZE_MAX && !(first_row && view == TOP_RUNS)) {
		l->first = l->first + found > l->selected ? l->first + found - l->selected : 0;
		l->selected = found;
	}
	keep_selected_visible(m);
}

void top_model_status(struct top_model *m, const json_t *status)
{
	json_decref(m->status);
	m->status = json_incref((json_t *)status);
}

static void add_job_filter(const struct top_model *m, struct buf *path)
{
	const char *search = m->lists[TOP_JOBS].search;

	if (!m->all_jobs)
		api_query_add(path, "state", "active,paused,suspended");
	if (search) {
		AUTO_TEXT glob = strpbrk(search, "*?") ? xstrdup(search) : xprintf("*%s*", search);

		api_query_add(path, "name", glob);
	}
}

char *top_model_path(const struct top_model *m)
{
	const struct top_list *l = &m->lists[m->view];
	const struct top_view_info *v = &top_views[m->view];
	AUTO_DONE(buf) path = {};

	buf_str(&path, v->path);
	if (m->view == TOP_JOBS)
		add_job_filter(m, &path);
	if (m->view == TOP_RUNS)
		api_query_add(&path, "planned", "false");
	if (m->view == TOP_RUNS && m->runs_of) {
		AUTO_TEXT job = xprintf("%" PRId64, m->runs_of);

		api_query_add(&path, "job", job);
	}
	if (v->paged) {
		AUTO_TEXT limit = xprintf("%d",
			v->sorts[l->sort].compare || (l->search && m->view == TOP_RUNS)
				? TOP_PAGE_SORTED
				: TOP_PAGE);

		api_query_add(&path, "limit", limit);
	}
	if (l->cursors.n)
		api_query_add(&path, "cursor", l->cursors.v[l->cursors.n - 1]);
	return buf_steal(&path);
}

bool top_model_take(struct top_model *m, struct top_command *ret)
{
	if (m->next_command >= m->n_commands) {
		m->next_command = m->n_commands = 0;
		return false;
	}
	*ret = m->commands[m->next_command];
	m->commands[m->next_command++] = (struct top_command){};
	return true;
}

/* ---- texts ---- */

void top_model_show_text(struct top_model *m, const char *title, const char *text)
{
	text_done(&m->text);
	m->text.title = xstrdup(title);
	while (*text) {
		size_t len = strcspn(text, "\n");

		strv_take(&m->text.lines, xstrndup(text, len));
		text += len + (text[len] == '\n');
	}
	m->mode = TOP_MODE_TEXT;
}

static void text_drop_first(struct top_text *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		t->bytes -= strlen(t->lines.v[i]);
		free(t->lines.v[i]);
	}
	memmove(t->lines.v, t->lines.v + n, (t->lines.n - n + 1) * sizeof *t->lines.v);
	t->lines.n -= n;
	t->first = t->first > n ? t->first - n : 0;
	t->cut = true;
}

/* Drops a tenth at a time, so that the memory is not moved for each line. */
static void text_bound(struct top_text *t)
{
	while (t->lines.n > TOP_TEXT_LINES || t->bytes > TOP_TEXT_BYTES)
		text_drop_first(t, t->lines.n / 10 + 1);
}

/* Appends to the last line, or begins a new one. Tabs become blanks. */
static void text_append(struct top_text *t, const char *s, size_t len)
{
	AUTO_DONE(buf) line = {};

	if (t->open_line) {
		buf_str(&line, t->lines.v[t->lines.n - 1]);
		t->bytes -= line.len;
		free(t->lines.v[--t->lines.n]);
		t->lines.v[t->lines.n] = NULL;
	}
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\t')
			do
				buf_char(&line, ' ');
			while (line.len % 8);
		else
			buf_char(&line, s[i]);
	t->bytes += line.len;
	strv_take(&t->lines, buf_steal(&line));
	t->open_line = true;
}

void top_model_output(struct top_model *m, const char *text, size_t len)
{
	bool at_end = m->text.at_end || m->text.lines.n == 0;

	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		if (n > TOP_LINE_BYTES) {
			n = TOP_LINE_BYTES;
			end = NULL;
			while (n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80)
				n--; /* not inside a character */
		}
		text_append(&m->text, text, n);
		if (end || strlen(m->text.lines.v[m->text.lines.n - 1]) >= TOP_LINE_BYTES)
			m->text.open_line = false;
		n += end != NULL;
		text += n;
		len -= n;
		text_bound(&m->text);
	}
	text_scroll_to(m, at_end ? SIZE_MAX : m->text.first);
}

/* ---- messages ---- */

void top_model_say(struct top_model *m, const char *fmt, ...)
{
	va_list ap;

	free(m->message);
	va_start(ap, fmt);
	m->message = xvprintf(fmt, ap);
	va_end(ap);
	m->message_until = m->now + MESSAGE_TIME;
}

void top_model_down(struct top_model *m, const char *why)
{
	if (!m->down_since)
		m->down_since = m->now;
	free(m->down_why);
	m->down_why = xstrdup(why);
}

void top_model_up(struct top_model *m)
{
	if (!m->down_since)
		return;
	m->down_since = 0;
	top_model_say(m, "connected to the daemon again");
}
