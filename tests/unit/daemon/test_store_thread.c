/* SPDX-License-Identifier: Apache-2.0 */
/* The store threads: shutdown with operations under way, and fair reads. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/loop/bulk_credit.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
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
	int64_t order[64]; /* uids in the order of their reads; written by the reader thread */
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

	job_add_op(op)->job = (struct job_new){.uid = 1000, .owner = "ann", .spec = "{\"command\":[\"true\"]}", .now = 1000 * USEC_SEC,
		.run_at = 1000 * USEC_SEC};
	return op;
}

/* Like a route: frees the memory of the request. */
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

static void note_order(struct op *op, void *arg)
{
	struct world *w = arg;

	assert_true(op->ok);
	w->order[w->answered++] = op->kind;
	if (w->answered == 4)
		sd_event_exit(w->ev, 0);
	op_free(op);
}

static struct op *op_bulk(size_t n, struct world *w)
{
	struct op *op = op_new(OP_JOB_BULK, note_order, w);

	job_bulk_op(op)->v = xcalloc(n, sizeof(struct job_new));
	job_bulk_op(op)->n = n;
	for (size_t i = 0; i < n; i++)
		job_bulk_op(op)->v[i] = (struct job_new){.uid = 1000, .owner = "ann", .spec = "{\"command\":[\"true\"]}",
			.now = 1000 * USEC_SEC, .next_slot = USEC_NEVER};
	return op;
}

/* Keeps the writer inside the transaction of the first bulk until all operations wait. */
static void wait_for_all(struct job_new *j, void *arg)
{
	(void)j;
	sem_wait(arg);
}

static void an_operation_waits_for_one_bulk_and_not_for_several(void **state)
{
	struct world *w = *state;
	struct op *first = op_bulk(1, w);
	sem_t all;

	sem_init(&all, 0, 0);
	job_bulk_op(first)->v[0].first_slot = wait_for_all;
	job_bulk_op(first)->v[0].first_slot_arg = &all;
	store_thread_submit(w->thread, first);
	usleep(20000); /* the writer has taken the first; if it has not, the order is the same */
	for (int i = 0; i < 2; i++)
		store_thread_submit(w->thread, op_bulk(10, w));
	store_thread_submit(w->thread, op_add(note_order, w));
	sem_post(&all);
	sd_event_loop(w->ev);
	assert_int_equal(w->answered, 4);
	assert_true(w->order[0] == OP_JOB_ADD || w->order[1] == OP_JOB_ADD);
	assert_int_equal(w->order[3], OP_JOB_BULK);
	sem_destroy(&all);
}

static void note_any(struct op *op, void *arg)
{
	struct world *w = arg;

	w->order[w->answered++] = op->kind;
	if (w->answered == 2)
		sd_event_exit(w->ev, 0);
	if (op->kind == OP_JOB_BULK)
		for (size_t i = 0; i < job_bulk_op(op)->n; i++) {
			assert_true(op->ok);
			assert_int_equal(job_bulk_op(op)->v[i].id, (int64_t)i + 1); /* nothing of the first attempt is left */
		}
	op_free(op);
}

/* A run becomes due while the bulk is written. */
static void claim_once(struct job_new *j, void *arg)
{
	struct world *w = arg;

	(void)j;
	if (!w->acted++)
		store_thread_submit(w->thread, op_new(OP_CLAIM, note_any, w));
}

static void a_bulk_gives_way_to_a_due_run(void **state)
{
	struct world *w = *state;
	struct op *bulk = op_bulk(1000, w);

	bulk->on_done = note_any;
	job_bulk_op(bulk)->v[600].first_slot = claim_once;
	job_bulk_op(bulk)->v[600].first_slot_arg = w;
	store_thread_submit(w->thread, bulk);
	sd_event_loop(w->ev);
	assert_int_equal(w->order[0], OP_CLAIM);
	assert_int_equal(w->order[1], OP_JOB_BULK);
	assert_int_equal(w->acted, 2); /* the bulk was applied twice */
}

static void bulks_give_way_for_a_tenth_of_the_time(void **state)
{
	struct bulk_credit c = {};
	usec_t now = USEC_SEC, lost = 0;

	(void)state;
	for (; now < 101 * USEC_SEC; now += 50 * USEC_MSEC) {
		bulk_credit_begin(&c, now, now);
		lost += bulk_credit_spend(&c, now + 50 * USEC_MSEC) ? 50 * USEC_MSEC : 0;
	}
	assert_in_range(lost, 10 * USEC_SEC, 10 * USEC_SEC + 200 * USEC_MSEC);
}

static void requests_of_clients_are_completed_at_shutdown(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 3; i++) {
		struct world **order = xcalloc(1, sizeof(struct world *));
		struct op *op = op_add(answer, order);

		*order = w;
		op->act.what = EVENT_JOB_ADD;
		store_thread_submit(w->thread, op);
	}
	store_thread_free(STEAL(w->thread)); /* the loop has not run */
	assert_int_equal(w->answered, 3);
}

