/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the JSON array parameter of a set-wise statement. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include <stdint.h>

struct err;
struct store;

struct set {
	struct buf b;
	size_t n;
	bool first;  /* the open item has no member yet */
	bool closed; /* nothing more can be added */
};
#define AUTO_SET AUTO_DONE(set)
void set_done(struct set *s);
void set_item(struct set *s); /* closes the open object and opens the next one */
void set_int(struct set *s, const char *name, int64_t v);
void set_text(struct set *s, const char *name, const char *v); /* escapes bytes that are not UTF-8 */
void set_id(struct set *s, int64_t id);                        /* for arrays of numbers */
const char *set_json(struct set *s);                           /* closes the array; valid until set_done */

/* Runs a statement that takes one set and returns no rows. An empty set is not sent. */
bool set_execute(struct store *s, int query, struct set *set, struct err *e);
