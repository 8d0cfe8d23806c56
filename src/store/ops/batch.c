/* SPDX-License-Identifier: Apache-2.0 */
/* Commits a batch of operations; repeats them one by one after a failure. */
#include "store/ops/batch.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/batch_failpoints.h"
#include "store/ops/batch_wake.h"
#include "store/ops/node/leases.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/run_moves.h"
#include "store/ops/run/slot_density.h"
#include "store/outcomes.h"
#include "store/owner_counts.h"
#include "store/prefetch.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include "store/wakeup.h"
#include <time.h>

#define TRIES 6           /* of a batch, for any reason */
#define RECONNECT_MS 1000 /* how long a batch waits for a lost connection */
#define AHEAD_MAX 64      /* operations whose reads are sent together: their rows are kept, and all replies have one deadline */

/*
 * Groups apply all operations of one phase together; they run between operations without a phase.
 */
enum way { IN_GROUPS, ONE_BY_ONE };

struct batch {
	struct store *s;
	struct op *const *ops;
	size_t n;
	struct op **group; /* room for n */
	enum way way;
	bool no_growth;    /* the disk is full */
	bool repeatable;   /* a batch with an unknown commit is repeated without reading back its outcome */
	size_t moved;      /* runs that moved before this batch and are not written yet */
	bool exclusive;    /* an operation needs the lock of all writers, see batch_needs_exclusive() */
	bool leases;       /* only lease renewals: they must be fast, and no wake-up time depends on them */
	struct batch_wake wake;
	struct batch_wake_reads reads;
	struct row_ids_refill refill;
	size_t ahead_from, ahead_to; /* operations whose reads were sent together, maybe discarded since */
	size_t ahead_max;            /* of the next time */
};

/* Errors that end the whole transaction. Other errors concern one statement. */
static bool ends_batch(enum err_kind kind)
{
	return kind == ERR_BUSY || kind == ERR_FULL || kind == ERR_UNCERTAIN || kind == ERR_UNREACHABLE ||
	       kind == ERR_REFUSED;
}

/* SQLite has one writer at a time. */
static enum writers_lock batch_writers_lock(const struct batch *b)
{
	enum writers_lock least = WRITERS_FREE;

	if (b->exclusive || !b->s->db->ops->row_locks)
		return WRITERS_EXCLUSIVE;
	for (size_t i = 0; i < b->n; i++) {
		const struct op_info *info = op_info(b->ops[i]);
		enum writers_lock its = info->writers_of ? info->writers_of(b->ops[i]) : info->writers;

		least = its < least ? its : least;
	}
	return least == WRITERS_SHARED && b->s->older ? WRITERS_EXCLUSIVE : least;
}

/*
 * On PostgreSQL the lock of all writers is taken before all other locks. An exclusive holder locks
 * jobs, runs and permits in any order. Shared holders exclude each other by the rows of jobs. A
 * batch that only adds jobs writes rows that no other engine knows yet, and takes no lock here.
 *
 * A row lock that is shared by many never becomes free under load. So a shared holder first locks
 * its own row of 'writers', and an exclusive one first waits for the rows of all writers, which
 * keeps later shared holders out.
 */
static bool writers_lock(const struct batch *b, struct err *e)
{
	struct store *s = b->s;
	bool all = s->writers_lock == WRITERS_EXCLUSIVE;
	AUTO_QUERY gate = {};
	AUTO_QUERY q = {};

	if (!s->db->ops->row_locks || s->writers_lock == WRITERS_FREE)
		return true;
	gate = query_start(s->db, all ? Q_WRITERS_WAIT : Q_WRITER_ENTER, e);
	if (!all)
		query_text(&gate, s->writer);
	if (!query_finish(&gate))
		return false;
	q = query_start(s->db, all ? Q_WRITERS_EXCLUDE : Q_WRITERS_SHARE, e);
	return query_finish(&q);
}

bool batch_needs_exclusive(struct store *s, struct err *e)
{
	s->wants_exclusive = s->writers_lock != WRITERS_EXCLUSIVE;
	return !s->wants_exclusive || err_set(e, ERR_BUSY, "the batch is repeated under the lock of all writers");
}

