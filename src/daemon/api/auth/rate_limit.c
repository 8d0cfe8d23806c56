/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets in a map of bounded size. */
#include "daemon/api/auth/rate_limit.h"
#include "base/text.h"
#include <stdlib.h>

#define BUCKETS_MAX 16384

struct bucket {
	int64_t key;
	double tokens;
	usec_t at; /* CLOCK_BOOTTIME */
};

void rate_limit_init(struct rate_limit *l, double per_second, double burst)
{
	l->per_second = per_second;
	l->burst = burst;
}

static double bucket_level(const struct rate_limit *l, const struct bucket *b, usec_t now)
{
	double n = b->tokens + (double)(now - b->at) / USEC_SEC * l->per_second;

	return n < l->burst ? n : l->burst;
}

static void drop_buckets(struct rate_limit *l, usec_t now, bool only_full)
{
	struct bucket *b;

	for (size_t i = 0; (b = map_next(&l->buckets, &i));)
		if (!only_full || bucket_level(l, b, now) >= l->burst)
			free(map_take(&l->buckets, b->key));
}

void rate_limit_done(struct rate_limit *l)
{
	drop_buckets(l, 0, false);
	map_done(&l->buckets);
}

/* A full bucket is the same as none. If too many are not full, all clients begin anew. */
static struct bucket *bucket_add(struct rate_limit *l, int64_t key, usec_t now)
{
	struct bucket *b;

	if (l->buckets.used >= BUCKETS_MAX)
		drop_buckets(l, now, true);
	if (l->buckets.used >= BUCKETS_MAX)
		drop_buckets(l, now, false);
	b = xcalloc(1, sizeof(*b));
	*b = (struct bucket){.key = key, .tokens = l->burst, .at = now};
	map_put(&l->buckets, key, b);
	return b;
}

bool rate_limit_take(struct rate_limit *l, int64_t key, usec_t now)
{
	struct bucket *b = map_get(&l->buckets, key);

	if (!b)
		b = bucket_add(l, key, now);
	b->tokens = bucket_level(l, b, now);
	b->at = now;
	if (b->tokens < 1)
		return false;
	b->tokens -= 1;
	return true;
}

bool rate_limit_is_empty(const struct rate_limit *l, int64_t key, usec_t now)
{
	const struct bucket *b = map_get(&l->buckets, key);

	return b && bucket_level(l, b, now) < 1;
}
