/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings once a minute on a reader thread; logs a risk when it appears and when it is gone. */
#include "daemon/loop/store_risk.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_thread.h"
#include "store/read/check.h"
#include <systemd/sd-event.h>

#define READ_INTERVAL USEC_MIN

struct store_risk {
	struct store_thread *store;
	const struct store_outage *outage;
	sd_event_source *timer;
	const char *text; /* constant; NULL: no risk */
	bool reading;
};

/* A read under way. */
struct risk_task {
	struct read_task task;
	struct store_risk *owner; /* borrowed */
	const char *text;
	bool ok;
};

/* A failed read changes nothing: the outage of the store is reported elsewhere. */
static void on_risk_work(struct store *s, struct read_task *task)
{
	struct risk_task *t = (struct risk_task *)task;
	struct err e = {};

	t->ok = s && check_durability(s, &t->text, &e);
}

static void on_risk_done(struct read_task *task)
{
	struct risk_task *t = (struct risk_task *)task;
	struct store_risk *r = t->owner;

	r->reading = false;
	if (t->ok && t->text && t->text != r->text)
		log_warning("%s; see 'Failover of the database' in jobsched-cluster(7)", t->text);
	if (t->ok && !t->text && r->text)
		log_info("the settings of the database server keep acknowledged work again");
	if (t->ok)
		r->text = t->text;
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
	store_thread_read(r->store, &t->task);
	return 0;
}

bool store_risk_watch(struct sd_event *ev, struct store_thread *store, const struct store_outage *outage, struct store_risk **ret,
	struct err *e)
{
	struct store_risk *r = xcalloc(1, sizeof(*r));
	int error;

	r->store = store;
	r->outage = outage;
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
	free(r);
}

const char *store_risk_text(const struct store_risk *r)
{
	return r ? r->text : NULL;
}