/*
 * Locks the owners of which the batch takes names, keys or the last jobs that they may have, in
 * ascending order and before any job, run or limit.
 */
static bool owners_lock(const struct batch *b, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET owners = {};
	AUTO_SET jobs = {};

	if (!b->s->db->ops->row_locks)
		return true;
	for (size_t i = 0; i < b->n; i++)
		if (op_info(b->ops[i])->owners)
			op_info(b->ops[i])->owners(b->s, b->ops[i], &owners, &jobs);
	if (owners.n == 0 && jobs.n == 0)
		return true;
	q = query_start(b->s->db, Q_OWNERS_LOCK, e);
	set_bind(&q, &owners);
	set_bind(&q, &jobs);
	return query_finish(&q);
}

/*
 * Locks the jobs that the operations of a shared batch write, in ascending order and in one
 * statement. Claims and plans lock theirs later and skip those that are locked.
 */
static bool jobs_lock(const struct batch *b, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET jobs = {};
	AUTO_SET runs = {};

	if (b->s->writers_lock != WRITERS_SHARED)
		return true;
	for (size_t i = 0; i < b->n; i++)
		if (op_info(b->ops[i])->jobs)
			op_info(b->ops[i])->jobs(b->ops[i], &jobs, &runs);
	if (jobs.n == 0 && runs.n == 0)
		return true;
	q = query_start(b->s->db, Q_BATCH_JOBS_LOCK, e);
	set_bind(&q, &jobs);
	set_bind(&q, &runs);
	return query_finish(&q);
}

static bool run_phases(struct batch *b, size_t from, size_t to, struct err *e)
{
	for (int phase = 1; phase <= OP_PHASES; phase++) {
		size_t n = 0;

		for (size_t i = from; i < to; i++)
			if (b->ops[i]->ok && op_info(b->ops[i])->phase == phase)
				b->group[n++] = b->ops[i];
		if (n > 0 && !op_info(b->group[0])->apply(b->s, b->group, n, e))
			return false;
	}
	return true;
}

/* Whether it reads and writes one job only; others may write what was read for the operations behind them. */
static bool is_of_one_job(const struct op *op)
{
	const struct op_info *info = op_info(op);

	return info->prefetch && (!info->writers_of || info->writers_of(op) == WRITERS_SHARED);
}

/*
 * An operation may discard the reads of those behind it. Then at most twice as many operations as were served are the next
 * ones, so that a batch does not send the same reads again and again.
 */
static size_t ahead_next(const struct batch *b, size_t i)
{
	size_t served = i - b->ahead_from;

	if (i < b->ahead_to)
		return served < AHEAD_MAX / 2 ? 2 * served : AHEAD_MAX;
	return b->ahead_max < AHEAD_MAX / 2 ? 2 * b->ahead_max : AHEAD_MAX;
}

/* Sends the reads of the operations from the i-th on, as far as they can be sent together. Not on SQLite. */
static bool prefetch_send(struct batch *b, size_t i, struct err *e)
{
	struct store *s = b->s;

	b->ahead_max = b->ahead_to ? ahead_next(b, i) : AHEAD_MAX;
	b->ahead_from = b->ahead_to = i;
	if (!s->db->defer || !s->db->ops->prefetch)
		return true;
	while (b->ahead_to < b->n && b->ahead_to - i < b->ahead_max && is_of_one_job(b->ops[b->ahead_to])) {
		const struct op *op = b->ops[b->ahead_to];

		if (b->ahead_to == i)
			prefetch_begin(s);
		if (op->ok && !op_info(op)->prefetch(s, op, e))
			return false;
		if (s->prefetch.full)
			break;
		b->ahead_to++;
	}
	return true;
}

/* Applies one operation. Its reads may have been sent with those of the operations before it. */
static bool run_single(struct batch *b, size_t i, struct err *e)
{
	if ((i >= b->ahead_to || !b->s->prefetch.on) && !prefetch_send(b, i, e))
		return false;
	if (b->ops[i]->ok && !op_info(b->ops[i])->apply(b->s, &b->ops[i], 1, e))
		return false;
	if (i + 1 >= b->ahead_to)
		prefetch_drop(b->s);
	return true;
}

