/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, and the limits of owners. */
#pragma once
#include "core/job/policy.h"
#include <stddef.h>
#include <stdint.h>

enum limit_scope { LIMIT_QUEUE, LIMIT_OWNER, LIMIT_SCOPE_MAX };
#define LIMIT_WEIGHT 100 /* default weight of a queue */
#define LIMIT_WEIGHT_MAX 10000
#define LIMIT_RUNNING_MAX 100000
#define LIMIT_QUEUED_MAX 10000

struct limit {
	char *key;              /* owned: name of the queue, or uid in digits */
	int64_t running;        /* maximum of concurrent runs; 0: no limit */
	int64_t weight;         /* of a queue: its share in comparison with other queues */
	struct rate rate;       /* n 0: none */
	int64_t active;         /* claimed and running runs */
	int64_t queued;         /* waiting runs; of an owner, counted up to LIMIT_QUEUED_MAX */
	int64_t jobs;           /* live jobs */
};
struct limit_list {
	struct limit *v;
	size_t n;
};
void limit_list_done(struct limit_list *l);
