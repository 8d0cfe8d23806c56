/* SPDX-License-Identifier: Apache-2.0 */
/* The store handle: open, close, reconnect. */
#include "store/store.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAVE_WAIT (2 * USEC_SEC) /* for a statement in progress when the daemon ends */

bool store_reconnect(struct store *s, int wait_ms, struct err *e)
{
	if (s->db->leave_by)
		return err_set(e, ERR_UNREACHABLE, "the store is being closed");
	row_ids_forget(s);
	s->events_numbered = false; /* these two are read again: the connection may lead to another server, for example a promoted replica */
	s->term_checked = 0;
	return s->db->ops->reconnect(s->db, wait_ms, e);
}

void store_expect_term(struct store *s, int64_t term)
{
	if (s->db->ops->reconnects)
		s->term = term;
}

usec_t store_waits_since(const struct store *s)
{
	return s->db->waits_since;
}

int64_t store_round_trips(const struct store *s)
{
	return s->db->round_trips;
}

void store_leave(struct store *s)
{
	s->db->leave_by = clock_boot(&clock_system) + LEAVE_WAIT;
}

static bool read_id(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_GET, e);

	query_text(&q, "store_id");
	if (query_row(&q))
		snprintf(s->id, sizeof(s->id), "%s", query_get_text(&q));
	else if (!q.failed)
		return err_set(e, ERR_REFUSED, "the store has no id: it is damaged; "
			"restore a backup with 'jobctl db restore FILE'");
	return !q.failed;
}

/*
 * Inserts the row in which each batch records its number. After a lost connection it tells whether
 * the last batch was committed.
 */
static bool open_writer(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_WRITER_OPEN, e);
	char id[RANDOM_ID_LEN + 1];

	io_random_id(id);
	snprintf(s->writer, sizeof(s->writer), "2-3-%s", id);
	query_text(&q, s->writer);
	query_int(&q, clock_now(s->clock));
	return query_finish(&q);
}

static void close_writer(struct store *s)
{
	struct err ignored;
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	if (!tx_begin(&tx, s, true, &ignored))
		return;
	q = query_start(s->db, Q_WRITER_CLOSE, &ignored);
	query_text(&q, s->writer);
	query_int(&q, clock_now(s->clock) - 7 * USEC_DAY);
	if (query_finish(&q))
		tx_commit(&tx, &ignored);
}

static bool put_machine(struct store *s, const char *machine, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_PUT, e);

	query_text(&q, "machine");
	query_text(&q, machine);
	return query_finish(&q);
}

/*
 * Refuses a file that belongs to another machine: if a copied file were used on both, every job
 * would run twice. A PostgreSQL server serves many machines.
 */
static bool claim_file(struct store *s, const struct db_options *o, struct err *e)
{
	AUTO_TEXT owner = NULL;
	AUTO_QUERY q = {};

	if (!o->machine || s->read_only || s->db->ops->reconnects)
		return true;
	q = query_start(s->db, Q_META_GET, e);
	query_text(&q, "machine");
	if (query_row(&q))
		owner = query_get_copy(&q);
	if (q.failed)
		return false;
	query_done(&q);
	if (!owner || (o->takeover && strcmp(owner, o->machine) != 0))
		return put_machine(s, o->machine, e);
	return strcmp(owner, o->machine) == 0 ||
	       err_set(e, ERR_REFUSED, "store '%s' belongs to another machine: if both use it, every job runs twice; if it "
		       "was moved here for good, start once with --takeover", o->where);
}

static bool open_rows(struct store *s, const struct db_options *o, struct err *e)
{
	bool writer = s->db->ops->reconnects && !s->read_only;
	AUTO_TX tx = {};

	return s->db->ops->prepare(s->db, e) && tx_begin(&tx, s, writer || (o->machine && !s->read_only), e) && read_id(s, e) &&
	       claim_file(s, o, e) && (!writer || (events_open(s, e) && open_writer(s, e))) && tx_commit(&tx, e);
}

bool store_open_with(const struct db_ops *ops, const struct db_options *options, struct store **ret, struct err *e)
{
	AUTO(store) *s = xcalloc(1, sizeof(*s));
	struct db_options with_clock = *options, *o = &with_clock;
	struct err ignored;

	if (!e)
		e = &ignored;
	s->read_only = o->read_only;
	if (!o->clock)
		o->clock = &clock_system;
	s->clock = o->clock;
	s->lease = o->lease;
	s->node_name = xstrdup("");
	s->segments = -1;
	if (!ops->open(o, &s->db, e))
		return false;
	if (!open_rows(s, o, e)) /* the address of a server may contain a password */
		return ops->reconnects || strstr(e->msg, o->where) ? false : err_wrap(e, "'%s'", o->where);
	*ret = STEAL(s);
	return true;
}

bool store_open(const struct store_options *o, struct store **ret, struct err *e)
{
	const struct db_ops *ops = db_ops_for(o->where, e);
	const struct db_options options = {
		.where = o->where,
		.read_only = o->read_only,
		.no_checkpoint = o->no_checkpoint,
		.machine = o->machine,
		.takeover = o->takeover,
		.lease = o->lease,
		.clock = o->clock,
	};

	if (!ops || !store_open_with(ops, &options, ret, e))
		return false;
	(*ret)->note_all = o->note_all;
	return true;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	if (s->db) {
		db_assert_owner(s->db);
		if (s->writer[0])
			close_writer(s);
		s->db->ops->close(s->db);
	}
	counters_rewind(s, 0);
	row_ids_free(s);
	prefetch_free(s);
	free(s->counts);
	for (size_t i = 0; i < ELEMENTS(s->closed_lanes); i++)
		free(s->closed_lanes[i].queue);
	free(s->lane_last.queue);
	event_list_done(&s->events);
	free(s->noted);
	free(s->densities.v);
	free(s->notices_held);
	free(s->moved);
	free(s->node_name);
	free(s);
}

const char *store_id(const struct store *s)
{
	return s->id;
}

void store_set_yield(struct store *s, store_yield_fn *fn, void *arg)
{
	s->yield = fn;
	s->yield_arg = arg;
}

bool store_gave_way(const struct store *s)
{
	return s->gave_way;
}

bool store_give_way(struct store *s, struct err *e)
{
	s->gave_way = s->gave_way || (s->may_yield && s->yield && s->yield(s->yield_arg));
	return s->gave_way && !err_set(e, ERR_BUSY, "the bulk gives way to a due run");
}
