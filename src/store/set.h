/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the parameter of a set-wise statement: a JSON array, or its rows in memory where the backend can read them. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "store/backend/db_set.h"
#include <stdint.h>

struct err;
struct query;
struct store;

struct set {
	struct db_set rows; /* of objects */
	struct buf b;       /* the JSON text: of numbers, or of objects once set_json() was called */
	size_t n;
	bool closed;        /* nothing more can be added */
};
#define AUTO_SET AUTO_DONE(set)
void set_done(struct set *s);
void set_item(struct set *s); /* begins the next object */
void set_int(struct set *s, const char *name /* a string constant */, int64_t v);
void set_text(struct set *s, const char *name, const char *v); /* escapes bytes that are not UTF-8 */
void set_id(struct set *s, int64_t id);                        /* for arrays of numbers */
const char *set_json(struct set *s);                           /* closes the array; valid until set_done */
void set_bind(struct query *q, struct set *s);                 /* as the next parameter, borrowed until the query is done */

/* Runs a statement that takes one set and returns no rows. An empty set is not sent. */
bool set_execute(struct store *s, int query, struct set *set, struct err *e);
