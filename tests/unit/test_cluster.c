/* SPDX-License-Identifier: Apache-2.0 */
/* One engine among others: the cluster's decisions, on a real store whose thread is this test's hand. */
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/event.h"
#include "daemon/cluster.h"
#include "daemon/store_thread.h"
#include "store/op.h"
#include "store/store.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#define TTL (60 * USEC_SEC)   /* nothing lapses by itself */
#define SHORT (200 * USEC_MSEC)

/* What the engine's thread would be: it keeps what it is given until the test wants it done. */
struct store_thread {
	struct op *ops[16];
	size_t n;
	enum err_kind fails; /* with this, whatever it is asked; ERR_NONE: it works */
};

struct world {
	char dir[64];
	sd_event *ev;
	struct store *store;
	struct store_thread thread;
	struct cluster_options o;
	struct cluster *c;
	/* what the cluster said */
	usec_t end_at, kill_at;
	int deadlines, given_up, company, exits;
};

void store_thread_submit(struct store_thread *t, struct op *op)
{
	assert_true(t->n < ELEMENTS(t->ops));
	t->ops[t->n++] = op;
}

const char *store_thread_store_id(const struct store_thread *t)
{
	(void)t;
	return "store";
}

void store_thread_expect_term(struct store_thread *t, int64_t term)
{
	(void)t;
	(void)term;
}

/* ---- the engine around it ---- */

static void on_change(void *arg)
{
	(void)arg;
}

static void on_lost(struct claimed *c, void *arg)
{
	(void)c;
	(void)arg;
}

