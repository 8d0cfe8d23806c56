/* SPDX-License-Identifier: Apache-2.0 */
/* Draws with ncurses. Every text was escaped before it arrives here. */
#include "jobctl/top/top_screen.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/table.h"
#include "jobctl/render/words.h"
#include "jobctl/top/top_model.h"
#include "jobctl/top/top_rows.h"
#include <curses.h>
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_COLUMNS 9 /* " 12:34:56" */
#define CLOCK_SHOWN 60  /* columns of a terminal that has room for it */
#define MARK_WIDTH 2 /* columns before a row: mark and blank */

struct top_screen {
	SCREEN *screen;
	bool colour;
	bool utf8;
};

bool top_screen_open(bool colour, struct top_screen **ret, struct err *e)
{
	AUTO(top_screen) *s = xcalloc(1, sizeof *s);
	const char *term = getenv("TERM");

	setlocale(LC_CTYPE, "");
	s->screen = newterm(NULL, stdout, stdin);
	if (!s->screen)
		return err_set(e, ERR_INVALID,
			"the type of the terminal, '%s', is not known; set TERM, or use "
			"'jobctl top -b'",
			term ? term : "");
	s->utf8 = MB_CUR_MAX > 1;
	s->colour = colour && has_colors() && start_color() == OK;
	if (s->colour) {
		use_default_colors();
		for (short i = 1; i < 8; i++)
			init_pair(i, i, -1);
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(100);
	curs_set(0);
	*ret = STEAL(s);
	return true;
}

void top_screen_free(struct top_screen *s)
{
	if (!s)
		return;
	if (s->screen) {
		endwin();
		delscreen(s->screen);
	}
	free(s);
}

void top_screen_suspend(struct top_screen *s)
{
	(void)s;
	endwin();
}

void top_screen_resume(struct top_screen *s)
{
	(void)s;
	clearok(curscr, TRUE);
	refresh();
}

void top_screen_size(struct top_screen *s, int *ret_lines, int *ret_columns)
{
	struct winsize size;

	(void)s;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col &&
		is_term_resized(size.ws_row, size.ws_col))
		resizeterm(size.ws_row, size.ws_col);
	*ret_lines = LINES;
	*ret_columns = COLS;
}

/* ---- keys ---- */

bool top_screen_key(struct top_screen *s, int *ret)
{
	static const int keys[][2] = {{KEY_UP, TOP_KEY_UP}, {KEY_DOWN, TOP_KEY_DOWN},
		{KEY_LEFT, TOP_KEY_LEFT}, {KEY_RIGHT, TOP_KEY_RIGHT}, {KEY_PPAGE, TOP_KEY_PAGE_UP},
		{KEY_NPAGE, TOP_KEY_PAGE_DOWN}, {KEY_HOME, TOP_KEY_HOME}, {KEY_END, TOP_KEY_END},
		{KEY_ENTER, TOP_KEY_ENTER}, {KEY_BTAB, TOP_KEY_BACK_TAB},
		{KEY_BACKSPACE, TOP_KEY_BACKSPACE}};
	static const int controls[][2] = {{'\r', TOP_KEY_ENTER}, {'\n', TOP_KEY_ENTER},
		{'\t', TOP_KEY_TAB}, {27, TOP_KEY_ESCAPE}, {8, TOP_KEY_BACKSPACE},
		{127, TOP_KEY_BACKSPACE}};
	wint_t c;
	int kind = get_wch(&c);

	(void)s;
	if (kind == ERR)
		return false;
	*ret = 0;
	for (size_t i = 0; kind == KEY_CODE_YES && i < ELEMENTS(keys); i++)
		if ((int)c == keys[i][0])
			*ret = keys[i][1];
	if (kind == KEY_CODE_YES)
		return true;
	*ret = (int)c;
	for (size_t i = 0; i < ELEMENTS(controls); i++)
		if ((int)c == controls[i][0])
			*ret = controls[i][1];
	return true;
}

/* ---- lines ---- */

/* Without UTF-8 other characters than ASCII become '?'. */
static void put_bytes(const struct top_screen *s, const char *text, size_t len)
{
	for (size_t i = 0; !s->utf8 && i < len; i++)
		if ((unsigned char)text[i] < 0x80)
			addch((chtype)text[i]);
		else if (((unsigned char)text[i] & 0xc0) == 0xc0)
			addch('?');
	if (s->utf8)
		addnstr(text, (int)len);
}

/* The table writes colours as escape sequences of the form ESC [ 3 N m and ESC [ 0 m. */
static size_t apply_colour(const struct top_screen *s, const char *text, attr_t base)
{
	size_t len = strcspn(text, "m");

	attrset(base);
	if (s->colour && text[2] == '3' && text[3] >= '1' && text[3] <= '7')
		attrset(base | COLOR_PAIR(text[3] - '0'));
	return len + (text[len] == 'm');
}

