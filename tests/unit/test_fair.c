/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between owners: what one may hold of a limited resource, and the order in which owners are served. */
#include "base/auto.h"
#include "core/fair_share.h"
#include "unit.h"
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy_owners_leave_a_share_to_the_next_one),
		cmocka_unit_test(one_owner_is_bounded_by_its_own_limit_too),
		cmocka_unit_test(units_go_to_the_owner_with_the_fewest),
		cmocka_unit_test(an_exempt_owner_may_use_the_whole_total),
	};

	return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
