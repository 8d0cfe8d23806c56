/* SPDX-License-Identifier: Apache-2.0 */
/* When a claim can find runs, and whether other nodes are notified. */
#include "store/wakeup.h"
#include "core/time/slots.h"
#include "store/store_private.h"

#define NOTIFY_PAUSE (100 * USEC_MSEC) /* between two notifications, and between two about starts */
#define EVENTS_PAUSE USEC_SEC          /* between two notifications about events only */

void wakeup_claim_by(struct store *s, usec_t due_at)
{
	if (due_at < s->claim_wakeup.at)
		s->claim_wakeup.at = due_at;
	if (s->others > 0 && due_at <= clock_now(s->clock) + SLOTS_LOOKAHEAD)
		wakeup_peers(s);
}

void wakeup_claim_unknown(struct store *s)
{
	s->claim_wakeup = (struct claim_wakeup){};
}

void wakeup_claim_drained(struct store *s)
{
	s->claim_wakeup = (struct claim_wakeup){.known = true, .at = USEC_NEVER};
}

/* Lanes that a limit closes are included; the next claim finds that out. */
bool wakeup_claim_read(struct store *s, struct query *lanes)
{
	struct claim_wakeup first = {.known = true, .at = USEC_NEVER};

	while (query_row(lanes)) {
		usec_t due;

		query_get_text(lanes);
		query_get_int(lanes);
		query_get_int(lanes);
		due = query_get_int(lanes);
		if (due < first.at)
			first.at = due;
	}
	if (!lanes->failed)
		s->claim_wakeup = first;
	return !lanes->failed;
}

static bool notified_recently(const struct store *s)
{
	return clock_boot(s->clock) - s->notified_at < NOTIFY_PAUSE;
}

/* SQLite peers watch the file; only PostgreSQL needs NOTIFY. */
void wakeup_peers(struct store *s)
{
	if (s->others > 0 && notified_recently(s))
		s->notify_pending = s->db->ops->reconnects;
	else if (s->others > 0)
		s->notify = true;
}

/* Any other notification makes the other nodes look for events, too. */
void wakeup_peers_of_events(struct store *s)
{
	s->events_unseen = s->others > 0 && s->db->ops->reconnects;
}

/*
 * A client of another node may follow the output of a run that started. These notifications are
 * counted separately.
 */
static bool start_is_notified(struct store *s)
{
	usec_t now = clock_boot(s->clock);

	if (s->others == 0 || now - s->start_notified_at < NOTIFY_PAUSE)
		return false;
	s->start_notified_at = now;
	return true;
}

void wakeup_peers_send(struct store *s, bool started)
{
	bool start = started && start_is_notified(s);

	if (s->notify_pending && !notified_recently(s))
		s->notify = true;
	if (s->events_unseen && clock_boot(s->clock) - s->notified_at >= EVENTS_PAUSE)
		s->notify = true;
	if (!s->notify && !start)
		return;
	if (s->notify) {
		s->notified_at = clock_boot(s->clock);
		s->notify_pending = false;
		s->events_unseen = false;
	}
	if (s->db->ops->notify)
		s->db->ops->notify(s->db);
}

void wakeup_peers_lost(struct store *s)
{
	s->notify_pending |= s->notify && s->db->ops->reconnects;
}
