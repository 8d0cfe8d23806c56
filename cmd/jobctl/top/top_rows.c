/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the views, and the comparison functions of their sort orders. */
#include "jobctl/top/top_rows.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/rows.h"
#include <inttypes.h>
#include <string.h>

/* ---- columns of queues and nodes ---- */

CELL(name)
CELL(active)
CELL(max_running)
CELL(queued)
CELL(jobs)
CELL(weight)
CELL(rate)
CELL(state)
CELL(host)
CELL(segments)
CELL(in_flight)

static void cell_role(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	if (json_is_true(json_object_get(row, "leads")))
		buf_str(out, "leader");
	if (json_is_true(json_object_get(row, "drained")))
		buf_str(out, out->len ? ", drained" : "drained");
}

static void cell_lease(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	if (json_is_number(json_object_get(row, "lease_remains")))
		buf_printf(out, "%.0fs", json_number_value(json_object_get(row, "lease_remains")));
}

static void cell_since(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "since", style, out);
}

static void put_name(const json_t *row, struct buf *out)
{
	cell_put(row, "name", out);
}

static const struct column queue_columns[] = {
	{{"QUEUE", false, 0}, "name", false, cell_name},
	{{"RUNNING", true, 0}, "active", false, cell_active},
	{{"MAX", true, 0}, "max_running", false, cell_max_running},
	{{"QUEUED", true, 0}, "queued", false, cell_queued},
	{{"JOBS", true, 0}, "jobs", false, cell_jobs},
	{{"WEIGHT", true, 0}, "weight", false, cell_weight},
	{{"RATE", false, 0}, "rate", false, cell_rate},
};
static const struct column node_columns[] = {
	{{"NODE", false, 0}, "name", false, cell_name},
	{{"STATE", false, TABLE_STATE}, "state", false, cell_state},
	{{"ROLE", false, 0}, "leads", false, cell_role},
	{{"RUNNING", true, 0}, "in_flight", false, cell_in_flight},
	{{"SEGMENTS", true, 0}, "segments", false, cell_segments},
	{{"LEASE", true, 0}, "lease_remains", false, cell_lease},
	{{"HOST", false, 0}, "host", false, cell_host},
	{{"SINCE", false, 0}, "since", false, cell_since},
};
static const struct row_kind queue_rows = {queue_columns, ELEMENTS(queue_columns), put_name};
static const struct row_kind node_rows = {node_columns, ELEMENTS(node_columns), put_name};

/* ---- sort orders ---- */

#define ROW(p) (*(json_t *const *)(p))

/* Rows without the text come last. */
static int compare_text(const json_t *a, const json_t *b, const char *key)
{
	const char *x = member_text(a, key), *y = member_text(b, key);

	if (!x || !y)
		return (x == NULL) - (y == NULL);
	return strcmp(x, y);
}

/* Rows without the time come last. */
static int compare_time(usec_t x, usec_t y, bool newest_first)
{
	if (!x || !y)
		return (x == 0) - (y == 0);
	return newest_first ? (x < y) - (x > y) : (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
	return compare_text(ROW(a), ROW(b), "name");
}

static int by_job_name(const void *a, const void *b)
{
	return compare_text(ROW(a), ROW(b), "job_name");
}

static int by_state(const void *a, const void *b)
{
	return compare_text(ROW(a), ROW(b), "state");
}

static int by_next(const void *a, const void *b)
{
	return compare_time(member_time(ROW(a), "next_at"), member_time(ROW(b), "next_at"), false);
}

static usec_t last_time(const json_t *job)
{
	const json_t *run = json_object_get(job, "last_run");
	usec_t t = member_time(run, "ended_at");

	return t ? t : member_time(run, "slot");
}

static int by_last(const void *a, const void *b)
{
	return compare_time(last_time(ROW(a)), last_time(ROW(b)), true);
}

static usec_t took(const json_t *run)
{
	usec_t from = member_time(run, "started_at"), to = member_time(run, "ended_at");

	return !from ? -1 : to ? to - from : INT64_MAX - from; /* of running runs the oldest first */
}

static int by_took(const void *a, const void *b)
{
	usec_t x = took(ROW(a)), y = took(ROW(b));

	return (x < y) - (x > y);
}

static int compare_number(const json_t *a, const json_t *b, const char *key)
{
	int64_t x = member_int(a, key), y = member_int(b, key);

	return (x < y) - (x > y);
}

static int by_active(const void *a, const void *b)
{
	return compare_number(ROW(a), ROW(b), "active");
}

static int by_queued(const void *a, const void *b)
{
	return compare_number(ROW(a), ROW(b), "queued");
}

static int by_in_flight(const void *a, const void *b)
{
	return compare_number(ROW(a), ROW(b), "in_flight");
}

static const struct top_sort job_sorts[] = {
	{"number", NULL}, {"name", by_name}, {"next slot", by_next}, {"last run", by_last},
	{"state", by_state}, {}};
static const struct top_sort run_sorts[] = {
	{"slot", NULL}, {"job", by_job_name}, {"duration", by_took}, {"state", by_state}, {}};
static const struct top_sort queue_sorts[] = {
	{"name", NULL}, {"running", by_active}, {"queued", by_queued}, {}};
static const struct top_sort node_sorts[] = {{"name", NULL}, {"running", by_in_flight}, {}};

const struct top_view_info top_views[TOP_VIEW_MAX] = {
	[TOP_JOBS] = {"jobs", "/v1/jobs", "jobs", true, &job_rows, job_sorts},
	[TOP_RUNS] = {"runs", "/v1/runs", "runs", true, &run_rows, run_sorts},
	[TOP_QUEUES] = {"queues", "/v1/queues", "queues", false, &queue_rows, queue_sorts},
	[TOP_NODES] = {"nodes", "/v1/nodes", "nodes", false, &node_rows, node_sorts},
};

/* ---- rows ---- */

void top_rows_key(const json_t *row, enum top_view view, struct buf *out)
{
	cell_put(row, view == TOP_JOBS || view == TOP_RUNS ? "id" : "name", out);
}

bool top_rows_match(const json_t *row, const char *text)
{
	static const char *const keys[] = {"name", "job_name", "state", "owner", "queue", "host",
		"node_name", "reason", "kind", "id", "job"};

	for (size_t i = 0; i < ELEMENTS(keys); i++) {
		AUTO_DONE(buf) cell = {};

		cell_put(row, keys[i], &cell);
		if (cell.len && strcasestr(cell.data, text))
			return true;
	}
	return false;
}

json_t *top_rows_select(const json_t *answer, enum top_view view, const char *text, size_t sort)
{
	const json_t *all = json_object_get(answer, top_views[view].member), *row;
	size_t i, n = 0;
	json_t **v = xcalloc(json_array_size(all) + 1, sizeof *v), *list = json_array();

	json_array_foreach(all, i, row)
		if (!text || top_rows_match(row, text))
			v[n++] = (json_t *)row;
	if (top_views[view].sorts[sort].compare)
		qsort(v, n, sizeof *v, top_views[view].sorts[sort].compare);
	for (i = 0; i < n; i++)
		json_array_append(list, v[i]);
	free(v);
	return list;
}
