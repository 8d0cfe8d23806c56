/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between owners: what one may hold of a limited resource, and the order in which owners are served. */
#include "base/auto.h"
#include "core/decide/fair_queue.h"
#include "core/decide/fair_share.h"
#include "unit/unit.h"
#include <stdlib.h>

/* k owners that take all they can get, one unit at a time in turns; returns what is left. */
static int64_t left_by(int k, int64_t total)
{
	struct fair_share s = {.total = total};
	int64_t held[64] = {};
	bool any = true;

	while (any) {
		any = false;
		for (int i = 0; i < k; i++) {
			if (!fair_share_allows(&s, held[i], 1))
				continue;
			held[i]++;
			s.used++;
			any = true;
		}
	}
	return total - s.used;
}

static void greedy_owners_leave_a_share_to_the_next_one(void **state)
{
	(void)state;
	for (int k = 1; k <= 60; k++)
		assert_in_range(left_by(k, 1000), 1000 / (k + 1), 1000 / (k + 1) + 1);
}

static void one_owner_is_bounded_by_its_own_limit_too(void **state)
{
	struct fair_share s = {.total = 100, .per_owner = 10};

	(void)state;
	assert_true(fair_share_allows(&s, 0, 10));
	assert_true(fair_share_allows(&s, 9, 1));
	assert_false(fair_share_allows(&s, 9, 2));
	assert_false(fair_share_allows(&s, 10, 1));
	s.used = 95;
	assert_true(fair_share_allows(&s, 0, 5));
	assert_false(fair_share_allows(&s, 0, 6));
	s.used = 120; /* the total was lowered, or exempt owners hold more */
	assert_false(fair_share_allows(&s, 0, 1));
}

static void units_go_to_the_owner_with_the_fewest(void **state)
{
	struct fair_share s = {.total = 12};
	struct fair_claim claims[] = {
		{.owner = 1, .held = 0, .waiting = 50, .since = 10},
		{.owner = 2, .held = 0, .waiting = 2, .since = 20},
		{.owner = 3, .held = 2, .waiting = 50, .since = 1},
	};
	size_t order[12], n = 0, i;

	(void)state;
	s.used = 2;
	while ((i = fair_share_next(&s, claims, ELEMENTS(claims))) < ELEMENTS(claims)) {
		assert_in_range(n, 0, ELEMENTS(order) - 1);
		order[n++] = i;
		claims[i].held++;
		claims[i].waiting--;
		s.used++;
	}
	assert_int_equal(n, 7);
	assert_int_equal(order[0], 0); /* waits longer than the second one */
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 0);
	assert_int_equal(order[3], 1); /* wants no more */
	assert_int_equal(order[4], 2); /* as many as the first by now, and older */
	assert_int_equal(order[5], 0);
	assert_int_equal(order[6], 2);
}

static void an_exempt_owner_may_use_the_whole_total(void **state)
{
	struct fair_share s = {.total = 4, .used = 3};
	struct fair_claim c = {.owner = 0, .held = 3, .waiting = 5, .exempt = true};

	(void)state;
	assert_int_equal(fair_share_next(&s, &c, 1), 0);
	c.exempt = false;
	assert_int_equal(fair_share_next(&s, &c, 1), 1);
	c.exempt = true;
	s.used = 4;
	assert_int_equal(fair_share_next(&s, &c, 1), 1);
}

/* ---- the queue ---- */

struct request_item {
	struct fair_item item;
	int sequence; /* within its key */
};

static void push(struct fair_queue *q, int64_t key, int sequence, bool begun)
{
	struct request_item *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->item.key = key;
	r->item.begun = begun;
	r->sequence = sequence;
	fair_queue_push(q, &r->item);
}

/* The key of the next item, and its place within that key; -1: none. */
static int64_t pop(struct fair_queue *q, bool all, int *ret_sequence)
{
	struct fair_item *item = fair_queue_pop(q, all);
	int64_t key = item ? item->key : -1;

	if (item && ret_sequence)
		*ret_sequence = ((struct request_item *)item)->sequence;
	free(item);
	return key;
}