static bool run_in_groups(struct batch *b, struct err *e)
{
	size_t from = 0;

	b->ahead_from = b->ahead_to = 0;
	for (size_t i = 0; i < b->n; i++) {
		if (op_info(b->ops[i])->phase)
			continue;
		if (!run_phases(b, from, i, e))
			return false;
		if (!run_single(b, i, e))
			return false;
		from = i + 1;
	}
	return run_phases(b, from, b->n, e);
}

static bool run_one_by_one(struct batch *b, struct err *e)
{
	const struct db_ops *db = b->s->db->ops;

	for (size_t i = 0; i < b->n; i++) {
		struct op *op = b->ops[i];
		size_t mark = counters_mark(b->s), events = event_mark(b->s), noted = outcome_mark(b->s);

		if (!op->ok)
			continue;
		if (!db->savepoint(b->s->db, e))
			return false;
		if (!op_info(op)->apply(b->s, &op, 1, e) || !outcomes_write(b->s, e)) {
			if (ends_batch(e->kind))
				return false;
			op_reset(op); /* its results are rolled back, too */
			op->ok = false;
			op->err = *e;
		}
		if (!op->ok) {
			counters_rewind(b->s, mark);
			event_rewind(b->s, events);
			wakeup_claim_unknown(b->s);
			outcome_rewind(b->s, noted);
		}
		if (!(op->ok ? db->release : db->rollback_to)(b->s->db, e))
			return false;
	}
	return true;
}

/* Notifies other nodes once per batch, after its commit. */
static void peers_notify(struct batch *b)
{
	bool started = false;

	for (size_t i = 0; i < b->n; i++) {
		const struct op *op = b->ops[i];

		started = started || (op->ok && op->kind == OP_STARTED);
		if (op->ok && !op_info(op)->quiet && (!op_info(op)->phase || op->kind == OP_ENDED))
			wakeup_peers(b->s);
	}
	if (b->s->events.n > 0)
		wakeup_peers_of_events(b->s);
	wakeup_peers_send(b->s, started);
}

static bool commit_marker_write(const struct batch *b, struct err *e)
{
	struct store *s = b->s;
	AUTO_QUERY q = {};

	if (!s->db->ops->reconnects || b->repeatable)
		return true;
	q = query_start(s->db, Q_WRITER_PUT, e);
	query_text(&q, s->writer);
	query_int(&q, ++s->batch);
	query_int(&q, clock_now(s->clock));
	return query_finish(&q);
}

/*
 * Reads when the daemon must wake up next: for a slot, a pause, a deadline, a notice or a queued
 * run. On a server the rows come with the reply to COMMIT.
 */
static bool wake_times_send(struct batch *b, struct err *e)
{
	bool ok;

	b->wake = BATCH_WAKE_NEVER;
	if ((b->leases && b->s->db->ops->reconnects) || batch_wake_derive(b->s, b->ops, b->n, &b->wake))
		return true;
	for (size_t i = 0; i < b->n; i++)
		if (b->ops[i]->ok && !op_info(b->ops[i])->phase)
			wakeup_claim_unknown(b->s);
	if (!batch_wake_reads_send(&b->reads, b->s, e))
		return false;
	if (b->s->db->defer)
		return true;
	ok = batch_wake_reads_take(&b->reads, b->s, &b->wake);
	batch_wake_reads_done(&b->reads); /* SQLite cannot cut its log while a statement reads */
	return ok;
}

/* The batch is committed, so a failure here must not be one of the batch: the daemon looks at once. */
static void wake_times_take(struct batch *b)
{
	if (b->s->db->defer && b->reads.slot.db && !batch_wake_reads_take(&b->reads, b->s, &b->wake)) {
		b->wake = (struct batch_wake){};
		wakeup_claim_unknown(b->s);
	}
}

static void ops_reset(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		op_reset(b->ops[i]);
		if (b->no_growth && op_info(b->ops[i])->grows)
			op_refuse(b->ops[i], ERR_FULL, "no space left for the store; "
				"free some, then try again");
	}
}