/* Writes one line, cut at 'columns', and fills the rest with blanks. */
static void put_line(const struct top_screen *s, int y, int x, const char *text, size_t len,
	int columns, attr_t base)
{
	size_t room = columns > x ? (size_t)(columns - x) : 0;

	attrset(base);
	move(y, x);
	while (len > 0 && room > 0) {
		size_t n = 0, width;
		AUTO_TEXT part = NULL;
		bool all;

		if (*text == '\033') {
			n = apply_colour(s, text, base);
			text += n;
			len -= n;
			continue;
		}
		while (n < len && text[n] != '\033')
			n++;
		part = xstrndup(text, n);
		width = table_text_cut(part, room, &all);
		put_bytes(s, part, width);
		room -= table_text_width(part, width);
		if (!all)
			room = 0;
		text += n;
		len -= n;
	}
	attrset(base);
	if (room > 0)
		printw("%*s", (int)room, "");
	attrset(A_NORMAL);
}

static void put_text_line(const struct top_screen *s, int y, const char *text, int columns,
	attr_t base)
{
	put_line(s, y, 0, text, strlen(text), columns, base);
}

/* ---- title and message ---- */

/* As many of the counts as fit beside the clock. */
static void add_counts(const struct top_model *m, struct buf *out)
{
	static const struct {
		const char *of, *word;
	} counts[] = {{"jobs", "active"}, {"runs", "running"}, {"runs", "queued"}};
	size_t room = (size_t)m->columns - (m->columns < CLOCK_SHOWN ? 0 : CLOCK_COLUMNS);

	if (!m->status)
		return;
	if (json_is_object(json_object_get(m->status, "frozen")))
		buf_str(out, "FROZEN ");
	for (size_t i = 0; i < ELEMENTS(counts); i++) {
		AUTO_TEXT part = xprintf("%s%" PRId64 " %s", i ? ", " : "",
			member_int(json_object_get(m->status, counts[i].of), counts[i].word), counts[i].word);

		if (out->len + strlen(part) > room)
			break;
		buf_str(out, part);
	}
}

static void add_tabs(const struct top_model *m, struct buf *out)
{
	for (size_t i = 0; i < TOP_VIEW_MAX; i++)
		if (m->columns >= 60)
			buf_printf(out, i == m->view ? "[%zu %s] " : " %zu %s  ", i + 1,
				top_views[i].name);
		else if (i == m->view)
			buf_printf(out, "[%s] ", top_views[i].name);
}

/* The filter of the list and the part that is shown. */
static void add_scope(const struct top_model *m, struct buf *out)
{
	const struct top_list *l = &m->lists[m->view];
	const struct top_sort *sort = &top_views[m->view].sorts[l->sort];

	if (m->view == TOP_RUNS && m->runs_of)
		buf_printf(out, "of %s ", m->runs_of_name);
	if (l->search) {
		buf_str(out, "/");
		text_escape(out, l->search, strlen(l->search));
		buf_char(out, ' ');
	}
	if (sort->compare)
		buf_printf(out, "by %s%s ", sort->name,
			l->next_cursor || l->cursors.n ? " within this page" : "");
	if (l->cursors.n || l->next_cursor)
		buf_printf(out, "page %zu%s ", l->cursors.n + 1, l->next_cursor ? ", more" : "");
	if (l->marks.n)
		buf_printf(out, "%zu marked ", l->marks.n);
	if (m->held)
		buf_str(out, "HELD ");
}

static void put_clock(const struct top_screen *s, const struct top_model *m)
{
	time_t t = m->now / USEC_SEC;
	struct tm local;
	char text[16];

	if (m->columns < CLOCK_SHOWN)
		return;
	localtime_r(&t, &local);
	strftime(text, sizeof text, " %H:%M:%S", &local);
	put_line(s, 0, m->columns - (int)strlen(text), text, strlen(text), m->columns, A_REVERSE);
}

