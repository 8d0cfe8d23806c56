/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets by key: one for each client address or API token. */
#pragma once
#include "base/clock.h"
#include "base/map.h"
#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
	double per_second, burst;
	struct map buckets; /* owned */
};

void rate_limit_init(struct rate_limit *l, double per_second, double burst);
void rate_limit_done(struct rate_limit *l);
bool rate_limit_take(struct rate_limit *l, int64_t key, usec_t now); /* false: the bucket is empty */
bool rate_limit_is_empty(const struct rate_limit *l, int64_t key, usec_t now);