static bool run_batch(struct batch *b, struct err *e)
{
	AUTO_TX tx = {};

	ops_reset(b);
	event_rewind(b->s, 0);
	b->s->notify = false;
	b->s->expiry_after = 0;
	if (b->leases && b->s->db->ops->transact) {
		b->wake = BATCH_WAKE_NEVER;
		return batch_failpoints(b->ops, b->n, false, e) && lease_renew_outside_tx(b->s, b->ops, b->n, e) && batch_failpoints(b->ops, b->n, true, e);
	}
	b->s->writers_lock = batch_writers_lock(b);
	b->s->wants_exclusive = false;
	b->s->db->defer = b->way == IN_GROUPS && b->s->db->ops->send;
	if (!tx_begin(&tx, b->s, true, e) || !writers_lock(b, e) || !owners_lock(b, e) ||
	    !jobs_lock(b, e) || !(b->way == IN_GROUPS ? run_in_groups(b, e) : run_one_by_one(b, e)) || !outcomes_write(b->s, e) ||
	    !counters_write(b->s, e) || !run_moves_write(b->s, b->ops, b->n, b->moved, e) || !commit_marker_write(b, e) ||
	    !wake_times_send(b, e) || !row_ids_refill_send(&b->refill, b->s, e) || !event_write(b->s, e) || !batch_failpoints(b->ops, b->n, false, e))
		return false;
	peers_notify(b);
	if (!tx_commit(&tx, e))
		return false;
	wake_times_take(b);
	row_ids_refill_take(&b->refill, b->s);
	slot_density_take(b->s);
	return batch_failpoints(b->ops, b->n, true, e);
}

/* One try of the batch. */
static bool try_batch(struct batch *b, struct err *e)
{
	bool ok = run_batch(b, e);

	batch_wake_reads_done(&b->reads);
	row_ids_refill_done(&b->refill);
	slot_density_done(b->s);
	prefetch_end(b->s);
	b->s->db->defer = false;
	return ok;
}

/*
 * Whether the last batch was committed, by the number in our row of 'writers'. Waits if the old
 * session is still committing it. The row lock is committed, too: that waits for the synchronous
 * standbys, so the row read is replicated as well.
 */
static bool commit_marker_read(struct store *s, bool *ret, bool *ret_forgotten, struct err *e)
{
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	if (!tx_begin(&tx, s, true, e))
		return false;
	q = query_start(s->db, Q_WRITER_GET, e);
	query_text(&q, s->writer);
	if (query_row(&q))
		*ret = query_get_int(&q) == s->batch;
	else
		*ret_forgotten = !q.failed;
	return !q.failed && !*ret_forgotten && tx_commit(&tx, e);
}

/* No other batch can run before the outcome is known, so this retries until the server answers. */
static bool commit_outcome_read(struct store *s, bool *ret, struct err *e)
{
	bool known = false, forgotten = false;

	db_wait_mark(s->db, true);
	do {
		*e = (struct err){}; /* forget the error of the commit */
		known = store_reconnect(s, RECONNECT_MS, e) && commit_marker_read(s, ret, &forgotten, e);
	} while (!known && !forgotten && e->kind != ERR_REFUSED && !s->db->leave_by);
	db_wait_mark(s->db, false);
	if (forgotten)
		return err_set(e, ERR_UNCERTAIN, "the store has no record of the last batch of this daemon");
	if (known || e->kind == ERR_REFUSED)
		return known;
	e->kind = ERR_UNCERTAIN;
	return err_wrap(e, "could not find out whether the last changes were stored");
}

static void backoff_sleep(int try)
{
	unsigned char jitter;

	io_random(&jitter, 1);
	nanosleep(&(struct timespec){.tv_nsec = (1 + jitter % 10) * (try + 1) * 1000000L}, NULL);
}

enum next { AGAIN, DONE, GIVE_UP };

/*
 * Whether a retry of this renewal could still finish in time. A later renewal extends the lease
 * further.
 */
static bool renewal_is_useful(const struct batch *b)
{
	const struct store *s = b->s;

	return !s->db->give_up_at || clock_boot(&clock_system) < s->db->give_up_at - s->lease / 4;
}

