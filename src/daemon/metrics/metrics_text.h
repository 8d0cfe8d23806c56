/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics in the Prometheus text format 0.0.4 or as OpenMetrics 1.0. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct metric_counts;
struct metrics_snapshot;

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

/* The format that an Accept header asks for; the text format unless OpenMetrics is preferred. */
enum metrics_format metrics_text_negotiate(const char *accept /* NULL: none */);
const char *metrics_text_type(enum metrics_format f); /* the Content-Type */

struct metrics_text_labels { /* of the two series of type info */
	const char *version, *node, *backend;
};

/*
 * Without counts the series of the cluster and of jobs are left out: the store does not answer.
 */
void metrics_text_write(struct buf *out, enum metrics_format f, const struct metrics_snapshot *s,
	const struct metric_counts *counts /* NULL: none */, const struct metrics_text_labels *labels);
