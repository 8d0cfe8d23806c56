/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of this node: counters in memory, and snapshots of all values. */
#pragma once
#include "base/auto.h"
#include "daemon/metrics/metric_table.h"
#include <stddef.h>
#include <stdint.h>

struct metrics;

/* The routes are the values of the label 'route'; copied. */
struct metrics *metrics_new(const char *const *routes, size_t n);
void metrics_free(struct metrics *m);
AUTO_DEFINE(metrics);

/*
 * Any thread may call these three. 'i' and 'j' are the values of the labels; an index that the label
 * does not have is ignored, as is NULL.
 */
void metrics_add(struct metrics *m, enum metric id, size_t i, size_t j, int64_t n);
/* A histogram. The value is in the unit of the table: microseconds for seconds. */
void metrics_observe(struct metrics *m, enum metric id, size_t i, int64_t value);
int64_t metrics_get(const struct metrics *m, enum metric id, size_t i, size_t j); /* a counter */

const char *metrics_route(const struct metrics *m, size_t i);
size_t metrics_routes(const struct metrics *m);

/* All values at one time, to which the caller adds those that are not counted in memory. */
#define METRICS_UNKNOWN INT64_MIN /* written as NaN */
struct metrics_snapshot;
struct metrics_snapshot *metrics_snapshot_new(const struct metrics *m /* outlives it */);
void metrics_snapshot_free(struct metrics_snapshot *s);
AUTO_DEFINE(metrics_snapshot);
void metrics_snapshot_set(struct metrics_snapshot *s, enum metric id, size_t i, size_t j, int64_t value);
const int64_t *metrics_snapshot_cells(const struct metrics_snapshot *s, enum metric id);
const struct metrics *metrics_snapshot_source(const struct metrics_snapshot *s);
