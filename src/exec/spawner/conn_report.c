/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the reports of workers to the connected daemon. */
#include "base/auto.h"
#include "base/failpoint.h"
#include "exec/child/sandbox.h"
#include "exec/spawner/conn.h"
#include "exec/spawner/table_reader.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_results.h"
#include "exec/worker/workers.h"

static void started_frame(struct frame *f, const struct worker *w)
{
	f->started = (struct frame_started){.run = w->run, .fence = w->fence, .attempt = w->attempt,
		.pid = w->pid, .started_at = w->started_at};
}

static void not_started_frame(struct frame *f, const struct worker *w)
{
	f->not_started = (struct frame_not_started){.run = w->run, .fence = w->fence, .attempt = w->attempt,
		.reason = w->reason};
	frame_text(f->not_started.error, FRAME_TEXT_MAX, w->error);
}

static const struct {
	enum worker_report_kind kind;
	enum frame_type type;
	void (*fill)(struct frame *f, const struct worker *w);
} reports[] = {
	{REPORT_STARTED, FRAME_STARTED, started_frame},
	{REPORT_HAS, FRAME_HAS, started_frame},
	{REPORT_NOT_STARTED, FRAME_NOT_STARTED, not_started_frame},
	{REPORT_PROGRESS, FRAME_PROGRESS, worker_signs_frame},
	{REPORT_ENDED, FRAME_ENDED, worker_end_frame},
};

/* The results are sent from the beginning if the socket was full. */
static bool results_report(struct conn *c, const struct worker *w)
{
	struct frame f;
	size_t at = 0;

	if (c->version < 5)
		return true;
	frame_init(&f, FRAME_RESULT, c->version);
	while (worker_results_frame(&f, w, &at))
		if (!conn_send(c, &f))
			return false;
	return true;
}

/*
 * False: the socket buffer is full or the connection is closed; unsent reports stay with the
 * worker.
 */
static bool worker_report(struct conn *c, struct worker *w)
{
	for (size_t i = 0; i < ELEMENTS(reports); i++) {
		struct frame f;

		if (!(w->reports & reports[i].kind))
			continue;
		if (reports[i].kind == REPORT_STARTED)
			failpoint_pass(FP_SPAWN_TELL);
		else if (reports[i].kind == REPORT_ENDED)
			failpoint_pass(FP_END_TELL);
		if (reports[i].kind == REPORT_ENDED && !results_report(c, w))
			return false;
		frame_init(&f, reports[i].type, c->version);
		reports[i].fill(&f, w);
		if (c->version < 4 && f.type == FRAME_ENDED && f.ended.outcome == ATTEMPT_STALLED)
			f.ended.outcome = ATTEMPT_TIMED_OUT;
		if (c->version < 5 && f.type == FRAME_ENDED && f.ended.outcome == ATTEMPT_GATED)
			f.ended.outcome = ATTEMPT_FAILED;
		if ((c->version >= 4 || f.type != FRAME_PROGRESS) && !conn_send(c, &f))
			return false;
		w->reports &= ~(unsigned)reports[i].kind;
	}
	if (w->phase == WORKER_NOT_STARTED)
		worker_forget(w);
	return true;
}

static void sandboxes_report(struct conn *c, const struct sandbox_set *s)
{
	struct frame f;

	frame_init(&f, FRAME_SANDBOXES, c->version);
	c->sandboxes_pending = !conn_send_with(c, &f, &s->offers, 1);
}

static void tables_report(struct conn *c, struct table_reader *t)
{
	struct frame f;

	frame_init(&f, FRAME_TABLES, c->version);
	t->changed = !conn_send_with(c, &f, &t->list, 1);
}

void conns_report(struct conns *cs)
{
	struct worker *w;
	struct frame f;

	if (cs->daemon && !cs->daemon->full && cs->daemon->sandboxes_pending)
		sandboxes_report(cs->daemon, cs->workers->sandboxes);
	if (cs->daemon && !cs->daemon->full && cs->tables->changed && cs->daemon->version >= 3)
		tables_report(cs->daemon, cs->tables);
	while (cs->daemon && !cs->daemon->full && (w = workers_report_next(cs->workers)))
		if (!worker_report(cs->daemon, w)) {
			if (cs->daemon)
				worker_report_queue(w, 0);
			else if (w->phase == WORKER_NOT_STARTED)
				worker_forget(w);
		}
	frame_init(&f, FRAME_LIST_DONE, cs->daemon ? cs->daemon->version : 0);
	while (cs->daemon && !cs->daemon->full && cs->daemon->lists && conn_send(cs->daemon, &f))
		cs->daemon->lists--;
}
