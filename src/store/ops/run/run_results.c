/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of runs. */
#include "store/ops/run/run_results.h"
#include "base/text.h"
#include "store/ops/owner_quota.h"
#include "store/store_private.h"
#include <string.h>

void results_new_done(struct results_new *n)
{
	set_done(&n->drop);
	set_done(&n->put);
}

void results_new_add(struct store *s, struct results_new *n, int64_t run, int64_t uid, usec_t slot, bool first,
	const struct strv *lines)
{
	if (!first)
		set_id(&n->drop, run);
	for (size_t i = 0; i < lines->n; i++) {
		const char *line = lines->v[i];
		size_t key = strcspn(line, "=");
		AUTO_TEXT name = xstrndup(line, key);

		set_item(&n->put);
		set_int(&n->put, "run", run);
		set_text(&n->put, "key", name);
		set_text(&n->put, "value", line + key + 1);
		set_int(&n->put, "uid", uid);
		set_int(&n->put, "slot", slot);
		owner_quota_add(s, uid, RESULT_BYTES + (int64_t)strlen(line) - 1);
	}
}

bool results_new_write(struct store *s, struct results_new *n, struct err *e)
{
	AUTO_QUERY q = {};

	if (n->drop.n > 0) {
		q = query_start(s->db, Q_RESULTS_PRUNE, e);
		set_bind(&q, &n->drop);
		if (!owner_quota_subtract_rows(s, &q))
			return false;
	}
	return set_execute(s, Q_RESULTS_PUT, &n->put, e);
}
