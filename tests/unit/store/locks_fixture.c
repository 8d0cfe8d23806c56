/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that wait for locks of others, and gates between a snapshot and its locks. */
#include "unit/store/locks_fixture.h"
#include "base/text.h"
#include "store/ops/run/triggers.h"
#include <stdlib.h>
#include <time.h>

usec_t busy_end = T0 + USEC_MIN + USEC_SEC;

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;
	struct op *ops[] = {w->op, w->second};
	struct err e = {};

	w->ok = batch_apply(w->s, ops, w->second ? 2 : 1, &(struct batch_wake){}, &e);
	return NULL;
}

void waiter_start_both(struct waiter *w, struct store *s, struct op *op, struct op *second)
{
	*w = (struct waiter){.s = s, .op = op, .second = second};
	pthread_create(&w->thread, NULL, waiter_main, w);
}

void waiter_start(struct waiter *w, struct store *s, struct op *op)
{
	waiter_start_both(w, s, op, NULL);
}

void waiter_end(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	assert_true(w->ok);
}

void waiter_join(struct waiter *w)
{
	waiter_end(w);
	assert_true(w->op->ok && (!w->second || w->second->ok));
}

void wait_for_waiters(void **state, int n)
{
	for (int i = 0; i < 1000; i++) {
		AUTO_TEXT waiting = ask(state, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted");

		if (atoi(waiting) >= n)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	fail_msg("%d sessions never waited for a lock", n);
}

void add_gate(void **state, const char *text, int pid)
{
	sql(state, "CREATE FUNCTION pass(job bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
		"IF position($t$%s$t$ IN current_query()) > 0 AND %d IN (0, pg_backend_pid()) THEN PERFORM pg_advisory_xact_lock_shared(7); END IF; RETURN true; END $$", text, pid);
	sql(state, "ALTER TABLE jobs RENAME TO all_jobs; CREATE VIEW jobs AS SELECT * FROM all_jobs WHERE pass(id)");
	sql(state, "SELECT pg_advisory_lock(7)"); /* closed */
}

void gate_open(void **state)
{
	sql(state, "SELECT pg_advisory_unlock(7)");
}

static struct run *triggered(struct store *s, int64_t job, usec_t now)
{
	AUTO(op) *op = op_new(OP_TRIGGER, NULL, NULL);

	op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .now = now);
	assert_true(apply_one(s, op));
	return STEAL(trigger_op(op)->run);
}

int64_t add_busy(struct store *s, struct run **ret_running)
{
	int64_t id = add_due(s, NULL, T0 + USEC_MIN);
	AUTO(op) *plan = op_plan(every_second, &busy_end, T0 + USEC_MIN);
	AUTO(run) *first = triggered(s, id, T0);
	AUTO(run) *queued = NULL;

	*ret_running = claim_one(s, T0);
	assert_non_null(*ret_running);
	assert_int_equal((*ret_running)->id, first->id);
	start_run(s, *ret_running, T0);
	assert_true(apply_one(s, plan));
	queued = triggered(s, id, T0 + 1);
	return id;
}
