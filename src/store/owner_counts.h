/* SPDX-License-Identifier: Apache-2.0 */
/* The kept counts of an owner, for the checks of limits. */
#pragma once
#include "base/clock.h"
#include "store/counters.h"

/* A count of an owner, summed over all nodes. */
struct owner_count {
	enum count_what what;
	int64_t uid, n;
	usec_t at; /* boottime; 0: unused */
};

/*
 * Whether the count of an owner was read a moment ago and was far below the limit. Such a count needs no lock and no round
 * trip: other nodes would have to add an eighth of the limit within a second. Never on SQLite.
 */
bool owner_count_is_low(const struct store *s, enum count_what what, int64_t uid, int64_t limit, int64_t *ret);

/*
 * Reads COUNT_OWNER or COUNT_STORE of an owner, with the changes of this transaction; uses a low count from memory. 'job': one
 * of the owner's jobs, for which owner_count_prefetch() was called before the owner was known; 0: none.
 */
bool owner_count_read(struct store *s, enum count_what what, int64_t uid, int64_t job, int64_t limit, int64_t *ret, struct err *e);
bool owner_count_prefetch(struct store *s, enum count_what what, int64_t job, struct err *e);
/* The same without the changes of this transaction, and never from memory. */
bool owner_count_now(struct store *s, enum count_what what, int64_t uid, int64_t job, int64_t *ret, struct err *e);

void owner_count_add(struct store *s, enum count_what what, int64_t uid, int64_t n); /* a change of this node */
void owner_counts_forget(struct store *s); /* changes of this node may have been rolled back */