static void on_to_end(const struct run_change *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void on_given_up(void *arg)
{
	((struct world *)arg)->given_up++;
}

static void on_company(void *arg)
{
	((struct world *)arg)->company++;
}

static void on_deadline(usec_t end_at, usec_t kill_at, void *arg)
{
	struct world *w = arg;

	w->end_at = end_at;
	w->kill_at = kill_at;
	w->deadlines++;
}

static void on_exit_asked(int status, void *arg)
{
	(void)status;
	((struct world *)arg)->exits++;
}

static void apply(struct world *w, struct op *op)
{
	struct err e = {};

	if (!store_apply(w->store, &op, 1, &(struct store_wake){}, &e))
		fail_msg("%s", e.msg);
}

static void open_other(struct world *w, const char *id, const char *name)
{
	AUTO(op) *op = op_new(OP_NODE_OPEN, NULL, NULL);

	op->node_open = (struct op_node_open){.node = id, .name = name, .spawner = "s", .ttl = TTL, .now = 1};
	apply(w, op);
}

static void close_other(struct world *w, const char *id)
{
	AUTO(op) *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op->node_close = (struct op_node_close){.node = id, .now = 2};
	apply(w, op);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	AUTO_TEXT path = NULL;
	struct err e = {};

	snprintf(w->dir, sizeof(w->dir), "%s/cluster-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(w->dir) || sd_event_new(&w->ev) < 0)
		return -1;
	path = xprintf("%s/jobs.db", w->dir);
	if (!store_open(&(struct store_options){.where = path}, &w->store, &e)) {
		print_error("%s\n", e.msg);
		return -1;
	}
	w->o = (struct cluster_options){.store = &w->thread, .leases = &w->thread, .node_id = "one-id", .node_name = "one",
		.ttl = TTL, .on_change = on_change, .on_lost = on_lost, .on_to_end = on_to_end, .on_looked = on_change,
		.on_given_up = on_given_up, .on_company = on_company, .on_deadline = on_deadline, .on_exit = on_exit_asked,
		.arg = w};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	static const char *const files[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db.reserve", "jobs.db-reserve"};
	struct world *w = *state;

	for (size_t i = 0; i < w->thread.n; i++)
		op_free(w->thread.ops[i]);
	cluster_free(w->c);
	store_free(w->store);
	sd_event_unref(w->ev);
	for (size_t i = 0; i < ELEMENTS(files); i++) {
		AUTO_TEXT path = xprintf("%s/%s", w->dir, files[i]);

		unlink(path);
	}
	rmdir(w->dir);
	free(w);
	return 0;
}

/* ---- the thread's work ---- */

/* The first operation of this kind that waits, taken out; NULL: none does. */
static struct op *take(struct world *w, enum op_kind kind)
{
	struct store_thread *t = &w->thread;

	for (size_t i = 0; i < t->n; i++)
		if (t->ops[i]->kind == kind) {
			struct op *op = t->ops[i];

			t->n--;
			for (; i < t->n; i++)
				t->ops[i] = t->ops[i + 1];
			return op;
		}
	return NULL;
}

static void answer(struct world *w, struct op *op)
{
	if (w->thread.fails) {
		op->ok = false;
		op->err = (struct err){.kind = w->thread.fails, .msg = "as the test wants it"};
	} else {
		apply(w, op);
	}
	if (op->on_done)
		op->on_done(op, op->arg);
	else
		op_free(op);
}

static void serve(struct world *w)
{
	while (w->thread.n > 0) {
		struct op *op = w->thread.ops[0];

		answer(w, take(w, op->kind));
	}
}

/* The loop, until an operation of this kind waits; at most ten seconds. */
static struct op *await(struct world *w, enum op_kind kind)
{
	struct op *op = NULL;

	for (int i = 0; i < 1000 && !(op = take(w, kind)); i++)
		sd_event_run(w->ev, 10 * USEC_MSEC);
	assert_non_null(op);
	return op;
}

static void pause_for(usec_t time)
{
	nanosleep(&(struct timespec){time / USEC_SEC, time % USEC_SEC * 1000}, NULL);
}

/* Opens ours, too, and renews once. */
static void begin(struct world *w, int64_t others)
{
	struct err e = {};

	open_other(w, "one-id", "one");
	if (!cluster_new(w->ev, &w->o, &w->c, &e))
		fail_msg("%s", e.msg);
	cluster_opened(w->c, others);
}

static void renew_once(struct world *w)
{
	cluster_doubt(w->c);
	serve(w);
}

/* ---- trust ---- */

static void a_lease_is_trusted_from_before_it_was_asked_for_and_less_a_margin(void **state)
{
	struct world *w = *state;
	usec_t before, after;

	open_other(w, "two-id", "two");
	begin(w, 1);
	assert_false(cluster_trusted(w->c));
	after = clock_boot(&clock_system);
	before = after - USEC_SEC;
	pause_for(SHORT); /* the store takes its time */
	serve(w);
	assert_true(cluster_trusted(w->c));
	assert_in_range(w->end_at, before + TTL - TTL / 5, after + TTL - TTL / 5);
	assert_in_range(w->kill_at, w->end_at + 1, after + TTL - 1);
}

static void trust_ends_by_itself(void **state)
{
	struct world *w = *state;

	w->o.ttl = SHORT;
	begin(w, 0);
	serve(w);
	pause_for(SHORT);
	assert_false(cluster_trusted(w->c));
	assert_false(cluster_leads(w->c));
	renew_once(w);
	w->thread.fails = ERR_BUSY;
	pause_for(SHORT);
	renew_once(w);
	assert_false(cluster_trusted(w->c)); /* asked for is not given */
}

static void who_was_given_up_trusts_nothing_and_says_so_once(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	serve(w);
	close_other(w, "one-id");
	renew_once(w);
	assert_false(cluster_trusted(w->c));
	assert_int_equal(w->given_up, 1);
	assert_int_equal(w->exits, 0);
	renew_once(w); /* nothing is renewed before the node is opened again */
	assert_int_equal(w->given_up, 1);
	open_other(w, "one-id", "one");
	cluster_opened(w->c, 0);
	serve(w);
	assert_true(cluster_trusted(w->c));
}

static void who_was_displaced_leaves(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	serve(w);
	open_other(w, "newer-id", "one");
	renew_once(w);
	assert_false(cluster_trusted(w->c));
	assert_int_equal(w->exits, 1);
	assert_int_equal(w->given_up, 0);
}

/* ---- the store's clock ---- */

/* A renewal that takes so long, and the store's clock, which is ahead by so much, read at its end or at its beginning. */
static usec_t measured(struct world *w, usec_t takes, usec_t ahead, bool late)
{
	struct op *op;
	usec_t theirs;

	cluster_doubt(w->c);
	op = take(w, OP_LEASE);
	theirs = clock_now(&clock_system) + ahead;
	pause_for(takes);
	apply(w, op);
	op->lease.now = late ? clock_now(&clock_system) + ahead : theirs;
	op->on_done(op, op->arg);
	serve(w);
	return cluster_offset(w->c);
}

static void a_clock_that_is_wrong_is_seen_through_a_slow_store_too(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	serve(w);
	assert_int_equal(measured(w, 1100 * USEC_MSEC, 0, false), 0); /* the way there may have taken no time, ... */
	assert_int_equal(measured(w, 1100 * USEC_MSEC, 0, true), 0);  /* ... or the way back */
	assert_in_range(measured(w, 1100 * USEC_MSEC, USEC_HOUR, true), USEC_HOUR - USEC_MIN, USEC_HOUR + USEC_MIN);
	assert_in_range(measured(w, 0, USEC_HOUR, true), USEC_HOUR - 500 * USEC_MSEC, USEC_HOUR + 500 * USEC_MSEC);
}

/* ---- the spawner's deadline ---- */

static void alone_there_is_no_deadline(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	serve(w);
	assert_int_equal(w->end_at, 0);
	assert_int_equal(w->deadlines, 1); /* an engine before us may have given one */
}

static void the_store_hears_of_a_guard_only_when_there_is_one_and_then_at_once(void **state)
{
	struct world *w = *state;
	struct op *first, *second;

	open_other(w, "two-id", "two");
	begin(w, 1);
	first = take(w, OP_LEASE);
	assert_false(first->lease.guarded);
	answer(w, first);
	assert_true(w->end_at > 0);
	serve(w);
	second = await(w, OP_LEASE);
	assert_true(second->lease.guarded);
	answer(w, second);
}

/* One node alone never ends a job for its lease, nor one that has been left alone. */
static void who_is_left_alone_puts_its_deadline_off_until_the_store_knows(void **state)
{
	struct world *w = *state;
	struct op *op;
	usec_t end_at;

	open_other(w, "two-id", "two");
	begin(w, 1);
	serve(w);
	end_at = w->end_at;
	close_other(w, "two-id");
	cluster_doubt(w->c);
	op = take(w, OP_LEASE);
	assert_true(op->lease.guarded);
	answer(w, op);
	assert_true(w->end_at > end_at);
	serve(w);
	cluster_doubt(w->c);
	op = take(w, OP_LEASE);
	assert_false(op->lease.guarded);
	assert_true(w->end_at > 0); /* not before it was committed */
	answer(w, op);
	assert_int_equal(w->end_at, 0);
}

static void who_leaves_takes_its_deadline_back_only_after_the_store_knows(void **state)
{
	struct world *w = *state;

	open_other(w, "two-id", "two");
	begin(w, 1);
	serve(w);
	cluster_stop(w->c);
	assert_true(w->end_at > 0);
	cluster_left(w->c);
	assert_int_equal(w->end_at, 0);
}

/* ---- when it is renewed ---- */

static void what_is_doubted_during_a_renewal_is_renewed_once_more(void **state)
{
	struct world *w = *state;
	struct op *op;

	w->o.alone_ttl = 8 * TTL;
	begin(w, 0);
	serve(w);
	cluster_doubt(w->c);
	op = take(w, OP_LEASE);
	apply(w, op);
	open_other(w, "two-id", "two"); /* rings, and the answer under way does not know of it */
	cluster_doubt(w->c);
	op->on_done(op, op->arg);
	op_free(await(w, OP_LEASE));
}

static void a_long_lease_is_made_short_when_another_comes(void **state)
{
	struct world *w = *state;
	struct op *op;

	w->o.alone_ttl = 8 * TTL;
	begin(w, 0);
	op = take(w, OP_LEASE);
	assert_int_equal(op->lease.ttl, 8 * TTL);
	answer(w, op);
	serve(w);
	open_other(w, "two-id", "two");
	cluster_doubt(w->c);
	answer(w, take(w, OP_LEASE));
	assert_int_equal(w->company, 1);
	op = await(w, OP_LEASE);
	assert_int_equal(op->lease.ttl, TTL);
	op_free(op);
}

/* Stopped after the store has taken the shorter one and before we hear of it, we would be given up and not know. */
static void who_asks_for_a_shorter_lease_trusts_no_longer_one_from_then_on(void **state)
{
	struct world *w = *state;
	struct op *op;
	usec_t before;

	w->o.ttl = 5 * SHORT;
	w->o.alone_ttl = 1000 * SHORT;
	begin(w, 0);
	serve(w);
	open_other(w, "two-id", "two");
	cluster_doubt(w->c);
	answer(w, take(w, OP_LEASE));
	before = clock_boot(&clock_system);
	assert_in_range(w->end_at, before + 100 * SHORT, before + 1000 * SHORT); /* of the one that we have */
	op = await(w, OP_LEASE);
	assert_int_equal(op->lease.ttl, 5 * SHORT);
	assert_true(op->lease.guarded);
	assert_in_range(w->end_at, 1, clock_boot(&clock_system) + 5 * SHORT); /* the spawner knows before the store */
	assert_in_range(w->kill_at, w->end_at + 1, clock_boot(&clock_system) + 5 * SHORT);
	pause_for(5 * SHORT);
	assert_false(cluster_trusted(w->c));
	answer(w, op);
	serve(w);
	renew_once(w);
	assert_true(cluster_trusted(w->c));
}

/* ---- leading ---- */

static void a_leader_does_its_work_with_each_renewal_and_no_other_node_does(void **state)
{
	struct world *w = *state;
	struct op *lead;

	begin(w, 0);
	answer(w, take(w, OP_LEASE));
	lead = take(w, OP_LEAD);
	assert_non_null(lead);
	assert_int_equal(lead->lead.term, 1);
	assert_true(lead->lead.spares); /* those who were away with us have time to come back */
	answer(w, lead);
	serve(w);
	close_other(w, "one-id"); /* gives the office up, too */
	open_other(w, "two-id", "two");
	{
		AUTO(op) *other = op_new(OP_LEASE, NULL, NULL);

		other->lease = (struct op_lease){.node = "two-id", .name = "two", .ttl = TTL, .stands = true};
		apply(w, other);
		assert_true(other->lease.leads);
	}
	open_other(w, "one-id", "one");
	cluster_doubt(w->c);
	answer(w, take(w, OP_LEASE));
	assert_false(cluster_leads(w->c));
	assert_null(take(w, OP_LEAD));
}

static void the_dead_are_given_up_once_our_own_lease_was_unbroken_for_as_long(void **state)
{
	struct world *w = *state;
	bool spares = true;

	w->o.ttl = 3 * SHORT;
	begin(w, 0);
	for (int i = 0; i < 200 && spares; i++) {
		struct op *lead;

		cluster_doubt(w->c);
		answer(w, take(w, OP_LEASE));
		lead = take(w, OP_LEAD);
		if (lead) {
			spares = lead->lead.spares;
			answer(w, lead);
		}
		serve(w);
		pause_for(SHORT / 8);
	}
	assert_false(spares);
	pause_for(w->o.ttl); /* it is broken: they may have been away with us */
	cluster_doubt(w->c);
	answer(w, take(w, OP_LEASE));
	{
		AUTO(op) *lead = take(w, OP_LEAD);

		assert_true(lead->lead.spares);
	}
}

static void who_hears_that_its_term_is_over_leads_no_more(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	answer(w, take(w, OP_LEASE));
	assert_true(cluster_leads(w->c));
	w->thread.fails = ERR_FENCED;
	answer(w, take(w, OP_LEAD));
	assert_false(cluster_leads(w->c));
}

static void a_leader_that_cannot_do_its_work_for_a_whole_lease_resigns(void **state)
{
	struct world *w = *state;
	struct op *lease;

	w->o.ttl = SHORT;
	begin(w, 0);
	answer(w, take(w, OP_LEASE));
	pause_for(SHORT + 1);
	w->thread.fails = ERR_BUSY;
	answer(w, take(w, OP_LEAD));
	w->thread.fails = ERR_NONE;
	serve(w);
	cluster_doubt(w->c);
	lease = take(w, OP_LEASE);
	assert_true(lease->lease.resigns);
	answer(w, lease);
	assert_false(cluster_leads(w->c));
	serve(w);
	cluster_doubt(w->c);
	lease = take(w, OP_LEASE);
	assert_false(lease->lease.resigns);
	assert_false(lease->lease.stands); /* not at once again */
	op_free(lease);
}

static void a_leader_whose_work_hangs_resigns_too(void **state)
{
	struct world *w = *state;
	struct op *lease;

	w->o.ttl = SHORT / 4;
	open_other(w, "two-id", "two");
	begin(w, 1);
	answer(w, take(w, OP_LEASE));
	pause_for(3 * SHORT); /* nobody answers OP_LEAD */
	cluster_doubt(w->c);
	answer(w, take(w, OP_LEASE));
	cluster_doubt(w->c);
	lease = take(w, OP_LEASE);
	assert_true(lease->lease.resigns);
	op_free(lease);
}

/* A whole cluster was down for a while: nobody stands still for that. */
static void who_comes_to_a_late_schedule_raises_no_alarm(void **state)
{
	struct world *w = *state;
	struct op *lease;

	begin(w, 0);
	lease = take(w, OP_LEASE);
	apply(w, lease);
	lease->lease.first_slot = USEC_SEC; /* long ago */
	lease->on_done(lease, lease->arg);
	assert_true(cluster_overdue(w->c) > TTL);
	for (size_t i = 0; i < w->thread.n; i++)
		assert_false(w->thread.ops[i]->kind == OP_EVENT && w->thread.ops[i]->act.what == EVENT_NODE_ALARM);
}

#define CLUSTER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CLUSTER_TEST(a_lease_is_trusted_from_before_it_was_asked_for_and_less_a_margin),
		CLUSTER_TEST(trust_ends_by_itself),
		CLUSTER_TEST(who_was_given_up_trusts_nothing_and_says_so_once),
		CLUSTER_TEST(who_was_displaced_leaves),
		CLUSTER_TEST(a_clock_that_is_wrong_is_seen_through_a_slow_store_too),
		CLUSTER_TEST(alone_there_is_no_deadline),
		CLUSTER_TEST(the_store_hears_of_a_guard_only_when_there_is_one_and_then_at_once),
		CLUSTER_TEST(who_is_left_alone_puts_its_deadline_off_until_the_store_knows),
		CLUSTER_TEST(who_leaves_takes_its_deadline_back_only_after_the_store_knows),
		CLUSTER_TEST(what_is_doubted_during_a_renewal_is_renewed_once_more),
		CLUSTER_TEST(a_long_lease_is_made_short_when_another_comes),
		CLUSTER_TEST(who_asks_for_a_shorter_lease_trusts_no_longer_one_from_then_on),
		CLUSTER_TEST(a_leader_does_its_work_with_each_renewal_and_no_other_node_does),
		CLUSTER_TEST(the_dead_are_given_up_once_our_own_lease_was_unbroken_for_as_long),
		CLUSTER_TEST(who_hears_that_its_term_is_over_leads_no_more),
		CLUSTER_TEST(a_leader_that_cannot_do_its_work_for_a_whole_lease_resigns),
		CLUSTER_TEST(a_leader_whose_work_hangs_resigns_too),
		CLUSTER_TEST(who_comes_to_a_late_schedule_raises_no_alarm),
	};

	return RUN_TESTS(tests);
}
