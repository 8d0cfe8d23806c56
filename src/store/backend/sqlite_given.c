/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite table-valued function given(:set) over the sets of the store: rows in memory, or a JSON text, which is parsed once
 * from left to right. SQLite's own JSON functions search each member again, which took most of the time of a batch.
 */
#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/backend/sqlite.h"
#include "store/backend/db_set.h"
#include "store/backend/queries.h"
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 96
#define MEMBERS_MAX 32

/*
 * The columns are the possible members of a set, as declared in sqlite.sql, and last the set
 * itself.
 */
struct given_table {
	sqlite3_vtab base;
	char *names; /* owned: the declaration, split into words */
	const char *name[COLUMNS_MAX];
	size_t len[COLUMNS_MAX];
	int columns;
};

struct given_value {
	enum { NOTHING, NUMBER, TEXT, TEXT_ESCAPED } type;
	int64_t number;
	const char *text; /* points into the set */
	size_t len;       /* with escapes */
};

struct given_cursor {
	sqlite3_vtab_cursor base;
	const struct db_set *rows; /* borrowed; NULL: the set is a text */
	size_t cell;       /* the next one of 'rows' */
	const char *at;    /* the rest of a text that is not parsed yet; borrowed from the statement */
	int64_t row;
	bool end;
	int members;       /* of the row */
	int order[MEMBERS_MAX]; /* columns of the row; the next row usually has the same */
	const char *names[MEMBERS_MAX]; /* of 'rows', of the columns in 'order' */
	struct given_value values[COLUMNS_MAX];
};

static void cut_names(struct given_table *t, const char *declaration)
{
	char *save = NULL;

	t->names = xstrdup(strchr(declaration, '(') + 1);
	for (char *word = strtok_r(t->names, " ,\n\t)", &save); word && t->columns < COLUMNS_MAX;
		word = strtok_r(NULL, " ,\n\t)", &save)) {
		t->len[t->columns] = strlen(word);
		t->name[t->columns++] = word;
	}
	t->columns -= 2; /* the column of the set and the word HIDDEN */
}

static int given_disconnect(sqlite3_vtab *base)
{
	free(((struct given_table *)base)->names);
	free(base);
	return SQLITE_OK;
}

static int given_connect(sqlite3 *h, void *declaration, int argc, const char *const *argv, sqlite3_vtab **ret,
	char **error)
{
	struct given_table *t;
	int rc = sqlite3_declare_vtab(h, declaration);

	(void)argc;
	(void)argv;
	(void)error;
	if (rc != SQLITE_OK)
		return rc;
	t = xcalloc(1, sizeof(*t));
	cut_names(t, declaration);
	*ret = &t->base;
	return SQLITE_OK;
}

/* Only a full scan, always as the outer loop: a set is small compared with the tables. */
static int given_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct given_table *t = (const struct given_table *)base;

	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].iColumn == t->columns && info->aConstraint[i].usable &&
		    info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
			info->aConstraintUsage[i].argvIndex = 1;
			info->aConstraintUsage[i].omit = 1;
			info->estimatedCost = 1;
			info->estimatedRows = 10;
			return SQLITE_OK;
		}
	return SQLITE_CONSTRAINT;
}

static int given_open(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
	struct given_cursor *c = xcalloc(1, sizeof(*c));

	(void)t;
	*ret = &c->base;
	return SQLITE_OK;
}

