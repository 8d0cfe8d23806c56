/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the audit events of a batch, inserted with its commit. On a server their numbers follow the numbers of
 * transactions, so that readers know up to which number no event is missing ('order of events' in HACKING).
 */
#include "store/events.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdio.h>

#define CHUNK 1000 /* events per statement; adding many jobs makes many events */
#define CHUNK_ALONE 500 /* on SQLite, where a bulk may give way between chunks */
#define SLOT 16000 /* events per slot of numbers; a multiple of CHUNK, at most the 16384 numbers of a slot */
#define OPENING_MAX USEC_MIN /* an engine opens its node within this time after the store */

void event_add(struct store *s, const struct event_new *n)
{
	event_list_add(&s->events, event_make(n));
}

size_t event_mark(const struct store *s)
{
	return s->events.n;
}

void event_rewind(struct store *s, size_t mark)
{
	event_list_cut(&s->events, mark);
}

/* Leaves out NULL members: most events have no node and no detail. */
static void set_some(struct set *set, const char *name, const char *v)
{
	if (v)
		set_text(set, name, v);
}

static void event_describe(struct set *set, const struct event *ev)
{
	set_item(set);
	set_int(set, "at", ev->at);
	set_int(set, "uid", ev->uid);
	set_int(set, "owner", ev->owner);
	set_some(set, "who", ev->who);
	set_some(set, "origin", ev->origin);
	set_text(set, "what", event_what_name(ev->what));
	set_some(set, "object", ev->object);
	set_int(set, "job", ev->job);
	set_int(set, "run", ev->run);
	set_some(set, "node", ev->node);
	set_text(set, "result", ev->result);
	set_some(set, "detail", ev->detail);
}

/* ---- the order on a server ---- */

static bool events_lock(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_EVENTS_LOCK, e);

	return query_finish(&q);
}

/* The first batch after the last node of an earlier version has left begins with the numbers of transactions. */
static bool events_number(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_EVENTS_NUMBER, e);

	query_int(&q, clock_now(s->clock) - OPENING_MAX);
	query_text(&q, s->events_server);
	return query_finish(&q);
}

static bool events_order(struct store *s, struct err *e)
{
	if (!s->db->ops->reconnects || s->events_numbered)
		return true;
	return events_lock(s, e) && (s->db->no_xids || events_number(s, e));
}

static bool read_server(struct store *s, struct err *e)
{
	AUTO_QUERY allowed = query_start(s->db, Q_EVENTS_SERVER_KNOWN, e);
	AUTO_QUERY q = {};

	if (!query_row(&allowed) || !query_get_int(&allowed))
		return !allowed.failed;
	q = query_start(s->db, Q_EVENTS_SERVER, e);
	if (query_row(&q))
		snprintf(s->events_server, sizeof(s->events_server), "%s", query_get_text(&q));
	return !q.failed;
}

static bool raise_numbers(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_EVENTS_RAISE, e);

	query_text(&q, s->events_server);
	query_int(&q, clock_now(s->clock));
	return query_finish(&q);
}

bool events_open(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};

	if (s->db->no_xids)
		return true;
	if (!read_server(s, e) || !raise_numbers(s, e))
		return false;
	q = query_start(s->db, Q_EVENTS_NUMBERED, e);
	if (query_row(&q))
		s->events_numbered = query_get_int(&q) > 0;
	return !q.failed;
}

/* ---- write ---- */

/*
 * A slot has 16384 numbers. Each further slot of a batch is that of a subtransaction, which no other transaction has, and
 * which readers do not pass before the batch has ended, because the number of its transaction is lower.
 */
static bool next_slot(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};

	if (!s->db->ops->savepoint(s->db, e))
		return false;
	q = query_start(s->db, Q_WRITER_PUT, e);
	query_text(&q, s->writer);
	query_int(&q, s->batch);
	query_int(&q, clock_now(s->clock));
	return query_finish(&q) && s->db->ops->release(s->db, e);
}

static bool insert_events(struct store *s, struct set *set, size_t slot, struct err *e)
{
	AUTO_QUERY q = {};

	if (!s->db->ops->reconnects || s->db->no_xids)
		return set_execute(s, Q_EVENTS_INSERT, set, e);
	q = query_start(s->db, Q_EVENTS_INSERT_NUMBERED, e);
	set_bind(&q, set);
	query_int(&q, (int64_t)slot);
	query_text(&q, s->writer);
	return query_finish(&q);
}

bool event_write(struct store *s, struct err *e)
{
	size_t chunk = s->db->ops->row_locks ? CHUNK : CHUNK_ALONE;

	if (s->events.n > 0 && !events_order(s, e))
		return false;
	for (size_t from = 0; from < s->events.n; from += chunk) {
		AUTO_SET set = {};

		if (store_give_way(s, e))
			return false;
		if (from > 0 && from % SLOT == 0 && s->db->ops->reconnects && !next_slot(s, e))
			return false;
		for (size_t i = from; i < s->events.n && i < from + chunk; i++) {
			event_describe(&set, s->events.v[i]);
			if (s->db->ops->reconnects && !s->db->no_xids)
				set_int(&set, "n", (int64_t)(i % SLOT));
		}
		if (!insert_events(s, &set, from / SLOT, e))
			return false;
	}
	return true;
}

void event_take_written(struct store *s, struct event_list *ret)
{
	*ret = s->events;
	s->events = (struct event_list){};
}

