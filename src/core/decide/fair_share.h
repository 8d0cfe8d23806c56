/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a limited resource (slots, connections, bytes) between owners. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An owner never holds more than what is still free. k owners that take all they can get leave 1/(k
 * + 1) of the total, so the resource is not exhausted by a few owners, and one owner alone can use
 * half of it.
 */
struct fair_share {
	int64_t total;
	int64_t used;      /* by all owners */
	int64_t per_owner; /* a further bound of one owner; 0: none */
};

/* Whether an owner that holds 'held' units may have 'want' more. */
bool fair_share_allows(const struct fair_share *s, int64_t held, int64_t want);

/* An owner that waits for units. */
struct fair_claim {
	int64_t owner;
	int64_t held;
	int64_t waiting; /* units that the owner wants */
	int64_t since;   /* time of its oldest want */
	bool exempt;     /* fair_share_allows() does not apply; only the total does */
};

/*
 * The claim that gets the next unit: of the owners that hold the fewest units the one that waits
 * longest. Returns n if no claim may have one.
 */
size_t fair_share_next(const struct fair_share *s, const struct fair_claim *claims, size_t n);
