/* SPDX-License-Identifier: Apache-2.0 */
/* Reads queues and the limits of owners, with their use. */
#pragma once
#include "base/err.h"
#include "store/store.h"

struct query;

extern const char *const limit_scope_names[LIMIT_SCOPE_MAX];

struct limit list_limits_row(struct query *q);
/* Sets *refusal: "no queue 'nihgt'; did you mean 'night'? ..." */
bool list_limits_no_queue(struct store *s, const char *name, enum err_kind kind, struct err *refusal, struct err *e);
