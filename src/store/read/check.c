/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the counters and the integrity of the store. */
#include "store/read/check.h"
#include "base/err.h"
#include "base/text.h"
#include "core/decide/durability.h"
#include "store/counters.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>

/* The counters, and the statements that recompute them. */
static const struct {
	enum count_what what;
	int query;
	const char *name;
} kept[] = {
	{COUNT_JOBS, Q_CHECK_JOBS, "jobs"},
	{COUNT_RUNS, Q_CHECK_RUNS, "runs"},
	{COUNT_OWNER, Q_CHECK_OWNERS, "live jobs of an owner"},
	{COUNT_ACTIVE, Q_CHECK_ACTIVE, "runs of an owner that go on"},
	{COUNT_OUTPUT, Q_CHECK_OUTPUTS, "bytes of output"},
	{COUNT_STORE, Q_CHECK_STORE, "bytes of an owner's rows"},
	{COUNT_DEAD, Q_CHECK_DEAD, "dead letters"},
};

bool backup_create(struct store *s, const char *path, struct err *e)
{
	if (!s->db->ops->backup)
		return err_set(e, ERR_INVALID, "this store is PostgreSQL's; back it up with 'pg_dump --schema=jobsched'");
	return s->db->ops->backup(s->db, path, e);
}

/* Collects the rows of a statement as counter changes; the stored counters are subtracted. */
static bool count_differences(struct store *s, int query, bool kept_ones, enum count_what what, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query, e);

	if (kept_ones)
		query_int(&q, what);
	while (query_row(&q)) {
		int64_t state = query_get_int(&q);
		AUTO_TEXT queue = query_get_copy(&q);

		counter_change(s, what, state, queue, kept_ones ? -query_get_int(&q) : query_get_int(&q));
	}
	return !q.failed;
}

static bool check_counts(struct store *s, struct strv *ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(kept); i++) {
		counters_rewind(s, 0);
		if (!count_differences(s, kept[i].query, false, kept[i].what, e) ||
		    !count_differences(s, Q_COUNTERS_IN, true, kept[i].what, e))
			return false;
		if (counters_differ(s))
			strv_take(ret, xprintf("the kept number of %s is not what there is", kept[i].name));
	}
	counters_rewind(s, 0);
	return true;
}

bool check_store(struct store *s, struct strv *ret, struct err *e)
{
	AUTO_TX tx = {};

	if (s->db->ops->check && !s->db->ops->check(s->db, ret, e))
		return false;
	return ret->n > 0 || (tx_begin(&tx, s, false, e) && check_counts(s, ret, e) && tx_commit(&tx, e));
}

static bool read_unsafe_settings(struct store *s, struct strv *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_UNSAFE_SETTINGS, e);

	while (query_row(&q))
		strv_take(ret, query_get_copy(&q));
	return !q.failed;
}

bool check_unsafe_settings(struct store *s, struct strv *ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && read_unsafe_settings(s, ret, e) && tx_commit(&tx, e);
}

/* ---- a copied store begins a new life ---- */

static bool run_with_time(struct store *s, int query, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query, e);

	query_int(&q, now);
	return query_finish(&q);
}

static bool run_unbound(struct store *s, int query, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, query, e);

	return query_finish(&q);
}

static bool skip_to_now(struct store *s, usec_t now, struct err *e)
{
	AUTO_QUERY q = {};

	if (!run_with_time(s, Q_RESTORE_MISSED, now, e))
		return false;
	q = query_start(s->db, Q_RESTORE_DUE, e);
	query_int(&q, now);
	query_int(&q, now % USEC_SEC ? now : now + 1); /* no whole second: the first slot is to be found from here */
	return query_finish(&q);
}

static bool check_recount(struct store *s, struct err *e)
{
	if (!run_unbound(s, Q_COUNTERS_CLEAR, e))
		return false;
	for (size_t i = 0; i < ELEMENTS(kept); i++)
		if (!count_differences(s, kept[i].query, false, kept[i].what, e))
			return false;
	return counters_write(s, e);
}

static bool forget_machine(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_DROP, e);

	query_text(&q, "machine");
	return query_finish(&q);
}

bool restore_reset(struct store *s, bool from_now, usec_t now, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, true, e) && run_with_time(s, Q_RESTORE_RUNS, now, e) && run_with_time(s, Q_RESTORE_ATTEMPTS, now, e) &&
	       run_unbound(s, Q_RESTORE_PLACES, e) && run_unbound(s, Q_LEADER_VOID, e) && run_with_time(s, Q_RESTORE_NODES, now, e) &&
	       (!from_now || skip_to_now(s, now, e)) && forget_machine(s, e) && check_recount(s, e) && tx_commit(&tx, e);
}

static bool read_durability(struct store *s, const char **ret, struct err *e)
{
	struct db_durability d;

	*ret = NULL;
	if (!s->db->ops->durability)
		return true;
	if (!s->db->ops->durability(s->db, &d, e))
		return false;
	*ret = durability_risk(&(struct durability_facts){.fsync = d.fsync, .full_page_writes = d.full_page_writes,
		.synchronous_commit = d.synchronous_commit, .synchronous_standby_names = d.synchronous_standby_names,
		.standbys = d.standbys, .servers = d.servers});
	return true;
}

bool check_durability(struct store *s, const char **ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && read_durability(s, ret, e) && tx_commit(&tx, e);
}
