/* SPDX-License-Identifier: Apache-2.0 */
/* Expires queued runs at the last moment at which they may start, whatever holds them up. */
#include "core/decide/claim.h"
#include "store/store_private.h"

#define STEP 500 /* runs in one transaction; the next follows at once */

static const char *held_by(const struct store *s, const char *reason, const char *queue, int64_t uid, usec_t due_at)
{
	return reason ? reason : lane_shut_at(s, queue, uid) >= due_at ? "limit" : NULL;
}

static bool find(struct store *s, const struct op_expire *o, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_TOO_LATE, e);

	query_int(&q, o->now);
	query_int(&q, STEP);
	while (query_row(&q)) {
		struct start_policy policy = {};
		AUTO_TEXT queue = NULL;
		int64_t run, uid, attempt;
		usec_t slot, due_at;
		bool expires;

		run = query_get_int(&q);
		uid = query_get_int(&q);
		queue = query_get_copy(&q);
		slot = query_get_int(&q);
		due_at = query_get_int(&q);
		attempt = query_get_int(&q);
		policy.deadline = query_get_int(&q);
		policy.expires = query_get_int(&q);
		claim_last_start(&policy, slot, attempt, &expires);
		set_item(ret);
		set_int(ret, "run", run);
		set_int(ret, "state", RUN_EXPIRED);
		set_text(ret, "reason", claim_expiry_reason(held_by(s, query_get_text(&q), queue, uid, due_at), expires));
	}
	return !q.failed;
}

bool apply_expire(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_expire *o = &ops[i]->expire;
		AUTO_SET runs = {};
		AUTO_SET jobs = {};

		if (!find(s, o, &runs, e) || !runs_settle(s, &runs, o->now, &o->expired, &jobs, e) ||
		    (jobs.n > 0 && !jobs_settle(s, set_json(&jobs), o->now, NULL, e)))
			return false;
	}
	return true;
}
