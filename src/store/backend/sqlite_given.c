/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite table-valued function given(:set) over the JSON sets of the store. It parses a set once
 * from left to right; SQLite's own JSON functions search each member again, which took most of the
 * time of a batch.
 */
#include "base/clock.h"
#include "base/text.h"
#include "store/backend/sqlite.h"
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
	int columns;
};

struct given_value {
	enum { NOTHING, NUMBER, TEXT } type;
	int64_t number;
	const char *text; /* points into the copy of the set */
	size_t len;
};

struct given_cursor {
	sqlite3_vtab_cursor base;
	char *set;  /* owned copy; texts are unescaped in place */
	char *at;   /* the rest that is not parsed yet */
	int64_t row;
	bool end;
	int order[MEMBERS_MAX]; /* columns of the previous row; the next row usually has the same */
	struct given_value values[COLUMNS_MAX];
};

static void cut_names(struct given_table *t, const char *declaration)
{
	char *save = NULL;

	t->names = xstrdup(strchr(declaration, '(') + 1);
	for (char *word = strtok_r(t->names, " ,\n\t)", &save); word && t->columns < COLUMNS_MAX;
		word = strtok_r(NULL, " ,\n\t)", &save))
		t->name[t->columns++] = word;
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
	struct given_cursor *c = (struct given_cursor *)base;

	free(c->set);
	free(c);
	return SQLITE_OK;
}

/* ---- parser for the output of set.c: [{"a":1,"b":"x","c":null},...] without blanks ---- */

static bool skip_token(struct given_cursor *c, const char *token)
{
	size_t len = strlen(token);

	if (strncmp(c->at, token, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* A string after its opening quote; it is unescaped in place. */
static bool text_value_read(struct given_cursor *c, struct given_value *v)
{
	char *from = c->at, *to;
	size_t plain = strcspn(from, "\"\\");

	to = from += plain;
	while (*from != '"') {
		char code[3] = {};

		if (*from == '\0' || (*from == '\\' && from[1] == '\0'))
			return false;
		if (*from != '\\') {
			*to++ = *from++;
		} else if (from[1] != 'u') {
			*to++ = from[1]; /* set.c escapes only quote and backslash this way */
			from += 2;
		} else {
			if (strncmp(from, "\\u00", 4) != 0 || strlen(from) < 6)
				return false;
			memcpy(code, from + 4, 2);
			*to++ = (char)strtol(code, NULL, 16);
			from += 6;
		}
	}
	*v = (struct given_value){.type = TEXT, .text = c->at, .len = (size_t)(to - c->at)};
	c->at = from + 1;
	return true;
}

static bool value_read(struct given_cursor *c, struct given_value *v)
{
	char *end;

	if (skip_token(c, "\""))
		return text_value_read(c, v);
	if (skip_token(c, "null"))
		return true;
	v->number = strtoll(c->at, &end, 10);
	v->type = NUMBER;
	if (end == c->at)
		return false;
	c->at = end;
	return true;
}

static int find_column(const struct given_table *t, const char *name, size_t len)
{
	for (int i = 0; i < t->columns; i++)
		if (strncmp(t->name[i], name, len) == 0 && t->name[i][len] == '\0')
			return i;
	return -1;
}

static bool member_read(struct given_cursor *c, int member)
{
	const struct given_table *t = (const struct given_table *)c->base.pVtab;
	size_t len = strcspn(c->at + 1, "\"");
	const char *name = c->at + 1;
	int column = member < MEMBERS_MAX ? c->order[member] : -1;

	if (column < 0 || strncmp(t->name[column], name, len) != 0 || t->name[column][len] != '\0')
		column = find_column(t, name, len);
	if (column < 0 || member >= MEMBERS_MAX)
		return false;
	c->order[member] = column;
	c->at += len + 2;
	return skip_token(c, ":") && value_read(c, &c->values[column]);
}

static bool given_row_read(struct given_cursor *c)
{
	int member = 0;

	memset(c->values, 0, sizeof(c->values));
	if (!skip_token(c, "{"))
		return false;
	do {
		if (!member_read(c, member++))
			return false;
	} while (skip_token(c, ","));
	return skip_token(c, "}");
}

static int given_next(sqlite3_vtab_cursor *base)
{
	struct given_cursor *c = (struct given_cursor *)base;

	c->row++;
	c->end = skip_token(c, "]");
	if (c->end)
		return SQLITE_OK;
	return (c->row == 0 || skip_token(c, ",")) && given_row_read(c) ? SQLITE_OK : SQLITE_MISMATCH;
}

static int given_filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc, sqlite3_value **argv)
{
	struct given_cursor *c = (struct given_cursor *)base;
	const char *set = argc == 1 ? (const char *)sqlite3_value_text(argv[0]) : NULL;

	(void)index;
	(void)text;
	if (!set)
		return SQLITE_MISMATCH;
	free(c->set);
	c->at = c->set = xstrdup(set);
	c->row = -1;
	return skip_token(c, "[") ? given_next(base) : SQLITE_MISMATCH;
}

static int given_eof(sqlite3_vtab_cursor *base)
{
	return ((struct given_cursor *)base)->end;
}

static int given_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
	const struct given_cursor *c = (const struct given_cursor *)base;

	if (i >= COLUMNS_MAX || c->values[i].type == NOTHING)
		sqlite3_result_null(ctx);
	else if (c->values[i].type == NUMBER)
		sqlite3_result_int64(ctx, c->values[i].number);
	else
		sqlite3_result_text64(ctx, c->values[i].text, c->values[i].len, SQLITE_TRANSIENT, SQLITE_UTF8);
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
