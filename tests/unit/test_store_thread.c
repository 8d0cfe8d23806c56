/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the store, when they are left while something is under way. */
#include "base/err.h"
#include "base/text.h"
#include "core/event.h"
#include "daemon/store_thread.h"
#include "store/op.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

struct world {
	char dir[64];
	char *where; /* owned */
	sd_event *ev;
	struct store_thread *thread;
	int answered, acted;
};

static int begin(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct err e = {};

	strcpy(w->dir, "/tmp/jobsched-thread.XXXXXX");
	if (!mkdtemp(w->dir) || sd_event_new(&w->ev) < 0)
		return -1;
	w->where = xprintf("%s/jobs.db", w->dir);
	*state = w;
	return store_thread_start(w->ev, &(struct store_thread_options){.where = w->where, .clock = &clock_system}, &w->thread, &e) ? 0 : -1;
}

static int end(void **state)
{
	struct world *w = *state;
	AUTO_TEXT remove = xprintf("rm -r %s", w->dir);

	store_thread_free(w->thread);
	sd_event_unref(w->ev);
	free(w->where);
	free(w);
	return system(remove) == 0 ? 0 : -1;
}

static struct op *op_add(void (*on_done)(struct op *, void *), void *arg)
{
	struct op *op = op_new(OP_JOB_ADD, on_done, arg);

	op->add = (struct job_new){.uid = 1000, .owner = "ann", .spec = "{\"command\":[\"true\"]}", .now = 1000 * USEC_SEC,
		.run_at = 1000 * USEC_SEC};
	return op;
}

/* As a route does: the client may be gone, and what it kept for him is freed. */
static void answer(struct op *op, void *arg)
{
	struct world **order = arg;

	(*order)->answered++;
	free(order);
	op_free(op);
}

static void act(struct op *op, void *arg)
{
	((struct world *)arg)->acted++;
	op_free(op);
}

static void what_somebody_asked_for_is_brought_to_an_end_by_its_route_also_when_we_leave(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 3; i++) {
		struct world **order = xcalloc(1, sizeof(struct world *));
		struct op *op = op_add(answer, order);

		*order = w;
		op->act.what = EVENT_JOB_ADD;
		store_thread_submit(w->thread, op);
	}
	store_thread_free(STEAL(w->thread)); /* the loop never came to it */
	assert_int_equal(w->answered, 3);
}

static void on_what_is_the_engines_own_nobody_acts_after_it_left(void **state)
{
	struct world *w = *state;

	store_thread_submit(w->thread, op_add(act, w));
	store_thread_free(STEAL(w->thread));
	assert_int_equal(w->acted, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_somebody_asked_for_is_brought_to_an_end_by_its_route_also_when_we_leave, begin, end),
		cmocka_unit_test_setup_teardown(on_what_is_the_engines_own_nobody_acts_after_it_left, begin, end),
	};

	return RUN_TESTS(tests);
}
