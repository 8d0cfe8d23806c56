/* SPDX-License-Identifier: Apache-2.0 */
/* Sets no timer of its own: the engine calls expiry_pump() when the first queued run expires. */
#include "daemon/schedule/expiry.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/op.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/runs.h"
#include <stdbool.h>

#define RETRY_DELAY USEC_SEC /* after the store refused the operation */

struct expiry {
	const struct clock *clock;
	struct store_thread *store;
	struct run_watch_set *run_watch_set;
	usec_t last_start, not_before;
	bool under_way, stopped;
};

struct expiry *expiry_new(const struct clock *clock, struct store_thread *store,
	struct run_watch_set *run_watch_set)
{
	struct expiry *x = xcalloc(1, sizeof(*x));

	*x = (struct expiry){.clock = clock, .store = store, .run_watch_set = run_watch_set, .last_start = USEC_NEVER};
	return x;
}

void expiry_free(struct expiry *x)
{
	free(x);
}

void expiry_set_time(struct expiry *x, usec_t last_start)
{
	x->last_start = last_start;
}

void expiry_stop(struct expiry *x)
{
	x->stopped = true;
}

static void on_expired(struct op *op, void *arg)
{
	struct expiry *x = arg;
	const struct run_changes *l = &expired_runs_op(op)->expired;

	x->under_way = false;
	if (!op->ok) {
		x->not_before = clock_now(x->clock) + RETRY_DELAY;
		log_warning("could not expire runs, retrying in 1 s: %s", op->err.msg);
	}
	for (size_t i = 0; op->ok && i < l->n; i++)
		run_watch_notify(x->run_watch_set, l->v[i].job, l->v[i].run, l->v[i].state);
	op_free(op);
}

usec_t expiry_pump(struct expiry *x)
{
	usec_t now = clock_now(x->clock), at;
	struct op *op;

	if (x->stopped || x->under_way || x->last_start == USEC_NEVER)
		return USEC_NEVER;
	at = x->last_start + 1; /* a run may still start exactly at its deadline */
	if (x->not_before > now + RETRY_DELAY)
		x->not_before = 0; /* the clock has been set back */
	if (at < x->not_before)
		at = x->not_before;
	if (at > now)
		return at;
	op = op_new(OP_EXPIRE, on_expired, x);
	expired_runs_op(op)->now = now;
	x->under_way = true;
	store_thread_submit(x->store, op);
	return USEC_NEVER;
}