static void draw_title(const struct top_screen *s, const struct top_model *m)
{
	AUTO_DONE(buf) line = {};
	char ago[WORDS_MAX];
	attr_t attr = A_REVERSE;

	if (m->down_since) {
		buf_printf(&line, "NO CONNECTION for %s: ",
			words_duration((m->now - m->down_since) / USEC_SEC * USEC_SEC, ago));
		text_escape(&line, m->down_why, strlen(m->down_why));
		attr |= A_BOLD;
	} else if (m->mode == TOP_MODE_TEXT || m->mode == TOP_MODE_LOG) {
		buf_printf(&line, "[%s] ", m->text.title);
		if (m->text.lines.n > (size_t)top_model_text_lines(m))
			buf_printf(&line, "line %zu of %zu ", m->text.first + 1, m->text.lines.n);
		buf_str(&line, m->text.cut ? "(older lines were dropped) " : "");
		buf_str(&line, m->mode == TOP_MODE_LOG && m->text.at_end ? "following" : "");
	} else {
		add_tabs(m, &line);
		add_scope(m, &line);
		add_counts(m, &line);
	}
	put_text_line(s, 0, line.data ? line.data : "", m->columns, attr);
	put_clock(s, m);
}

static void draw_bottom(const struct top_screen *s, const struct top_model *m)
{
	static const char hints[] = "? help  q quit  Enter details  l log  w why  r run  p pause  "
				    "x cancel  / search  s sort  Space mark";
	AUTO_DONE(buf) line = {};
	attr_t attr = A_NORMAL;

	if (m->mode == TOP_MODE_SEARCH) {
		buf_str(&line, "search: ");
		text_escape(&line, m->typed.data ? m->typed.data : "", m->typed.len);
		buf_char(&line, '_');
	} else if (m->mode == TOP_MODE_ASK) {
		text_escape(&line, m->question, strlen(m->question));
		attr = A_BOLD;
	} else if (m->message && m->now < m->message_until) {
		text_escape(&line, m->message, strlen(m->message));
		attr = A_BOLD;
	} else if (m->mode == TOP_MODE_LIST) {
		buf_str(&line, hints);
	} else {
		buf_str(&line, "q back  j k PgUp PgDn scroll  G end");
	}
	put_text_line(s, m->lines - 1, line.data, m->columns, attr);
}

/* ---- list ---- */

/* Lays out all rows of the page, so that the columns do not move while scrolling. */
static void lay_out(const struct top_screen *s, const struct top_model *m, struct buf *out)
{
	const json_t *rows = m->lists[m->view].rows, *row;
	struct ctl c = {.format = FORMAT_TABLE,
		.terminal = true,
		.colour = s->colour,
		.width = m->columns > MARK_WIDTH ? m->columns - MARK_WIDTH : 1,
		.now = m->now};
	struct rows r;
	size_t i;

	rows_begin(&r, &c, top_views[m->view].rows);
	json_array_foreach(rows, i, row)
		rows_add(&r, row);
	table_flush(&r.table, out);
	table_done(&r.table);
	buf_done(&r.out);
}

static void draw_row(const struct top_screen *s, const struct top_model *m, int y, size_t i,
	const char *line, size_t len)
{
	const struct top_list *l = &m->lists[m->view];
	attr_t attr = i == l->selected ? A_REVERSE : m->down_since ? A_DIM : A_NORMAL;
	bool marked = l->marks.n && top_model_is_marked(m, json_array_get(l->rows, i));

	put_line(s, y, 0, marked ? "* " : "  ", MARK_WIDTH, m->columns, attr);
	put_line(s, y, MARK_WIDTH, line, len, m->columns, attr);
}

static void draw_list(const struct top_screen *s, const struct top_model *m)
{
	const struct top_list *l = &m->lists[m->view];
	AUTO_DONE(buf) text = {};
	int header = m->lines >= 4, y = 1 + header;
	const char *at;
	size_t n = 0;

	if (json_array_size(l->rows) == 0) {
		put_text_line(s, 1, !l->rows ? "  loading" : "  none", m->columns, A_NORMAL);
		return;
	}
	lay_out(s, m, &text);
	for (at = text.data; *at; n++) {
		size_t len = strcspn(at, "\n");

		if (n == 0 && header)
			put_line(s, 1, MARK_WIDTH, at, len, m->columns, A_BOLD);
		else if (n > l->first && y < m->lines - 1)
			draw_row(s, m, y++, n - 1, at, len);
		at += len + (at[len] == '\n');
	}
}

static void draw_text(const struct top_screen *s, const struct top_model *m)
{
	for (int y = 0; y < top_model_text_lines(m); y++) {
		size_t i = m->text.first + (size_t)y;
		const char *line = i < m->text.lines.n ? m->text.lines.v[i] : "";
		bool all;

		put_text_line(s, y + 1, line + table_text_cut(line, m->text.column, &all),
			m->columns, A_NORMAL);
	}
}

void top_screen_draw(struct top_screen *s, const struct top_model *m)
{
	erase();
	draw_title(s, m);
	if (m->mode == TOP_MODE_TEXT || m->mode == TOP_MODE_LOG)
		draw_text(s, m);
	else
		draw_list(s, m);
	if (m->lines > 1)
		draw_bottom(s, m);
	refresh();
}
