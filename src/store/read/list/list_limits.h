/* SPDX-License-Identifier: Apache-2.0 */
/* Reads queues and the limits of owners, with their use. */
#pragma once
#include "base/err.h"
#include "store/limit.h"

struct query;
struct store;

extern const char *const limit_scope_names[LIMIT_SCOPE_MAX];

/* All of a scope, by key, or the one with this key. ERR_NOT_FOUND suggests a similar key. */
bool list_limits_read(struct store *s, enum limit_scope scope, const char *key /* NULL: all */, struct limit_list *ret,
	struct err *e);
struct limit list_limits_row(struct query *q);
/* Sets *refusal: "no queue 'nihgt'; did you mean 'night'? ..." */
bool list_limits_no_queue(struct store *s, const char *name, enum err_kind kind, struct err *refusal, struct err *e);
