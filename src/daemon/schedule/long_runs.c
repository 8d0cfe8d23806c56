/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store for a notice when a run exceeds its usual duration. */
#include "daemon/schedule/long_runs.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/notice.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/active_run.h"
#include "store/ops/notices.h"
#include "store/ops/op.h"
#include <inttypes.h>
#include <systemd/sd-event.h>

struct long_runs {
	const struct clock *clock;
	struct store_thread *store;
	struct active_runs *all;
	sd_event_source *timer;
	usec_t at; /* when the timer expires; USEC_NEVER: it is off */
};

static void on_notice_added(struct op *op, void *arg)
{
	(void)arg;
	if (!op->ok)
		log_warning("could not add a notice that run %" PRId64 " takes unusually long: %s",
			notice_add_op(op)->run, op->err.msg);
	op_free(op);
}

static void add_notice(struct active_run *a, void *arg)
{
	struct long_runs *l = arg;
	struct op *op = op_new(OP_NOTICE_ADD, on_notice_added, l);

	op_fill(notice_add_op(op), .uid = -1, .job = a->run->job, .run = a->run->id,
		.kind = NOTICE_KIND_LONG, .now = clock_now(l->clock));
	op->patient = true;
	store_thread_submit(l->store, op);
}

static void set_timer_at(struct long_runs *l, usec_t at, usec_t now)
{
	l->at = at;
	if (at != USEC_NEVER)
		sd_event_source_set_time_relative(l->timer, at > now ? (uint64_t)(at - now) : 0);
	sd_event_source_set_enabled(l->timer, at == USEC_NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_long_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct long_runs *l = arg;
	usec_t now = clock_now(l->clock);

	(void)source;
	(void)usec;
	set_timer_at(l, active_runs_overlong(l->all, now, add_notice, l), now);
	return 0;
}

bool long_runs_new(struct sd_event *ev, const struct clock *clock, struct store_thread *store,
	struct active_runs *all, struct long_runs **ret, struct err *e)
{
	AUTO(long_runs) *l = xcalloc(1, sizeof(*l));
	int r;

	*l = (struct long_runs){.clock = clock, .store = store, .all = all, .at = USEC_NEVER};
	r = sd_event_add_time(ev, &l->timer, CLOCK_BOOTTIME, 0, 1, on_long_timer, l);
	if (r < 0 || (r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(l);
	return true;
}

void long_runs_free(struct long_runs *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->timer);
	free(l);
}

void long_runs_watch(struct long_runs *l, struct active_run *a)
{
	usec_t after = notice_long_after(a->typical);

	if (after >= USEC_NEVER - a->end.started_at)
		return;
	a->long_at = a->end.started_at + after;
	if (a->long_at < l->at)
		set_timer_at(l, a->long_at, clock_now(l->clock));
}