static int given_close(sqlite3_vtab_cursor *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- parser for the output of set.c: [{"a":1,"b":"x","c":null},...] without blanks ---- */

static bool skip_char(struct given_cursor *c, char wanted)
{
	if (*c->at != wanted)
		return false;
	c->at++;
	return true;
}

/* A string after its opening quote. */
static bool text_value_read(struct given_cursor *c, struct given_value *v)
{
	const char *from = c->at;

	v->type = TEXT;
	for (; *c->at != '"'; c->at++) {
		if (*c->at == '\\') {
			v->type = TEXT_ESCAPED;
			c->at++;
		}
		if (*c->at == '\0')
			return false;
	}
	v->text = from;
	v->len = (size_t)(c->at++ - from);
	return true;
}

/* set.c writes numbers of 64 bits. */
static bool number_value_read(struct given_cursor *c, struct given_value *v)
{
	bool negative = skip_char(c, '-');
	const char *from = c->at;
	uint64_t n = 0;

	for (; *c->at >= '0' && *c->at <= '9'; c->at++)
		n = n * 10 + (uint64_t)(*c->at - '0');
	v->type = NUMBER;
	v->number = (int64_t)(negative ? -n : n);
	return c->at > from;
}

static bool value_read(struct given_cursor *c, struct given_value *v)
{
	if (skip_char(c, '"'))
		return text_value_read(c, v);
	if (strncmp(c->at, "null", 4) != 0)
		return number_value_read(c, v);
	c->at += 4;
	return true;
}

static int find_column(const struct given_table *t, const char *name, size_t len)
{
	for (int i = 0; i < t->columns; i++)
		if (t->len[i] == len && strncmp(t->name[i], name, len) == 0)
			return i;
	return -1;
}

/* Whether a text begins with the name of a column and a quote. A loop, because names are short. */
static bool begins_with_column(const struct given_table *t, int column, const char *text)
{
	const char *name = t->name[column];

	while (*name && *name == *text) {
		name++;
		text++;
	}
	return !*name && *text == '"';
}

static bool member_read(struct given_cursor *c, int member)
{
	const struct given_table *t = (const struct given_table *)c->base.pVtab;
	int column;

	if (member >= MEMBERS_MAX || !skip_char(c, '"'))
		return false;
	column = c->order[member];
	if (!begins_with_column(t, column, c->at))
		column = find_column(t, c->at, strcspn(c->at, "\""));
	if (column < 0)
		return false;
	c->order[member] = column;
	c->at += t->len[column] + 1;
	return skip_char(c, ':') && value_read(c, &c->values[column]);
}

static void row_clear(struct given_cursor *c)
{
	for (int i = 0; i < c->members; i++)
		c->values[c->order[i]].type = NOTHING;
	c->members = 0;
}

static bool given_row_read(struct given_cursor *c)
{
	row_clear(c);
	if (!skip_char(c, '{'))
		return false;
	do {
		if (!member_read(c, c->members))
			return false;
		c->members++;
	} while (skip_char(c, ','));
	return skip_char(c, '}');
}

/* ---- rows in memory ---- */

static bool cell_read(struct given_cursor *c, const struct db_cell *cell)
{
	int column, member = c->members;
	struct given_value *v;

	if (member >= MEMBERS_MAX)
		return false;
	if (c->names[member] != cell->name) {
		column = find_column((const struct given_table *)c->base.pVtab, cell->name, strlen(cell->name));
		if (column < 0)
			return false;
		c->order[member] = column;
		c->names[member] = cell->name;
	}
	c->members++;
	v = &c->values[c->order[member]];
	if (cell->type == DB_CELL_INT) {
		v->type = NUMBER;
		v->number = cell->value;
	} else if (cell->type == DB_CELL_TEXT) {
		v->type = TEXT;
		v->text = c->rows->texts.data + cell->value;
		v->len = cell->len;
	}
	return true;
}

static int rows_next(struct given_cursor *c)
{
	const struct db_set *rows = c->rows;

	row_clear(c);
	c->end = c->cell == rows->n;
	for (c->cell++; c->cell < rows->n && rows->cells[c->cell].type != DB_CELL_ROW; c->cell++)
		if (!cell_read(c, &rows->cells[c->cell]))
			return SQLITE_MISMATCH;
	return SQLITE_OK;
}

static int given_next(sqlite3_vtab_cursor *base)
{
	struct given_cursor *c = (struct given_cursor *)base;

	c->row++;
	if (c->rows)
		return rows_next(c);
	c->end = skip_char(c, ']');
	if (c->end)
		return SQLITE_OK;
	return (c->row == 0 || skip_char(c, ',')) && given_row_read(c) ? SQLITE_OK : SQLITE_MISMATCH;
}

static int given_filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc, sqlite3_value **argv)
{
	struct given_cursor *c = (struct given_cursor *)base;
	const char *set;

	(void)index;
	(void)text;
	row_clear(c);
	c->cell = 0;
	c->row = -1;
	c->rows = argc == 1 ? sqlite3_value_pointer(argv[0], SQLITE_GIVEN_ROWS) : NULL;
	if (c->rows)
		return given_next(base);
	set = argc == 1 ? (const char *)sqlite3_value_text(argv[0]) : NULL;
	if (!set)
		return SQLITE_MISMATCH;
	c->at = set;
	return skip_char(c, '[') ? given_next(base) : SQLITE_MISMATCH;
}

