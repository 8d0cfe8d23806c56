/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads on a reader thread: once a minute the settings of the server, every ten seconds whether events wait for a transaction.
 * Logs either when it appears and when it is gone.
 */
#include "daemon/loop/store_risk.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_thread.h"
#include "store/read/check.h"
#include "store/read/events_held.h"
#include <inttypes.h>
#include <systemd/sd-event.h>

#define READ_INTERVAL (10 * USEC_SEC)
#define SETTINGS_EVERY 6          /* reads */
#define HELD_MAX (5 * USEC_SEC)   /* events that wait for longer are reported */

struct store_risk {
	struct store_thread *store;
	const struct store_outage *outage;
	const struct clock *clock;
	sd_event_source *timer;
	const char *text; /* constant; NULL: no risk */
	char *held;       /* owned; NULL: no event waits for long */
	int64_t reads;
	bool reading;
};

/* A read under way. */
struct risk_task {
	struct read_task task;
	struct store_risk *owner; /* borrowed */
	const struct clock *clock;
	const char *text;
	usec_t held_at;
	char *holder;             /* owned; NULL: unknown */
	bool settings, ok;
};

static bool is_late(const struct risk_task *t)
{
	return t->held_at > 0 && clock_now(t->clock) - t->held_at > HELD_MAX;
}

/* A failed read changes nothing: the outage of the store is reported elsewhere. */
static void on_risk_work(struct store *s, struct read_task *task)
{
	struct risk_task *t = (struct risk_task *)task;
	struct err e = {};

	t->ok = s && (!t->settings || check_durability(s, &t->text, &e)) && events_held_since(s, &t->held_at, &e) &&
		(!is_late(t) || events_held_by(s, &t->holder, &e));
}

static void take_settings(struct store_risk *r, const char *text)
{
	if (text && text != r->text)
		log_warning("%s; see 'Failover of the database' in jobsched-cluster(7)", text);
	if (!text && r->text)
		log_info("the settings of the database server keep acknowledged work again");
	r->text = text;
}

static void take_held(struct store_risk *r, const struct risk_task *t)
{
	bool was = r->held != NULL;

	free(STEAL(r->held));
	if (is_late(t))
		r->held = xprintf("event streams are %" PRId64 " s behind, because a transaction on the server is open: %s",
			(clock_now(r->clock) - t->held_at) / USEC_SEC, t->holder ? t->holder : "unknown");
	if (r->held && !was)
		log_warning("%s; see 'Events' in jobsched-cluster(7)", r->held);
	if (!r->held && was)
		log_info("event streams are no longer behind");
}

static void on_risk_done(struct read_task *task)
{
	struct risk_task *t = (struct risk_task *)task;
	struct store_risk *r = t->owner;

	r->reading = false;
	if (t->ok && t->settings)
		take_settings(r, t->text);
	if (t->ok)
		take_held(r, t);
	free(t->holder);
	free(t);
}

static int on_risk_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct store_risk *r = arg;
	struct risk_task *t;

	(void)usec;
	sd_event_source_set_time_relative(source, (uint64_t)READ_INTERVAL);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	if (r->reading || store_outage_since(r->outage, NULL))
		return 0;
	r->reading = true;
	t = xcalloc(1, sizeof(*t));
	t->task.work = on_risk_work;
	t->task.done = on_risk_done;
	t->owner = r;
	t->clock = r->clock;
	t->settings = r->reads++ % SETTINGS_EVERY == 0;
	store_thread_read(r->store, &t->task);
	return 0;
}

bool store_risk_watch(struct sd_event *ev, struct store_thread *store, const struct store_outage *outage,
	const struct clock *clock, struct store_risk **ret, struct err *e)
{
	struct store_risk *r = xcalloc(1, sizeof(*r));
	int error;

	r->store = store;
	r->outage = outage;
	r->clock = clock;
	error = sd_event_add_time_relative(ev, &r->timer, CLOCK_MONOTONIC, 0, (uint64_t)USEC_SEC, on_risk_timer, r);
	if (error < 0) {
		free(r);
		return err_errno(e, -error, "could not set a timer");
	}
	*ret = r;
	return true;
}

void store_risk_stop(struct store_risk *r)
{
	if (r)
		r->timer = sd_event_source_disable_unref(r->timer);
}

void store_risk_free(struct store_risk *r)
{
	store_risk_stop(r);
	if (r)
		free(r->held);
	free(r);
}

const char *store_risk_text(const struct store_risk *r)
{
	return r ? r->text : NULL;
}

const char *store_risk_held(const struct store_risk *r)
{
	return r ? r->held : NULL;
}
