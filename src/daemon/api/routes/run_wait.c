/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one run, once or until it has ended. */
#include "daemon/api/routes/run_wait.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/log.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include "daemon/loop/run_watch.h"
#include "store/lists.h"
#include "store/read/run_progress.h"
#include "store/read/run_results.h"
#include "store/read/single.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>
#include <systemd/sd-event.h>

void run_wait_write_attempts(struct buf *out, const struct attempt_list *l)
{
	buf_char(out, '[');
	for (size_t i = 0; i < l->n; i++) {
		json_t *o = row_json_attempt(l->v[i]);

		if (i > 0)
			buf_char(out, ',');
		json_value_write(o, out);
		json_decref(o);
	}
	buf_char(out, ']');
}

static bool read_run_with_attempts(struct store *s, struct store_read *q, struct err *e)
{
	struct run_wait_read *l = (struct run_wait_read *)q;

	if (!store_run_get(s, q->scope, l->id, &l->run, e) ||
		!store_attempts(s, l->id, &l->attempts, e) ||
		!why_facts_mark_runs(s, &l->live, &l->run, 1, e) ||
		!run_progress_read(s, &l->run, 1, l->live.now, e) || !run_results_read(s, &l->run, 1, e))
		return false;
	store_read_write_run(&q->out, l->run);
	q->out.len--; /* the closing brace follows after the attempts */
	buf_str(&q->out, ",\"attempts\":");
	run_wait_write_attempts(&q->out, &l->attempts);
	buf_str(&q->out, "}\n");
	return true;
}

static void free_run_read(struct store_read *q)
{
	struct run_wait_read *l = (struct run_wait_read *)q;

	run_free(l->run);
	attempt_list_done(&l->attempts);
	free(l);
}

void run_wait_read_start(struct request *r, int64_t id,
	void (*then)(struct request *r, struct store_read *q))
{
	struct run_wait_read *l = xcalloc(1, sizeof(*l));

	l->id = id;
	why_facts_live(r, &l->live);
	l->q.run = read_run_with_attempts;
	l->q.then = then;
	l->q.free = free_run_read;
	store_read_start(r, &l->q);
}

/* ---- waiting for the end ---- */

struct wait {
	int64_t run;
	struct run_watch *watch;
	sd_event_source *timer;
	bool again;  /* the run changed during a read */
	bool over;   /* the timeout has passed */
};

static void wait_stop(struct wait *w)
{
	run_watch_free(STEAL(w->watch));
	w->timer = sd_event_source_disable_unref(w->timer);
}

static void wait_free(void *data)
{
	struct wait *w = data;

	wait_stop(w);
	free(w);
}

static void wait_gone(struct request *r)
{
	wait_stop(r->data);
}

static void on_wait_read(struct request *r, struct store_read *q);

static void read_awaited_again(struct request *r)
{
	struct wait *w = r->data;

	if (r->ticket)
		w->again = true;
	else
		run_wait_read_start(r, w->run, on_wait_read);
}

static void on_awaited_run_moved(int64_t job, int64_t run, enum run_state state, void *arg)
{
	struct request *r = arg;
	const struct wait *w = r->data;

	(void)job;
	/* run 0: all queued runs of the job */
	if ((run == w->run || run == 0) && run_state_final(state))
		read_awaited_again(r);
}

static int on_time_over(sd_event_source *src, uint64_t when, void *arg)
{
	struct request *r = arg;
	struct wait *w = r->data;

	(void)src;
	(void)when;
	w->over = true;
	read_awaited_again(r);
	return 0;
}

static void wait_begin(struct request *r, int64_t job)
{
	struct wait *w = r->data;
	uint64_t usec = (uint64_t)request_number(r, "wait", 0) * USEC_SEC;
	int e = sd_event_add_time_relative(request_event(r), &w->timer, CLOCK_MONOTONIC, usec, 1,
		on_time_over, r);

	if (e < 0) {
		log_warning("could not wait for run %lld: %s", (long long)w->run, strerror(-e));
		w->over = true;
	}
	w->watch = run_watch_new(r->context->run_watch_set, job, 0, on_awaited_run_moved, r);
	r->on_gone = wait_gone;
	request_watch_client(r);
}

static void on_wait_read(struct request *r, struct store_read *q)
{
	struct wait *w = r->data;
	const struct run_wait_read *l = (const struct run_wait_read *)q;

	if (run_state_final(l->run->state) || w->over) {
		wait_stop(w);
		request_answer_text(r, 200, &q->out);
	} else if (!w->watch) {
		/* read the run again, because it may have ended before the watch was set */
		wait_begin(r, l->run->job);
		run_wait_read_start(r, w->run, on_wait_read);
	} else if (w->again) {
		w->again = false;
		run_wait_read_start(r, w->run, on_wait_read);
	}
}

void run_wait_start(struct request *r, int64_t id)
{
	struct wait *w = xcalloc(1, sizeof(*w));

	w->run = id;
	r->data = w;
	r->data_free = wait_free;
	run_wait_read_start(r, id, on_wait_read);
}
