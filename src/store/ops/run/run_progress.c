/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the progress of running attempts, one row per run. */
#include "store/ops/run/run_progress.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdio.h>

static void progress_event(struct store *s, const struct run_progress_row *row, int64_t job, int64_t uid)
{
	char percent[8] = "";
	AUTO_TEXT detail = NULL;

	if (row->progress.percent != SIGN_PERCENT_NONE)
		snprintf(percent, sizeof(percent), "%d%% ", row->progress.percent);
	detail = xprintf("%s%s", percent, row->progress.text);
	event_add(s, &(struct event_new){.at = row->progress.at, .what = EVENT_RUN_PROGRESS, .job = job, .run = row->run,
		.owner = uid, .detail = detail});
}

/*
 * Matches run and fence only: the end of the attempt may be recorded in the same batch. A row of a
 * newer attempt is not replaced.
 */
static bool progress_write(struct store *s, const struct op_progress *o, struct err *e)
{
	AUTO_DONE(map) by_run = {};
	AUTO_SET set = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < o->n; i++) {
		set_item(&set);
		set_int(&set, "run", o->v[i].run);
		set_int(&set, "fence", o->v[i].fence);
		set_int(&set, "n", o->v[i].progress.percent);
		set_text(&set, "value", o->v[i].progress.text);
		set_int(&set, "at", o->v[i].progress.at);
		map_put(&by_run, o->v[i].run, &o->v[i]);
	}
	if (o->n == 0)
		return true;
	q = query_start(s->db, Q_PROGRESS_PUT, e);
	set_bind(&q, &set);
	while (query_row(&q)) {
		const struct run_progress_row *row = map_get(&by_run, query_get_int(&q));
		int64_t job = query_get_int(&q), uid = query_get_int(&q);

		if (row && row->event)
			progress_event(s, row, job, uid);
	}
	return !q.failed;
}

bool run_progress_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!progress_write(s, run_progress_op(ops[i]), e))
			return false;
	return true;
}

void run_progress_free(struct op *op)
{
	free(run_progress_op(op)->v);
}