static void operations_of_the_daemon_have_no_callback_at_shutdown(void **state)
{
	struct world *w = *state;

	store_thread_submit(w->thread, op_add(act, w));
	store_thread_free(STEAL(w->thread));
	assert_int_equal(w->acted, 0);
}

/* ---- reads ---- */

struct uid_read {
	struct read_task task;
	struct world *world;
	sem_t *gate; /* the read waits for it; NULL: it does not wait */
	size_t result;
};

static void uid_read_work(struct store *s, struct read_task *task)
{
	struct uid_read *l = (struct uid_read *)task;

	(void)s;
	if (l->gate)
		sem_wait(l->gate);
	l->world->order[l->world->n_read++] = task->item.key;
	task->charge = l->result;
}

static void uid_read_done(struct read_task *task)
{
	((struct uid_read *)task)->world->answered++;
	free(task);
}

static void submit_read_of(struct world *w, int64_t uid, bool begun, size_t result, sem_t *gate)
{
	struct uid_read *l = xcalloc(1, sizeof(*l));

	*l = (struct uid_read){.task = {.item = {.key = uid, .begun = begun}, .work = uid_read_work, .done = uid_read_done}, .world = w, .gate = gate, .result = result};
	store_thread_read(w->thread, &l->task);
}

static void submit_read(struct world *w, int64_t uid, size_t result, sem_t *gate)
{
	submit_read_of(w, uid, false, result, gate);
}

static void wait_for_answers(struct world *w, int n)
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
	submit_read(w, 1000, 0, &gate); /* keeps the reader busy until all other reads are queued */
	for (int i = 0; i < 20; i++)
		submit_read(w, 1000, 0, NULL);
	submit_read(w, 1001, 0, NULL);
	submit_read(w, 0, 0, NULL);
	sem_post(&gate);
	wait_for_answers(w, 23);
	for (int i = 0; i < 4; i++) {
		others += w->order[i] != 1000;
		assert_int_equal(w->order[4 + i], 1000);
	}
	assert_int_equal(others, 2); /* each after at most two reads of uid 1000 */
	sem_destroy(&gate);
}

/* The reads of streams that have begun are never held back, but they take turns with other users' reads. */
static void reads_of_many_followers_delay_another_user_by_one_read(void **state)
{
	struct world *w = *state;
	sem_t gate;

	sem_init(&gate, 0, 0);
	submit_read_of(w, 1000, true, 0, &gate);
	for (int i = 0; i < 50; i++)
		submit_read_of(w, 1000, true, 0, NULL);
	submit_read(w, 1001, 0, NULL);
	sem_post(&gate);
	wait_for_answers(w, 52);
	assert_true(w->order[1] == 1001 || w->order[2] == 1001);
	sem_destroy(&gate);
}

static void a_user_with_unread_results_waits_and_others_do_not(void **state)
{
	struct world *w = *state;

	store_thread_bound_results(w->thread, 1000, 10000);
	for (int i = 0; i < 4; i++)
		submit_read(w, 1000, 600, NULL);
	submit_read(w, 1001, 0, NULL);
	wait_for_answers(w, 3); /* two results of 1000 reach its limit */
	assert_true(w->order[0] == 1001 || w->order[1] == 1001 || w->order[2] == 1001);
	submit_read(w, 1001, 0, NULL);
	wait_for_answers(w, 4);
	assert_int_equal(w->n_read, 4);
	assert_int_equal(w->order[3], 1001);
	store_thread_release(w->thread, 1000, 600);
	wait_for_answers(w, 5);
	assert_int_equal(w->order[4], 1000);
	store_thread_free(STEAL(w->thread)); /* the last read is completed at shutdown */
	assert_int_equal(w->answered, 6);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_operation_waits_for_one_bulk_and_not_for_several, begin, end),
		cmocka_unit_test_setup_teardown(a_bulk_gives_way_to_a_due_run, begin, end),
		cmocka_unit_test(bulks_give_way_for_a_tenth_of_the_time),
		cmocka_unit_test_setup_teardown(requests_of_clients_are_completed_at_shutdown, begin, end),
		cmocka_unit_test_setup_teardown(operations_of_the_daemon_have_no_callback_at_shutdown, begin, end),
		cmocka_unit_test_setup_teardown(reads_of_users_take_turns, begin, end),
		cmocka_unit_test_setup_teardown(reads_of_many_followers_delay_another_user_by_one_read, begin, end),
		cmocka_unit_test_setup_teardown(a_user_with_unread_results_waits_and_others_do_not, begin, end),
	};

	return RUN_TESTS(tests);
}