/* Random arrivals of up to 40 keys: a key without items is served after at most as many others as there are busy keys. */
static void a_new_key_waits_for_one_item_of_each_busy_key(void **state)
{
	AUTO_DONE(fair_queue) q = {};
	int waiting[40] = {}, pushed[40] = {}, popped[40] = {}, promised[40], sequence;

	(void)state;
	srand(7);
	for (int i = 0; i < 40; i++)
		promised[i] = -1;
	for (int step = 0; step < 200000; step++) {
		int key = rand() % (1 + rand() % 40);
		int64_t got;

		if (rand() % 100 < 55) {
			int busy = 0;

			for (int i = 0; i < 40; i++)
				busy += waiting[i] > 0;
			if (waiting[key]++ == 0)
				promised[key] = busy;
			push(&q, key, pushed[key]++, rand() % 4 == 0);
			continue;
		}
		got = pop(&q, false, &sequence);
		if (got < 0)
			continue;
		assert_int_equal(sequence, popped[got]); /* within a key in order of arrival */
		popped[got]++;
		waiting[got]--;
		promised[got] = -1;
		for (int i = 0; i < 40; i++)
			if (promised[i] >= 0)
				assert_true(promised[i]-- > 0);
	}
	while (pop(&q, false, NULL) >= 0)
		;
	assert_int_equal(q.lanes.used, 0);
}

static void one_flooding_key_delays_another_by_one_item(void **state)
{
	AUTO_DONE(fair_queue) q = {};

	(void)state;
	for (int i = 0; i < 1000; i++)
		push(&q, 1000, i, false);
	push(&q, 1001, 0, false);
	assert_int_equal(pop(&q, false, NULL), 1000);
	assert_int_equal(pop(&q, false, NULL), 1001);
	assert_int_equal(pop(&q, false, NULL), 1000);
	while (pop(&q, false, NULL) >= 0)
		;
}

static void a_key_with_unread_results_is_held_back(void **state)
{
	AUTO_DONE(fair_queue) q = {.share = {.total = 1000, .per_owner = 100}, .exempt = 0};
	int sequence;

	(void)state;
	push(&q, 1000, 0, false);
	push(&q, 1000, 1, true);
	push(&q, 0, 0, false);
	fair_queue_charge(&q, 1000, 150);
	fair_queue_charge(&q, 0, 400);
	assert_true(fair_queue_ready(&q));
	assert_int_equal(pop(&q, false, &sequence), 1000); /* what has begun goes on */
	assert_int_equal(sequence, 1);
	assert_int_equal(pop(&q, false, NULL), 0);
	assert_false(fair_queue_ready(&q));
	assert_int_equal(pop(&q, false, NULL), -1);
	push(&q, 1001, 0, false);
	assert_int_equal(pop(&q, false, NULL), 1001); /* others are not */
	fair_queue_charge(&q, 1000, -60);
	assert_true(fair_queue_ready(&q));
	assert_int_equal(pop(&q, false, NULL), 1000);
	push(&q, 1000, 2, false);
	fair_queue_charge(&q, 1000, 500);
	assert_int_equal(pop(&q, false, NULL), -1);
	assert_int_equal(pop(&q, true, NULL), 1000); /* at the end all are served */
	fair_queue_charge(&q, 1000, -590);
	fair_queue_charge(&q, 0, -400);
	assert_int_equal(q.lanes.used, 0);
	assert_int_equal(q.share.used, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy_owners_leave_a_share_to_the_next_one),
		cmocka_unit_test(one_owner_is_bounded_by_its_own_limit_too),
		cmocka_unit_test(units_go_to_the_owner_with_the_fewest),
		cmocka_unit_test(an_exempt_owner_may_use_the_whole_total),
		cmocka_unit_test(a_new_key_waits_for_one_item_of_each_busy_key),
		cmocka_unit_test(one_flooding_key_delays_another_by_one_item),
		cmocka_unit_test(a_key_with_unread_results_is_held_back),
	};

	return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
