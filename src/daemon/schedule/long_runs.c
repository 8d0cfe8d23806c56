/* SPDX-License-Identifier: Apache-2.0 */
/* Where runs and notices meet: runs that take unusually long, and the spawner, which runs the commands of both. */
#include "base/err.h"
#include "base/log.h"
#include "core/job/notice.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/op.h"
#include <inttypes.h>

/* ---- unusually long ---- */

static void on_long_run_noted(struct op *op, void *arg)
{
	(void)arg;
	if (!op->ok)
		log_warning("could not note that run %" PRId64 " takes long: %s", op->notice_add.run, op->err.msg);
	op_free(op);
}

static void add_long_run_notice(struct active_run *f, void *arg)
{
	struct dispatcher *d = arg;
	struct op *op = op_new(OP_NOTICE_ADD, on_long_run_noted, d);

	op->notice_add = (struct op_notice_add){.uid = -1, .job = f->run->job, .run = f->run->id, .kind = NOTICE_KIND_LONG,
		.now = clock_now(d->o.clock)};
	op->patient = true;
	store_thread_submit(d->o.store, op);
}

static void long_timer_set(struct dispatcher *d, usec_t at, usec_t now)
{
	d->long_at = at;
	if (at != USEC_NEVER)
		sd_event_source_set_time_relative(d->long_timer, at > now ? (uint64_t)(at - now) : 0);
	sd_event_source_set_enabled(d->long_timer, at == USEC_NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_long_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatcher *d = arg;
	usec_t now = clock_now(d->o.clock);

	(void)source;
	(void)usec;
	long_timer_set(d, active_runs_overlong(&d->active_runs, now, add_long_run_notice, d), now);
	return 0;
}

bool long_runs_timer_new(struct dispatcher *d, struct err *e)
{
	int r = sd_event_add_time(d->ev, &d->long_timer, CLOCK_BOOTTIME, 0, 1, on_long_timer, d);

	d->long_at = USEC_NEVER;
	if (r < 0 || (r = sd_event_source_set_enabled(d->long_timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	return true;
}

void long_runs_watch(struct dispatcher *d, struct active_run *f)
{
	usec_t after = notice_long_after(f->typical);

	if (after >= USEC_NEVER - f->end.started_at)
		return;
	f->long_at = f->end.started_at + after;
	if (f->long_at < d->long_at)
		long_timer_set(d, f->long_at, clock_now(d->o.clock));
}

/* ---- commands of notices ---- */

bool dispatcher_start_notice(struct dispatcher *d, const struct plan *p, struct err *e)
{
	if (!d->spawner_ready)
		return err_set(e, ERR_BUSY, "there is no spawner at the moment");
	return spawn_client_start(d->spawner, p, e);
}

void dispatcher_notice_settled(struct dispatcher *d, int64_t run, int64_t fence)
{
	if (!d->spawner)
		return;
	spawn_client_ack(d->spawner, run, fence);
	spawn_client_forget_output(d->spawner, run, fence);
}

bool dispatcher_notice_report(struct dispatcher *d, const struct spawn_report *r)
{
	bool for_both = r->kind == SPAWN_LIST_DONE || r->kind == SPAWN_GONE;

	if (d->o.on_notice && (for_both || r->run < 0))
		d->o.on_notice(r, d->o.arg);
	return !for_both && r->run < 0;
}
