/* SPDX-License-Identifier: Apache-2.0 */
/* The planner: when it submits operations, and that it repeats refused ones. */
#include "base/err.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/planner.h"
#include "store/ops/op.h"
#include "store/ops/run/boot_runs.h"
#include "unit/unit.h"
#include <stdlib.h>

/* Keeps the last operation until the test answers it. */
struct store_thread {
	struct op *op;
	int submitted;
};

static usec_t now;

static usec_t now_is(void *arg)
{
	(void)arg;
	return now;
}

static const struct clock test_clock = {now_is, now_is, NULL};

void store_thread_submit(struct store_thread *t, struct op *op)
{
	assert_null(t->op);
	t->op = op;
	t->submitted++;
}

static void answer(struct store_thread *t, enum err_kind kind)
{
	struct op *op = t->op;

	assert_non_null(op);
	t->op = NULL;
	op->ok = kind == ERR_NONE;
	op->err = (struct err){.kind = kind, .msg = "set by the test"};
	op->on_done(op, op->arg);
}

/* A store that does not answer during a boot must not cost a boot job its run. */
static void boot_jobs_are_queued_when_the_store_is_back(void **state)
{
	struct store_thread t = {};
	struct planner *p;
	usec_t boot;

	(void)state;
	now = USEC_DAY;
	p = planner_new(&test_clock, &t, "one-id");
	setenv("JOBSCHED_BOOT_ID", "b0", 1);
	planner_boot(p, "one");
	boot = boot_runs_op(t.op)->now;
	for (int i = 0; i < 3; i++) {
		answer(&t, i == 1 ? ERR_FULL : ERR_BUSY);
		assert_in_range(planner_pump(p), now + 1, now + 2 * USEC_SEC);
		assert_null(t.op);
		now += 2 * USEC_SEC;
		planner_pump(p);
		assert_non_null(t.op);
		assert_int_equal(t.op->kind, OP_BOOT);
		assert_string_equal(boot_runs_op(t.op)->boot, "b0");
		assert_int_equal(boot_runs_op(t.op)->now, boot); /* the time of the boot, even if it is stored later */
	}
	answer(&t, ERR_NONE);
	now += USEC_MIN;
	assert_true(planner_pump(p) == USEC_NEVER);
	assert_null(t.op);
	planner_free(p);
}

static void a_refused_plan_is_submitted_again_after_a_second(void **state)
{
	struct store_thread t = {};
	struct planner *p;
	usec_t again;

	(void)state;
	now = USEC_DAY;
	p = planner_new(&test_clock, &t, "one-id");
	planner_set_next_slot(p, now);
	assert_true(planner_pump(p) == USEC_NEVER);
	assert_int_equal(t.op->kind, OP_PLAN);
	answer(&t, ERR_BUSY);
	again = planner_pump(p);
	assert_in_range(again, now + 1, now + USEC_SEC);
	now -= USEC_HOUR; /* the clock is set back: the planner does not wait for an hour */
	planner_set_next_slot(p, now);
	planner_pump(p);
	assert_int_equal(t.submitted, 2);
	answer(&t, ERR_NONE);
	planner_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(boot_jobs_are_queued_when_the_store_is_back),
		TEST(a_refused_plan_is_submitted_again_after_a_second),
	};

	return RUN_TESTS(tests);
}
