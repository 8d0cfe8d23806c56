/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the share of each owner in a limited resource. */
#include "core/decide/fair_share.h"

bool fair_share_allows(const struct fair_share *s, int64_t held, int64_t want)
{
	int64_t most = s->total - s->used;

	if (s->per_owner > 0 && s->per_owner < most)
		most = s->per_owner;
	return held <= most && want <= most - held;
}

static bool may_have_one(const struct fair_share *s, const struct fair_claim *c)
{
	return c->waiting > 0 && s->used < s->total && (c->exempt || fair_share_allows(s, c->held, 1));
}

size_t fair_share_next(const struct fair_share *s, const struct fair_claim *claims, size_t n)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++) {
		const struct fair_claim *c = &claims[i], *b = &claims[best];

		if (!may_have_one(s, c))
			continue;
		if (best == n || c->held < b->held || (c->held == b->held && c->since < b->since))
			best = i;
	}
	return best;
}
