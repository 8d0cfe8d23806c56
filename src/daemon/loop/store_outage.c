/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the store threads twice a second while they have work. */
#include "daemon/loop/store_outage.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/config.h"
#include "daemon/loop/store_thread.h"
#include "store/backend/lock_holder.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-event.h>

#define CHECK_INTERVAL (500 * USEC_MSEC)
#define STALL USEC_SEC                 /* a thread that waits longer for the store has no answer */
/* The same for SQLite: a busy disk or another writer may take that long. */
#define FILE_PATIENCE (3 * USEC_SEC)
/* Then clients of operations under way are told that the result is unknown. */
#define UNKNOWN_AFTER (3 * USEC_SEC)

struct store_outage {
	struct store_outage_options o;
	sd_event_source *timer;
	bool armed;
	usec_t seen[2];          /* start of the wait of each thread, as of the last check */
	usec_t since;            /* boottime; 0: the store answers */
	usec_t since_wall;
	char why[300];
	struct lock_holder holder; /* the process that holds the file; pid 0: unknown */
	/* boottime: since then the same process has held the file, in the same state */
	usec_t held_since;
	bool kill_failed;
};

static usec_t outage_boottime(const struct store_outage *o)
{
	return clock_boot(o->o.clock);
}

/* ---- another process holds the file ---- */

static void watch_holder(struct store_outage *o)
{
	struct lock_holder h = {};
	bool same;

	lock_holder_find(o->o.where, &h); /* finds none for a server */
	same = h.pid && h.pid == o->holder.pid && h.started == o->holder.started &&
	       h.state == o->holder.state;
	o->holder = h;
	if (!same)
		o->held_since = outage_boottime(o);
	if (!same && h.pid && h.state == 'T')
		log_warning("the store is held by pid %d, which is stopped%s", h.pid,
			h.ours ? ": a node in the middle of a transaction; it will be killed if it stays stopped"
			       : "");
	if (!same || !h.ours || h.state != 'T' ||
		outage_boottime(o) - o->held_since < o->o.hold_max)
		return;
	if (lock_holder_kill(o->o.where, &h))
		log_error("killed pid %d: it was stopped and has held the store for %" PRId64 " s",
			h.pid, (outage_boottime(o) - o->held_since) / USEC_SEC);
	else if (!o->kill_failed)
		log_error("could not kill pid %d, which holds the store: %m", h.pid);
	o->kill_failed = true;
}

/* ---- begin and end of an outage ---- */

static void outage_explain(struct store_outage *o, const struct store_health *h)
{
	if (o->holder.pid)
		snprintf(o->why, sizeof(o->why),
			"store held by pid %d (state %c) for %" PRId64 " s", o->holder.pid,
			o->holder.state,
			(outage_boottime(o) -
				(o->held_since < o->since ? o->held_since : o->since)) /
				USEC_SEC);
	else if (h->fails_since)
		snprintf(o->why, sizeof(o->why), "%.*s", (int)sizeof(o->why) - 1, h->why);
	else
		snprintf(o->why, sizeof(o->why), "no answer from %s",
			config_store_is_server(o->o.where) ? "PostgreSQL" : "its file system");
}

static void outage_begin(struct store_outage *o, usec_t since)
{
	o->since = since;
	o->since_wall = clock_now(o->o.clock) - (outage_boottime(o) - since);
	o->kill_failed = false;
}

static void outage_end(struct store_outage *o)
{
	log_info("the store answers again, after %" PRId64 " s",
		(outage_boottime(o) - o->since + USEC_SEC / 2) / USEC_SEC);
	o->since = 0;
	o->holder = (struct lock_holder){};
}

/*
 * Since when this thread has had no answer; 0: it has one. The same wait must be seen in two
 * checks, because a pause of this process looks like one of the store. During an outage, a new wait
 * is not an answer: a dead connection is followed by the attempt to connect.
 */
static usec_t stalled_since(struct store_outage *o, size_t i, const struct store_health *h)
{
	bool stays = h->waits_since && h->waits_since == o->seen[i] &&
		     outage_boottime(o) - h->waits_since >= STALL;

	o->seen[i] = h->waits_since;
	if (h->fails_since)
		return h->fails_since;
	if (o->since && h->busy && h->answered < o->since)
		return o->since;
	return stays ? h->waits_since : 0;
}

static void check_threads(struct store_outage *o)
{
	struct store_health worst = {};
	struct err why = {};
	usec_t since = 0;
	bool busy = false, was_away = o->since != 0;

	for (size_t i = 0; i < ELEMENTS(o->o.threads) && o->o.threads[i]; i++) {
		struct store_health h;
		usec_t held;

		store_thread_health(o->o.threads[i], &h);
		held = stalled_since(o, i, &h);
		busy = busy || h.busy || h.fails_since;
		if (held && (!since || held < since))
			since = held;
		if (h.fails_since)
			worst = h; /* an error message says more than a missing answer */
	}
	if (since)
		watch_holder(o);
	if (since && !was_away && !worst.fails_since && !config_store_is_server(o->o.where) &&
		o->holder.state != 'T' && outage_boottime(o) - since < FILE_PATIENCE)
		since = 0;
	if (since && !was_away)
		outage_begin(o, since);
	else if (!since && was_away)
		outage_end(o);
	if (since) {
		outage_explain(o, &worst);
		if (!was_away)
			log_warning("the store is unavailable, requests are refused: %s", o->why);
		store_outage_since(o, &why);
		o->o.on_away(&why, outage_boottime(o) - since >= UNKNOWN_AFTER, o->o.arg);
	}
	o->armed = false;
	if (busy)
		store_outage_watch(o);
}

static int on_check_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	check_threads(arg);
	return 0;
}

void store_outage_watch(struct store_outage *o)
{
	if (o->armed)
		return;
	o->armed = true;
	sd_event_source_set_time_relative(o->timer, CHECK_INTERVAL);
	sd_event_source_set_enabled(o->timer, SD_EVENT_ONESHOT);
}

usec_t store_outage_since(const struct store_outage *o, struct err *why)
{
	if (!o || !o->since)
		return 0;
	err_set(why, ERR_BUSY, "the store has been unavailable for %" PRId64 " s: %s; try again",
		(outage_boottime(o) - o->since) / USEC_SEC, o->why);
	return o->since_wall;
}

bool store_outage_new(struct sd_event *ev, const struct store_outage_options *options,
	struct store_outage **ret, struct err *e)
{
	AUTO(store_outage) *o = xcalloc(1, sizeof(*o));
	int r = sd_event_add_time(
		ev, &o->timer, CLOCK_MONOTONIC, 0, CHECK_INTERVAL / 5, on_check_timer, o);

	o->o = *options;
	if (r < 0 || (r = sd_event_source_set_enabled(o->timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(o);
	return true;
}

void store_outage_free(struct store_outage *o)
{
	if (!o)
		return;
	sd_event_source_disable_unref(o->timer);
	free(o);
}
