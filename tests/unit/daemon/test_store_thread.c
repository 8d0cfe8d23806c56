/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the store, when they are left while something is under way. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/op.h"
#include "unit/unit.h"
#include <semaphore.h>
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
	int64_t order[64]; /* uids in the order of their reads; the reader's until all are answered */
	int n_read;
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

/* ---- reads ---- */

struct look {
	struct read_task task;
	struct world *world;
	sem_t *gate; /* waited for, where there is one */
	size_t result;
};

static void look_work(struct store *s, struct read_task *task)
{
	struct look *l = (struct look *)task;

	(void)s;
	if (l->gate)
		sem_wait(l->gate);
	l->world->order[l->world->n_read++] = task->item.key;
	task->charge = l->result;
}

static void look_done(struct read_task *task)
{
	((struct look *)task)->world->answered++;
	free(task);
}

static void look(struct world *w, int64_t uid, size_t result, sem_t *gate)
{
	struct look *l = xcalloc(1, sizeof(*l));

	*l = (struct look){.task = {.item.key = uid, .work = look_work, .done = look_done}, .world = w, .gate = gate, .result = result};
	store_thread_read(w->thread, &l->task);
}

static void answered(struct world *w, int n)
{
	while (w->answered < n)
		assert_true(sd_event_run(w->ev, UINT64_MAX) >= 0);
}

static void reads_of_users_take_turns(void **state)
{
	struct world *w = *state;
	int others = 0;
	sem_t gate;

	sem_init(&gate, 0, 0);
	look(w, 1000, 0, &gate); /* keeps the reader busy until all others wait */
	for (int i = 0; i < 20; i++)
		look(w, 1000, 0, NULL);
	look(w, 1001, 0, NULL);
	look(w, 0, 0, NULL);
	sem_post(&gate);
	answered(w, 23);
	for (int i = 0; i < 4; i++) {
		others += w->order[i] != 1000;
		assert_int_equal(w->order[4 + i], 1000);
	}
	assert_int_equal(others, 2); /* each after at most one or two of the others */
	sem_destroy(&gate);
}

static void a_user_with_unread_results_waits_and_others_do_not(void **state)
{
	struct world *w = *state;

	store_thread_bound_results(w->thread, 1000, 10000);
	for (int i = 0; i < 4; i++)
		look(w, 1000, 600, NULL);
	look(w, 1001, 0, NULL);
	answered(w, 3); /* two results of 1000 reach its limit */
	assert_true(w->order[0] == 1001 || w->order[1] == 1001 || w->order[2] == 1001);
	look(w, 1001, 0, NULL);
	answered(w, 4);
	assert_int_equal(w->n_read, 4);
	assert_int_equal(w->order[3], 1001);
	store_thread_release(w->thread, 1000, 600);
	answered(w, 5);
	assert_int_equal(w->order[4], 1000);
	store_thread_free(STEAL(w->thread)); /* the last one is done all the same */
	assert_int_equal(w->answered, 6);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_somebody_asked_for_is_brought_to_an_end_by_its_route_also_when_we_leave, begin, end),
		cmocka_unit_test_setup_teardown(on_what_is_the_engines_own_nobody_acts_after_it_left, begin, end),
		cmocka_unit_test_setup_teardown(reads_of_users_take_turns, begin, end),
		cmocka_unit_test_setup_teardown(a_user_with_unread_results_waits_and_others_do_not, begin, end),
	};

	return RUN_TESTS(tests);
}
