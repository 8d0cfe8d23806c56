/* SPDX-License-Identifier: Apache-2.0 */
/* One scrape: takes the values of this node on the loop, adds those of the store on a reader thread. */
#pragma once
#include "base/auto.h"
#include "daemon/metrics/metrics_text.h"
#include "store/read/metric_counts.h"
#include <stdbool.h>

struct clock;
struct err;
struct metrics;
struct metrics_snapshot;
struct store;

/* Where the values come from. Everything is borrowed and outlives the scrapes. */
struct metrics_source {
	struct metrics *metrics;
	const struct clock *clock;
	void (*collect)(struct metrics_snapshot *s, void *arg); /* on the loop: the state of this node */
	void *arg;
	struct metric_counts_ask ask;
	struct metrics_text_labels labels;
	const char *node_id;
	const char *group; /* directory of the control group of the workers; NULL: unknown */
};

struct metrics_scrape;
struct metrics_scrape *metrics_scrape_new(const struct metrics_source *from, enum metrics_format f); /* on the loop */
void metrics_scrape_free(struct metrics_scrape *s);
AUTO_DEFINE(metrics_scrape);

/* On any thread. Without a store only the series of this node are written. */
bool metrics_scrape_write(struct metrics_scrape *s, struct store *store /* NULL: it does not answer */, struct buf *out,
	struct err *e);
enum metrics_format metrics_scrape_format(const struct metrics_scrape *s);
