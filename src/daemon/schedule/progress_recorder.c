/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the progress of active runs and writes it to the store once a second. */
#include "daemon/schedule/progress_recorder.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/active_run.h"
#include "exec/proto/spawn_client.h"
#include "store/ops/op.h"
#include "store/ops/run/run_progress.h"
#include <string.h>
#include <systemd/sd-event.h>

#define WRITE_INTERVAL USEC_SEC
#define EVENT_STEP 10 /* percent between two events of an attempt */

struct progress_recorder {
	struct store_thread *store;
	struct active_runs *all;
	sd_event_source *timer;
};

/* Progress that could not be written is lost; the next sign replaces it. */
static void on_progress_written(struct op *op, void *arg)
{
	(void)arg;
	if (!op->ok)
		log_debug("could not record progress: %s", op->err.msg);
	op_free(op);
}

static void timer_arm(struct progress_recorder *p)
{
	int enabled = SD_EVENT_OFF;

	sd_event_source_get_enabled(p->timer, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	sd_event_source_set_time_relative(p->timer, (uint64_t)WRITE_INTERVAL);
	sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

/* An attempt has at most one event per EVENT_STEP percent. */
static bool event_wanted(struct active_run *a)
{
	int step = a->progress.percent / EVENT_STEP;

	if (a->progress.percent == SIGN_PERCENT_NONE || step < a->progress_events)
		return false;
	a->progress_events = step + 1;
	return true;
}

static void row_take(struct active_run *a, struct op_progress *o)
{
	o->v = xgrow(o->v, o->n, sizeof(*o->v));
	o->v[o->n++] = (struct run_progress_row){.run = a->run->id, .fence = a->run->fence, .progress = a->progress,
		.event = event_wanted(a)};
	a->progress_waiting = false;
}

static void submit(struct progress_recorder *p, struct op *op)
{
	op->patient = true;
	store_thread_submit(p->store, op);
}

static int on_progress_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct progress_recorder *p = arg;
	struct op *op = op_new(OP_PROGRESS, on_progress_written, p);
	struct active_run *a;

	(void)source;
	(void)usec;
	for (size_t i = 0; run_progress_op(op)->n < RUN_PROGRESS_MAX && (a = map_next(&p->all->by_run, &i));)
		if (a->progress_waiting)
			row_take(a, run_progress_op(op));
	if (run_progress_op(op)->n == RUN_PROGRESS_MAX)
		timer_arm(p); /* there may be more */
	submit(p, op);
	return 0;
}

void progress_recorder_note(struct progress_recorder *p, const struct spawn_report *r)
{
	struct active_run *a = active_runs_get(p->all, r->run, r->fence);

	if (!a || a->stage == ACTIVE_RUN_ENDED)
		return;
	a->progress.percent = (int)r->percent;
	sign_text(r->text, strlen(r->text), a->progress.text);
	a->progress.at = r->at;
	a->progress_waiting = true;
	timer_arm(p);
}

void progress_recorder_flush(struct progress_recorder *p, struct active_run *a)
{
	struct op *op;

	if (!a->progress_waiting)
		return;
	op = op_new(OP_PROGRESS, on_progress_written, p);
	row_take(a, run_progress_op(op));
	submit(p, op);
}

bool progress_recorder_new(struct sd_event *ev, struct store_thread *store, struct active_runs *all,
	struct progress_recorder **ret, struct err *e)
{
	AUTO(progress_recorder) *p = xcalloc(1, sizeof(*p));
	int r;

	*p = (struct progress_recorder){.store = store, .all = all};
	r = sd_event_add_time(ev, &p->timer, CLOCK_BOOTTIME, 0, 1, on_progress_timer, p);
	if (r < 0 || (r = sd_event_source_set_enabled(p->timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(p);
	return true;
}

void progress_recorder_free(struct progress_recorder *p)
{
	if (!p)
		return;
	sd_event_source_disable_unref(p->timer);
	free(p);
}