static int given_eof(sqlite3_vtab_cursor *base)
{
	return ((struct given_cursor *)base)->end;
}

/* Removes the escapes of a text. False: an escape that set.c does not write. */
static bool text_unescape(const struct given_value *v, char *to, size_t *ret_len)
{
	const char *from = v->text, *end = from + v->len;
	char *start = to;

	while (from < end) {
		char code[3] = {};

		if (*from != '\\') {
			*to++ = *from++;
		} else if (from[1] != 'u') {
			*to++ = from[1]; /* set.c escapes only quote and backslash this way */
			from += 2;
		} else {
			if (end - from < 6 || strncmp(from, "\\u00", 4) != 0)
				return false;
			memcpy(code, from + 4, 2);
			*to++ = (char)strtol(code, NULL, 16);
			from += 6;
		}
	}
	*ret_len = (size_t)(to - start);
	return true;
}

static int escaped_result(sqlite3_context *ctx, const struct given_value *v)
{
	AUTO_TEXT text = xcalloc(1, v->len + 1);
	size_t len;

	if (!text_unescape(v, text, &len))
		return SQLITE_MISMATCH;
	sqlite3_result_text64(ctx, text, len, SQLITE_TRANSIENT, SQLITE_UTF8);
	return SQLITE_OK;
}

/* A text without escapes is not copied: the set is bound to the statement until that is reset. */
static int given_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
	const struct given_cursor *c = (const struct given_cursor *)base;

	if (i >= COLUMNS_MAX || c->values[i].type == NOTHING)
		sqlite3_result_null(ctx);
	else if (c->values[i].type == NUMBER)
		sqlite3_result_int64(ctx, c->values[i].number);
	else if (c->values[i].type == TEXT_ESCAPED)
		return escaped_result(ctx, &c->values[i]);
	else
		sqlite3_result_text64(ctx, c->values[i].text, c->values[i].len, SQLITE_STATIC, SQLITE_UTF8);
	return SQLITE_OK;
}

static int given_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct given_cursor *)base)->row;
	return SQLITE_OK;
}

/*
 * Leases use the time since boot, which never steps: all nodes that share a SQLite file are on one
 * host.
 */
static void lease_clock(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	(void)argc;
	(void)argv;
	sqlite3_result_int64(ctx, clock_boot(sqlite3_user_data(ctx)));
}

int sqlite_add_given(sqlite3 *h, const struct db_sql *sql, const struct clock *clock)
{
	static const sqlite3_module module = {
		.xConnect = given_connect,
		.xBestIndex = given_best_index,
		.xDisconnect = given_disconnect,
		.xOpen = given_open,
		.xClose = given_close,
		.xFilter = given_filter,
		.xNext = given_next,
		.xEof = given_eof,
		.xColumn = given_column,
		.xRowid = given_rowid,
	};

	int rc = sqlite3_create_function_v2(h, "lease_clock", 0, SQLITE_UTF8, (void *)(uintptr_t)clock, lease_clock, NULL, NULL, NULL);

	return rc != SQLITE_OK ? rc : sqlite3_create_module(h, "given", &module, (void *)(uintptr_t)sql->texts[TEXT_SQLITE_GIVEN]);
}
