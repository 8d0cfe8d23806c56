/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the results of runs. */
#include "store/read/run_results.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/set.h"
#include "store/store_private.h"

bool run_results_read(struct store *s, struct run *const *v, size_t n, struct err *e)
{
	AUTO_DONE(map) by_run = {};
	AUTO_SET ids = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < n; i++)
		if (v[i]->attempt > 0 && !map_get(&by_run, v[i]->id)) {
			map_put(&by_run, v[i]->id, v[i]);
			set_id(&ids, v[i]->id);
		}
	if (ids.n == 0)
		return true;
	q = query_start(s->db, Q_RESULTS_GET, e);
	set_bind(&q, &ids);
	while (query_row(&q)) {
		struct run *r = map_get(&by_run, query_get_int(&q));
		AUTO_TEXT key = query_get_copy(&q);
		const char *value = query_get_text(&q);

		if (r)
			strv_take(&r->results, xprintf("%s=%s", key ? key : "", value ? value : ""));
	}
	return !q.failed;
}
