/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the progress of running runs, with an estimate of their end. */
#include "store/read/run_progress.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

struct shown {
	struct progress *progress;
	usec_t *estimated_end;
};

static bool shown_read(struct store *s, struct set *ids, const struct map *by_run, usec_t now, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	q = query_start(s->db, Q_PROGRESS_GET, e);
	set_bind(&q, ids);
	while (query_row(&q)) {
		const struct shown *to = map_get(by_run, query_get_int(&q));
		struct progress p = {.percent = (int)query_get_int(&q)};
		const char *text = query_get_text(&q);
		usec_t started_at, usual;

		if (text)
			sign_text(text, strlen(text), p.text);
		p.at = query_get_int(&q);
		started_at = query_get_int(&q);
		usual = query_get_int(&q);
		if (!to)
			continue;
		*to->progress = p;
		*to->estimated_end = progress_estimate(&p, started_at, usual, now);
	}
	return !q.failed;
}

bool run_progress_read(struct store *s, struct run *const *v, size_t n, usec_t now, struct err *e)
{
	struct shown *shown = xcalloc(n + 1, sizeof(*shown));
	AUTO_DONE(map) by_run = {};
	AUTO_SET ids = {};
	bool ok;

	for (size_t i = 0; i < n; i++) {
		if (v[i]->state != RUN_RUNNING)
			continue;
		shown[i] = (struct shown){&v[i]->progress, &v[i]->estimated_end};
		map_put(&by_run, v[i]->id, &shown[i]);
		set_id(&ids, v[i]->id);
	}
	ok = shown_read(s, &ids, &by_run, now, e);
	free(shown);
	return ok;
}

bool run_progress_read_jobs(struct store *s, struct job *const *v, size_t n, usec_t now, struct err *e)
{
	struct shown *shown = xcalloc(n + 1, sizeof(*shown));
	AUTO_DONE(map) by_run = {};
	AUTO_SET ids = {};
	bool ok;

	for (size_t i = 0; i < n; i++) {
		if (v[i]->last_run.id == 0 || v[i]->last_run.state != RUN_RUNNING)
			continue;
		shown[i] = (struct shown){&v[i]->last_run.progress, &v[i]->last_run.estimated_end};
		map_put(&by_run, v[i]->last_run.id, &shown[i]);
		set_id(&ids, v[i]->last_run.id);
	}
	ok = shown_read(s, &ids, &by_run, now, e);
	free(shown);
	return ok;
}
