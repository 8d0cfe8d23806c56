/* SPDX-License-Identifier: Apache-2.0 */
/* Reads with each batch when the daemon must look at the store next. */
#include "store/ops/batch_wake.h"
#include "store/ops/notices_due.h"
#include "store/store_private.h"
#include "store/wakeup.h"

void batch_wake_reads_done(struct batch_wake_reads *r)
{
	query_done(&r->slot);
	query_done(&r->lanes);
	query_done(&r->notices);
}

bool batch_wake_reads_send(struct batch_wake_reads *r, struct store *s, struct err *e)
{
	batch_wake_reads_done(r);
	if (!s->claim_wakeup.known)
		r->lanes = query_start(s->db, Q_LANES, e);
	r->slot = query_start(s->db, Q_DUE_FIRST, e);
	query_int(&r->slot, s->segments);
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
	}
	return !r->slot.failed && notices_due_first(s, &r->notices, &ret->next_notice);
}
