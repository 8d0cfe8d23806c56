/* SPDX-License-Identifier: Apache-2.0 */
/* List filter options shared by several verbs. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct args;
struct buf;
struct err;

/*
 * Adds the time of --NAME to a path. Relative times are in the past: --since 2h, --since yesterday.
 */
bool filter_time(struct buf *path, const struct args *a, const char *name, usec_t now,
	struct err *e);
/* Reads --limit; 0: no limit. 'preset': the default. */
bool filter_limit(const struct args *a, size_t preset, size_t *ret, struct err *e);

typedef bool filter_state_fn(const char *name); /* whether a state of this name exists */
/* Adds --state, which can be repeated and can be a comma-separated list. */
bool filter_states(struct buf *path, const struct args *a, filter_state_fn *is_state,
	struct err *e);
bool filter_tags_check(const struct args *a, struct err *e); /* each --tag is KEY=VALUE */
