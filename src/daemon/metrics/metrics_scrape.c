/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the figures of the store and of control groups to a snapshot. */
#include "daemon/metrics/metrics_scrape.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "core/decide/machine_conditions.h"
#include "core/job/slot_outcome.h"
#include "daemon/metrics/metrics.h"
#include "store/read/events_held.h"
#include "store/read/list/list_nodes.h"
#include <string.h>

#define PRESSURE_MAX 4096

struct metrics_scrape {
	const struct metrics_source *from;
	enum metrics_format format;
	struct metrics_snapshot *values; /* owned */
	usec_t now;
};

struct metrics_scrape *metrics_scrape_new(const struct metrics_source *from, enum metrics_format f)
{
	struct metrics_scrape *s = xcalloc(1, sizeof(*s));

	s->from = from;
	s->format = f;
	s->now = clock_now(from->clock);
	s->values = metrics_snapshot_new(from->metrics);
	from->collect(s->values, from->arg);
	return s;
}

void metrics_scrape_free(struct metrics_scrape *s)
{
	if (!s)
		return;
	metrics_snapshot_free(s->values);
	free(s);
}

enum metrics_format metrics_scrape_format(const struct metrics_scrape *s)
{
	return s->format;
}

/* The kernel's percentages, with two decimals, of the last 10 s. */
static void set_pressure(struct metrics_scrape *s)
{
	static const char *const files[] = {"cpu", "memory", "io"};

	for (size_t i = 0; i < ELEMENTS(files); i++) {
		AUTO_TEXT path = xprintf("%s/%s.pressure", s->from->group ? s->from->group : "", files[i]);
		AUTO_DONE(buf) text = {};
		int64_t value = METRICS_UNKNOWN;

		if (s->from->group && io_read_file(path, &text, PRESSURE_MAX) >= 0 && text.len > 0)
			value = machine_conditions_parse_pressure(text.data);
		metrics_snapshot_set(s->values, METRIC_GROUP_PRESSURE, i, 0, value < 0 ? METRICS_UNKNOWN : value);
	}
}

static void set_counts(struct metrics_scrape *s, const struct metric_counts *c)
{
	for (size_t i = 0; i < JOB_STATE_MAX; i++)
		metrics_snapshot_set(s->values, METRIC_CLUSTER_JOBS, i, 0, c->counts.jobs[i]);
	for (size_t i = 0; i < RUN_STATE_MAX; i++)
		metrics_snapshot_set(s->values, METRIC_CLUSTER_RUNS, i, 0, c->counts.runs[i]);
	for (size_t i = 0; i < NOTICE_STATE_MAX; i++)
		metrics_snapshot_set(s->values, METRIC_CLUSTER_NOTICES, i, 0, c->counts.notices[i]);
	for (size_t i = 0; i < slot_outcomes_count; i++)
		metrics_snapshot_set(s->values, METRIC_CLUSTER_SLOTS, i, 0, c->slots[i]);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_DEAD, 0, 0, c->dead);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_OUTPUT, 0, 0, c->output_bytes);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_OLDEST, 0, 0, c->oldest_due < s->now ? s->now - c->oldest_due : 0);
}

static void set_nodes(struct metrics_scrape *s, const struct node_list *l)
{
	int64_t alive = 0, draining = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct node_view *v = &l->v[i];

		alive += v->lease_remains > 0;
		draining += v->draining;
		if (text_equal(v->id, s->from->node_id)) {
			metrics_snapshot_set(s->values, METRIC_SEGMENTS, 0, 0, v->segments);
			metrics_snapshot_set(s->values, METRIC_DRAINING, 0, 0, v->draining);
		}
	}
	metrics_snapshot_set(s->values, METRIC_CLUSTER_NODES, 0, 0, alive);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_NODES, 1, 0, (int64_t)l->n - alive);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_NODES, 2, 0, draining);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_HAS_LEADER, 0, 0, l->leader && l->lease_remains > 0);
	metrics_snapshot_set(s->values, METRIC_CLUSTER_TERMS, 0, 0, l->term);
}

static bool read_store(struct metrics_scrape *s, struct store *store, struct metric_counts *ret, struct err *e)
{
	struct node_list nodes = {};
	usec_t held;

	if (!list_nodes_open(store, &nodes, e))
		return false;
	set_nodes(s, &nodes);
	node_list_done(&nodes);
	if (!metric_counts_read(store, &s->from->ask, ret, e))
		return false;
	set_counts(s, ret);
	if (!events_held_since(store, &held, e))
		return false;
	metrics_snapshot_set(s->values, METRIC_CLUSTER_HELD, 0, 0, held > 0 && held < s->now ? s->now - held : 0);
	return true;
}

bool metrics_scrape_write(struct metrics_scrape *s, struct store *store, struct buf *out, struct err *e)
{
	struct metric_counts counts = {};

	if (store && !read_store(s, store, &counts, e))
		return false;
	set_pressure(s);
	metrics_text_write(out, s->format, s->values, store ? &counts : NULL, &s->from->labels);
	metric_counts_done(&counts);
	return true;
}
