/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in cells that all threads may change; copies them for a scrape. */
#include "daemon/metrics/metrics.h"
#include "base/text.h"
#include <string.h>

struct metrics {
	size_t at[METRIC_MAX + 1]; /* the first cell of each metric */
	int64_t *cells;            /* owned; changed with atomic operations */
	struct strv routes;
};

struct metrics_snapshot {
	const struct metrics *source;
	int64_t *cells; /* owned */
};

static size_t series_count(const struct metrics *m, enum metric id)
{
	const struct metric_desc *d = &metric_table[id];

	return metric_label_count(d, 0, m->routes.n) * metric_label_count(d, 1, m->routes.n);
}

struct metrics *metrics_new(const char *const *routes, size_t n)
{
	struct metrics *m = xcalloc(1, sizeof(*m));

	for (size_t i = 0; i < n; i++)
		strv_add(&m->routes, routes[i]);
	for (int id = 0; id < METRIC_MAX; id++)
		m->at[id + 1] = m->at[id] + series_count(m, (enum metric)id) * metric_width(&metric_table[id]);
	m->cells = xcalloc(m->at[METRIC_MAX], sizeof(*m->cells));
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	strv_done(&m->routes);
	free(m->cells);
	free(m);
}

const char *metrics_route(const struct metrics *m, size_t i)
{
	return i < m->routes.n ? m->routes.v[i] : NULL;
}

size_t metrics_routes(const struct metrics *m)
{
	return m->routes.n;
}

/* The first cell of a series; SIZE_MAX: there is none. */
static size_t cell_of(const struct metrics *m, enum metric id, size_t i, size_t j)
{
	const struct metric_desc *d = &metric_table[id];
	size_t second = metric_label_count(d, 1, m->routes.n);

	if (i >= metric_label_count(d, 0, m->routes.n) || j >= second)
		return SIZE_MAX;
	return m->at[id] + (i * second + j) * metric_width(d);
}

void metrics_add(struct metrics *m, enum metric id, size_t i, size_t j, int64_t n)
{
	size_t cell = m ? cell_of(m, id, i, j) : SIZE_MAX;

	if (cell != SIZE_MAX)
		__atomic_fetch_add(&m->cells[cell], n, __ATOMIC_RELAXED);
}

void metrics_observe(struct metrics *m, enum metric id, size_t i, int64_t value)
{
	const struct metric_desc *d = &metric_table[id];
	size_t cell = m ? cell_of(m, id, i, 0) : SIZE_MAX, n = metric_bucket_count(d), b = 0;

	if (cell == SIZE_MAX)
		return;
	if (value < 0) /* the clock was set back */
		value = 0;
	while (b < n && value > d->buckets[b])
		b++;
	__atomic_fetch_add(&m->cells[cell + b], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&m->cells[cell + n + 1], value, __ATOMIC_RELAXED);
}

int64_t metrics_get(const struct metrics *m, enum metric id, size_t i, size_t j)
{
	size_t cell = m ? cell_of(m, id, i, j) : SIZE_MAX;

	return cell == SIZE_MAX ? 0 : __atomic_load_n(&m->cells[cell], __ATOMIC_RELAXED);
}

/* ---- snapshots ---- */

struct metrics_snapshot *metrics_snapshot_new(const struct metrics *m)
{
	struct metrics_snapshot *s = xcalloc(1, sizeof(*s));

	s->source = m;
	s->cells = xcalloc(m->at[METRIC_MAX], sizeof(*s->cells));
	for (size_t i = 0; i < m->at[METRIC_MAX]; i++)
		s->cells[i] = __atomic_load_n(&m->cells[i], __ATOMIC_RELAXED);
	return s;
}

void metrics_snapshot_free(struct metrics_snapshot *s)
{
	if (!s)
		return;
	free(s->cells);
	free(s);
}

void metrics_snapshot_set(struct metrics_snapshot *s, enum metric id, size_t i, size_t j, int64_t value)
{
	size_t cell = cell_of(s->source, id, i, j);

	if (cell != SIZE_MAX)
		s->cells[cell] = value;
}

const int64_t *metrics_snapshot_cells(const struct metrics_snapshot *s, enum metric id)
{
	return s->cells + s->source->at[id];
}

const struct metrics *metrics_snapshot_source(const struct metrics_snapshot *s)
{
	return s->source;
}
