/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns a number to each owner (a uid with a user name). */
#include "store/ops/owners.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "store/counters.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"
#include "store/tx.h"

static bool owner_find(struct store *s, int64_t uid, const char *name, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_OWNER_FIND, e);

	*ret = -1;
	query_int(&q, uid);
	query_text(&q, name);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

static bool owner_insert(struct store *s, const struct op_owner *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_OWNER_ADD, e);

	query_int(&q, o->uid);
	query_text(&q, o->name);
	query_int(&q, o->now);
	return query_finish(&q);
}

bool owner_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_owner *o = owner_op(ops[i]);

		if (!owner_find(s, o->uid, o->name, &o->number, e))
			return false;
		if (o->number >= 0)
			continue;
		if (!owner_insert(s, o, e) || !owner_find(s, o->uid, o->name, &o->number, e))
			return false;
		/* another name was assigned to this uid at the same time */
		if (o->number < 0)
			op_refuse(ops[i], ERR_BUSY, "uid %u was assigned to another user name at the same time; try again", o->uid);
	}
	return true;
}

bool owner_read_number(struct store *s, uint32_t uid, const char *name, int64_t *ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && owner_find(s, uid, name, ret, e) && tx_commit(&tx, e);
}

static bool owner_find_named(struct store *s, const char *name, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_OWNER_NAMED, e);

	*ret = -1;
	query_text(&q, name);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

bool owner_read_named(struct store *s, const char *name, int64_t *ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && owner_find_named(s, name, ret, e) && tx_commit(&tx, e);
}

static bool owner_counter_read(struct store *s, enum count_what what, int64_t number, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTER_GET, e);

	query_int(&q, what);
	query_int(&q, number);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

bool owner_read_counts(struct store *s, int64_t number, int64_t *ret_jobs, int64_t *ret_active, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && owner_counter_read(s, COUNT_OWNER, number, ret_jobs, e) &&
	       owner_counter_read(s, COUNT_ACTIVE, number, ret_active, e) && tx_commit(&tx, e);
}

bool owner_live_jobs(struct store *s, int64_t uid, int64_t job, int64_t *ret, struct err *e)
{
	if (!owner_count_now(s, COUNT_OWNER, uid, job, ret, e))
		return false;
	*ret += counter_pending(s, COUNT_OWNER, uid);
	return true;
}
