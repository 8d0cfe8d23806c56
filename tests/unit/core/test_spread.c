/* SPDX-License-Identifier: Apache-2.0 */
/* Segments over nodes: even, with few moves, whatever nodes come and go. */
#include "base/text.h"
#include "core/decide/spread.h"
#include "unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 80

struct cluster {
	char names[NODES_MAX][16];
	const char *order[NODES_MAX];
	size_t n;
	int holds[SEGMENTS];
};

static void nobody_holds(struct cluster *c)
{
	for (int s = 0; s < SEGMENTS; s++)
		c->holds[s] = SPREAD_UNASSIGNED;
}

static size_t spread_anew(struct cluster *c)
{
	int next[SEGMENTS];
	size_t moved = spread_segments(c->order, c->n, c->holds, next);

	memcpy(c->holds, next, sizeof(next));
	return moved;
}

static void assert_even(const struct cluster *c)
{
	size_t has[NODES_MAX] = {};

	for (int s = 0; s < SEGMENTS; s++) {
		assert_in_range(c->holds[s], 0, c->n - 1);
		has[c->holds[s]]++;
	}
	for (size_t i = 0; i < c->n; i++)
		assert_in_range(has[i], SEGMENTS / c->n, (SEGMENTS + c->n - 1) / c->n);
}

/* 1.5 x 64/n, and a whole one of them. */
static size_t moves_allowed(size_t n)
{
	return (3 * SEGMENTS + 2 * n - 1) / (2 * n);
}

static void join(struct cluster *c, const char *name)
{
	snprintf(c->names[c->n], sizeof(c->names[0]), "%s", name);
	c->order[c->n] = c->names[c->n];
	c->n++;
}

static void leave(struct cluster *c, size_t who)
{
	for (int s = 0; s < SEGMENTS; s++)
		c->holds[s] = c->holds[s] == (int)who ? SPREAD_UNASSIGNED : c->holds[s] - (c->holds[s] > (int)who);
	for (size_t i = who; i + 1 < c->n; i++)
		memcpy(c->names[i], c->names[i + 1], sizeof(c->names[0]));
	c->n--;
}

static void one_node_has_all_segments(void **state)
{
	struct cluster c = {};

	(void)state;
	nobody_holds(&c);
	join(&c, "alone");
	assert_int_equal(spread_anew(&c), SEGMENTS);
	assert_even(&c);
	assert_int_equal(spread_anew(&c), 0);
}

static void without_nodes_no_segment_is_assigned(void **state)
{
	struct cluster c = {};
	int next[SEGMENTS];

	(void)state;
	assert_int_equal(spread_segments(c.order, 0, c.holds, next), SEGMENTS);
	for (int s = 0; s < SEGMENTS; s++)
		assert_int_equal(next[s], SPREAD_UNASSIGNED);
}

static void few_segments_move_when_nodes_come_and_go(void **state)
{
	struct cluster c = {};

	(void)state;
	srand(7);
	nobody_holds(&c);
	join(&c, "n0");
	spread_anew(&c);
	for (int step = 0; step < 5000; step++) {
		size_t before = c.n, moved, bigger;

		if (c.n == 1 || (c.n < NODES_MAX - 1 && rand() % 2)) {
			char name[16];

			snprintf(name, sizeof(name), "n%d", step + 1);
			join(&c, name);
		} else {
			leave(&c, (size_t)rand() % c.n);
		}
		moved = spread_anew(&c);
		bigger = before > c.n ? before : c.n;
		assert_even(&c);
		if (moved > moves_allowed(bigger))
			fail_msg("step %d: %zu moves from %zu to %zu nodes", step, moved, before, c.n);
	}
}

static void every_node_computes_the_same_assignment(void **state)
{
	struct cluster a = {}, b = {};

	(void)state;
	nobody_holds(&a);
	nobody_holds(&b);
	for (int i = 0; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof(name), "host-%d", i);
		join(&a, name);
		join(&b, name);
	}
	spread_anew(&a);
	spread_anew(&b);
	assert_memory_equal(a.holds, b.holds, sizeof(a.holds));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node_has_all_segments),
		cmocka_unit_test(without_nodes_no_segment_is_assigned),
		cmocka_unit_test(few_segments_move_when_nodes_come_and_go),
		cmocka_unit_test(every_node_computes_the_same_assignment),
	};

	return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
