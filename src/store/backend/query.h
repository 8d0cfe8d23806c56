/* SPDX-License-Identifier: Apache-2.0 */
/* One execution of a prepared statement, checked against the declaration in the .sql file. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct db;
struct db_set;
struct err;

/*
 * Parameters are bound in order, columns are read in order. A missing or surplus parameter, a
 * surplus column, or a wrong type aborts the program.
 */
struct query {
	struct db *db;
	int id;
	int bound, column;
	bool failed, done;
	struct err *e; /* borrowed */
};
#define AUTO_QUERY AUTO_DONE(query)
struct query query_start(struct db *db, int id, struct err *e);
void query_int(struct query *q, int64_t v);
void query_text(struct query *q, const char *s);
/* Binds a set as rows. False: nothing is bound, and the set must be bound as JSON text. */
bool query_rows(struct query *q, const struct db_set *rows);
bool query_send(struct query *q);    /* sends it now if the backend has round trips; the rows are read later */
bool query_ahead(struct query *q);   /* the same in a batch whose statements may be sent ahead (db.defer) */
bool query_prefetch(struct query *q); /* sends it; the next query with the same parameters gets the rows. Only with db.defer */
bool query_row(struct query *q);     /* false: no more rows, or it failed */
bool query_finish(struct query *q);  /* steps to the end; false: it failed */
int64_t query_get_int(struct query *q);
const char *query_get_text(struct query *q); /* NULL for null; valid until the next row */
char *query_get_copy(struct query *q);       /* caller frees */
void query_done(struct query *q);
