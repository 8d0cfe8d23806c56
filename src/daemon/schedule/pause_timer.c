/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store to change the pauses that are due. */
#include "daemon/schedule/pause_timer.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/op.h"
#include <stdbool.h>

#define RETRY_DELAY USEC_SEC /* after the store refused the operation */

struct pause_timer {
	const struct clock *clock;
	struct store_thread *store;
	usec_t end, not_before;
	bool ending, stopped;
};

struct pause_timer *pause_timer_new(const struct clock *clock, struct store_thread *store)
{
	struct pause_timer *p = xcalloc(1, sizeof(*p));

	*p = (struct pause_timer){.clock = clock, .store = store, .end = USEC_NEVER};
	return p;
}

void pause_timer_free(struct pause_timer *p)
{
	free(p);
}

void pause_timer_set_end(struct pause_timer *p, usec_t at)
{
	p->end = at;
}

void pause_timer_stop(struct pause_timer *p)
{
	p->stopped = true;
}

static void on_pauses_ended(struct op *op, void *arg)
{
	struct pause_timer *p = arg;
	const struct op_pauses_end *o = pause_times_op(op);

	p->ending = false;
	if (!op->ok) {
		p->not_before = clock_now(p->clock) + RETRY_DELAY;
		log_warning("could not begin or end pauses, trying again in 1 s: %s", op->err.msg);
	} else if (o->begun > 0) {
		log_info("pauses of %zu jobs have begun", o->begun);
	} else if (o->jobs + o->scopes > 0) {
		log_info("pauses have ended: %zu of jobs, %zu others; %zu held runs may start",
			o->jobs, o->scopes, o->released);
	}
	op_free(op);
}

usec_t pause_timer_pump(struct pause_timer *p)
{
	usec_t now = clock_now(p->clock), at = p->end;
	struct op *op;

	if (p->stopped || p->ending || p->end == USEC_NEVER)
		return USEC_NEVER;
	if (p->not_before > now + RETRY_DELAY)
		p->not_before = 0; /* the clock has been set back */
	if (at < p->not_before)
		at = p->not_before;
	if (at > now)
		return at;
	op = op_new(OP_PAUSES_END, on_pauses_ended, p);
	pause_times_op(op)->now = now;
	p->ending = true;
	store_thread_submit(p->store, op);
	return USEC_NEVER;
}