/* The batch was not committed, so the error is ERR_BUSY if no try is left. */
static enum next reconnect_for_retry(struct batch *b, struct err *e)
{
	bool there = store_reconnect(b->s, b->s->db->give_up_at ? 0 : RECONNECT_MS, e);

	e->kind = ERR_BUSY;
	return there && renewal_is_useful(b) ? AGAIN : GIVE_UP;
}

/* Decides what to do after a batch failed with *e. */
static enum next failure_action(struct batch *b, int try, struct err *e)
{
	const struct db_ops *db = b->s->db->ops;
	bool committed = false;

	switch (e->kind) {
	case ERR_UNREACHABLE:
		return reconnect_for_retry(b, e);
	case ERR_UNCERTAIN:
		if (db->reconnects && b->repeatable)
			return reconnect_for_retry(b, e); /* a repeated commit has the same effect */
		if (!db->reconnects || !commit_outcome_read(b->s, &committed, e))
			return GIVE_UP;
		err_set(e, ERR_BUSY, "the connection to the store was lost repeatedly"); /* the error if no try is left */
		return committed ? DONE : AGAIN;
	case ERR_BUSY:
		if (b->s->wants_exclusive) {
			b->exclusive = true;
			return AGAIN;
		}
		if (!db->reconnects)
			return GIVE_UP; /* SQLite has waited for the lock already */
		backoff_sleep(try);
		return renewal_is_useful(b) ? AGAIN : GIVE_UP;
	case ERR_FULL:
		if (b->no_growth)
			return GIVE_UP;
		db->reserve_release(b->s->db);
		b->no_growth = true;
		return AGAIN;
	case ERR_REFUSED:
		if (!b->s->gone_back)
			e->kind = ERR_UNCERTAIN; /* damage found while writing: stop, and refuse at the next start */
		return GIVE_UP;
	default:
		if (b->way == ONE_BY_ONE)
			return GIVE_UP;
		b->way = ONE_BY_ONE;
		return AGAIN;
	}
}

static void batch_classify(struct batch *b)
{
	b->leases = b->n > 0;
	b->repeatable = true;
	for (size_t i = 0; i < b->n; i++) {
		b->leases = b->leases && b->ops[i]->kind == OP_LEASE;
		b->repeatable = b->repeatable && op_info(b->ops[i])->repeatable;
	}
}

bool batch_apply(struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret, struct err *e)
{
	struct batch b = {.s = s, .ops = ops, .n = n, .moved = s->n_moved, .no_growth = !s->db->ops->reserve_held(s->db)};
	enum next next = s->read_only ? GIVE_UP : AGAIN;
	struct err why = {.kind = ERR_INTERNAL, .msg = "the store was opened for reading only"};

	if (next == AGAIN && claim_peek(s, ops, n, ret))
		return true;
	s->gave_way = false;
	s->may_yield = n == 1 && ops[0]->kind == OP_JOB_BULK && !s->db->ops->row_locks;
	b.group = xcalloc(n ? n : 1, sizeof(*b.group));
	batch_classify(&b);
	s->db->give_up_at = b.leases && s->lease ? clock_boot(&clock_system) + s->lease * 3 / 4 : 0;
	for (int try = 0; next == AGAIN && try < TRIES; try++) {
		if (try_batch(&b, &why)) {
			next = DONE;
		} else {
			wakeup_claim_unknown(s);
			wakeup_peers_lost(s);
			owner_counts_forget(s);
			next = failure_action(&b, try, &why);
		}
	}
	free(b.group);
	s->db->give_up_at = 0;
	if (next == DONE) {
		*ret = b.wake;
		ret->no_room = b.no_growth;
		ret->notify_pending = s->notify_pending || s->events_unseen || s->n_moved > 0;
		return true;
	}
	event_rewind(s, 0);
	if (!ends_batch(why.kind))
		why.kind = ERR_INTERNAL;
	for (size_t i = 0; i < n; i++) {
		op_reset(ops[i]);
		ops[i]->ok = false;
		ops[i]->err = why;
	}
	if (e)
		*e = why;
	return false;
}

