/* SPDX-License-Identifier: Apache-2.0 */
/* Reads with each batch when the daemon must look at the store next. */
#include "store/ops/batch_wake.h"
#include "core/job/job.h"
#include "store/ops/job/jobs.h"
#include "store/ops/notices_due.h"
#include "store/ops/op.h"
#include "store/store_private.h"
#include "store/wakeup.h"

#define KEPT_FOR USEC_SEC

void batch_wake_reads_done(struct batch_wake_reads *r)
{
	query_done(&r->slot);
	query_done(&r->lanes);
	query_done(&r->notices);
}

/* On a server the owners are asked for without looking first, because that would be a round trip. */
static bool notices_wait(struct store *s, bool *ret, struct err *e)
{
	AUTO_QUERY q = {};

	*ret = s->db->defer;
	if (*ret)
		return true;
	q = query_start(s->db, Q_NOTICES_ANY, e);
	*ret = query_row(&q);
	return !q.failed;
}

bool batch_wake_reads_send(struct batch_wake_reads *r, struct store *s, struct err *e)
{
	bool notices;

	batch_wake_reads_done(r);
	if (!notices_wait(s, &notices, e))
		return false;
	if (!s->claim_wakeup.known)
		r->lanes = query_start(s->db, Q_LANES, e);
	r->slot = query_start(s->db, Q_DUE_FIRST, e);
	query_int(&r->slot, s->segments);
	if (notices)
		r->notices = query_start(s->db, Q_NOTICES_OWNERS, e);
	return !s->db->defer || ((!r->lanes.db || query_send(&r->lanes)) && query_send(&r->slot) && query_send(&r->notices));
}

static usec_t never_if_none(usec_t t)
{
	return t ? t : USEC_NEVER;
}

bool batch_wake_reads_take(struct batch_wake_reads *r, struct store *s, struct batch_wake *ret)
{
	*ret = BATCH_WAKE_NEVER;
	if (r->lanes.db && !wakeup_claim_read(s, &r->lanes))
		return false;
	ret->next_due = s->claim_wakeup.at;
	if (query_row(&r->slot)) {
		ret->next_slot = never_if_none(query_get_int(&r->slot));
		ret->pause_end = never_if_none(query_get_int(&r->slot));
		ret->expiry = never_if_none(query_get_int(&r->slot));
		if (ret->expiry < s->expiry_after)
			ret->expiry = s->expiry_after;
	}
	if (r->slot.failed || (r->notices.db && !notices_due_first(s, &r->notices, &ret->next_notice)))
		return false;
	s->wake_kept.slot = ret->next_slot;
	s->wake_kept.notice = ret->next_notice;
	s->wake_kept.pause_end = ret->pause_end;
	s->wake_kept.expiry = ret->expiry;
	s->wake_kept.at = clock_boot(s->clock);
	return true;
}

/* Whether a new job changes only the next wake-ups of the planner and of the claim. */
static bool job_is_plain(const struct job_new *j)
{
	return !j->paused && !(j->run_at && (j->policy.deadline || j->policy.expires));
}

bool batch_wake_derive(const struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret)
{
	if (!s->db->defer || !s->claim_wakeup.known || !s->wake_kept.at || clock_boot(s->clock) - s->wake_kept.at >= KEPT_FOR)
		return false;
	*ret = (struct batch_wake){.next_slot = s->wake_kept.slot, .next_due = s->claim_wakeup.at, .next_notice = s->wake_kept.notice,
		.pause_end = s->wake_kept.pause_end, .expiry = s->wake_kept.expiry};
	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = ops[i]->kind == OP_JOB_ADD ? &job_add_op(ops[i])->job : NULL;

		if (!j || !job_is_plain(j))
			return false;
		if (ops[i]->ok && j->next_slot && j->next_slot < ret->next_slot && s->segments >> job_segment((uint64_t)j->id) & 1)
			ret->next_slot = j->next_slot;
	}
	return true;
}
