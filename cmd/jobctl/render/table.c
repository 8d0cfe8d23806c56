/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out columns using the display widths of characters. */
#include "jobctl/render/table.h"

#include "base/auto.h"
#include "base/buf.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>

#define GAP 2 /* blanks between columns */

/* Decodes one UTF-8 character. The text comes from text_escape(), so it is valid UTF-8. */
static size_t decode_char(const char *s, size_t len, uint32_t *ret)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	if (n > len)
		n = len;
	*ret = n == 1 ? c : c & (0x7fu >> n);
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | ((unsigned char)s[i] & 0x3f);
	return n;
}

/*
 * Display widths other than 1, sorted: an approximation of Unicode's East Asian Width and of
 * combining marks.
 */
static const struct {
	uint32_t first, last;
	unsigned char width;
} ranges[] = {
	{0x0300, 0x036f, 0}, {0x1100, 0x115f, 2}, {0x20d0, 0x20ff, 0}, {0x2e80, 0x303e, 2},
	{0x3041, 0xa4cf, 2}, {0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},
	{0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2},
	{0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
};

static size_t char_width(uint32_t c)
{
	for (size_t i = 0; i < ELEMENTS(ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return ranges[i].width;
	return 1;
}

size_t table_text_width(const char *s, size_t len)
{
	size_t columns = 0;
	uint32_t c;

	while (len > 0) {
		size_t n = decode_char(s, len, &c);

		columns += char_width(c);
		s += n;
		len -= n;
	}
	return columns;
}

size_t table_text_cut(const char *s, size_t columns, bool *ret_all)
{
	size_t len = strlen(s), at = 0, used = 0;
	uint32_t c;

	while (at < len) {
		size_t n = decode_char(s + at, len - at, &c);

		used += char_width(c);
		if (used > columns)
			break;
		at += n;
	}
	*ret_all = at == len;
	return at;
}

const char *table_state_colour(const char *state)
{
	static const struct {
		const char *state, *colour;
	} colours[] = {
		{"active", "\033[32m"}, {"succeeded", "\033[32m"}, {"running", "\033[36m"},
		{"claimed", "\033[36m"}, {"queued", "\033[36m"}, {"failed", "\033[31m"},
		{"timed_out", "\033[31m"}, {"lost", "\033[31m"}, {"suspended", "\033[31m"},
		{"paused", "\033[33m"}, {"skipped", "\033[33m"}, {"expired", "\033[33m"},
		{"cancelled", "\033[33m"},
	};

	for (size_t i = 0; i < ELEMENTS(colours); i++)
		if (strcmp(colours[i].state, state) == 0)
			return colours[i].colour;
	return "";
}

void table_init(struct table *t, const struct table_column *columns, size_t n)
{
	assert(n <= TABLE_COLUMNS_MAX);
	*t = (struct table){.columns = columns, .n = n};
	for (size_t i = 0; i < n; i++)
		t->widths[i] = strlen(columns[i].header);
}

void table_done(struct table *t)
{
	strv_done(&t->cells);
}

void table_cell(struct table *t, const char *text)
{
	AUTO_DONE(buf) cell = {};
	size_t column = t->cells.n % t->n, width;

	text_escape(&cell, text, strlen(text));
	width = table_text_width(cell.data ? cell.data : "", cell.len);
	if (width > t->widths[column])
		t->widths[column] = width;
	if (strcmp(text, "-") != 0)
		t->used[column] = true;
	strv_take(&t->cells, buf_steal(&cell));
}

size_t table_rows(const struct table *t)
{
	return t->cells.n / t->n;
}

static void put_spaces(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_char(out, ' ');
}

/* Writes a cell, cut to 'room' columns. */
static void put_cell(const struct table *t, size_t column, const char *cell, size_t room,
	struct buf *out)
{
	const char *colour =
		t->colour && t->columns[column].flags & TABLE_STATE ? table_state_colour(cell) : "";
	bool all;
	size_t len = table_text_cut(cell, room, &all);

	if (!all)
		len = table_text_cut(cell, room > 0 ? room - 1 : 0, &(bool){false});
	if (*colour)
		buf_str(out, colour);
	buf_add(out, cell, len);
	if (*colour)
		buf_str(out, COLOUR_END);
	if (!all)
		buf_str(out, "…");
}

static size_t total_width(const struct table *t, const size_t *widths)
{
	size_t sum = 0, n = 0;

	for (size_t i = 0; i < t->n; i++) {
		sum += t->hidden[i] ? 0 : widths[i];
		n += !t->hidden[i];
	}
	return sum + (n > 0 ? (n - 1) * GAP : 0);
}

/* The widest column that may be cut and is wider than 'min'; t->n: none. */
static size_t widest(const struct table *t, const size_t *widths, size_t min)
{
	size_t found = t->n;

	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].flags & TABLE_SHRINK && !t->hidden[i] && widths[i] > min &&
		    (found == t->n || widths[i] > widths[found]))
			found = i;
	return found;
}

/*
 * Reduces the widest column by one until the lines fit the terminal, first down to 12 columns each,
 * then down to 6. If the table is still too wide, the lines are cut at the end.
 */
static void fit_widths(const struct table *t, size_t *widths)
{
	static const size_t mins[] = {12, 6};

	memcpy(widths, t->widths, sizeof(t->widths));
	for (size_t k = 0; t->width > 0 && k < ELEMENTS(mins); k++)
		while (total_width(t, widths) > (size_t)t->width) {
			size_t i = widest(t, widths, mins[k]);

			if (i == t->n)
				break;
			widths[i]--;
		}
}

static void put_table_line(const struct table *t, const size_t *widths, const char *const *cells,
	struct buf *out)
{
	size_t used = 0, limit = t->width > 0 ? (size_t)t->width : SIZE_MAX;

	for (size_t i = 0, shown = 0; i < t->n; i++) {
		size_t width = table_text_width(cells[i], strlen(cells[i]));
		size_t pad, before;

		if (t->hidden[i])
			continue;
		if (width > widths[i])
			width = widths[i];
		pad = widths[i] - width;
		before = (shown++ ? GAP : 0) + (t->columns[i].right ? pad : 0);
		if (used + before >= limit)
			break;
		put_spaces(out, before);
		used += before;
		put_cell(t, i, cells[i], widths[i] < limit - used ? widths[i] : limit - used, out);
		if (width > limit - used)
			break;
		used += width;
		if (t->columns[i].right || i + 1 == t->n)
			continue;
		if (used + pad >= limit)
			break;
		put_spaces(out, pad);
		used += pad;
	}
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	buf_char(out, '\n');
}

void table_flush(struct table *t, struct buf *out)
{
	const char *headers[TABLE_COLUMNS_MAX];
	size_t widths[TABLE_COLUMNS_MAX];

	if (!t->header_done && t->width > 0 && table_rows(t) > 0 &&
		total_width(t, t->widths) > (size_t)t->width)
		for (size_t i = 0; i < t->n; i++)
			t->hidden[i] = !t->used[i];
	fit_widths(t, widths);
	if (!t->header_done) {
		for (size_t i = 0; i < t->n; i++)
			headers[i] = t->columns[i].header;
		put_table_line(t, widths, headers, out);
		t->header_done = true;
	}
	for (size_t row = 0; row < table_rows(t); row++)
		put_table_line(t, widths, (const char *const *)t->cells.v + row * t->n, out);
	strv_done(&t->cells);
}
