/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes segments evenly with as few moves as possible. */
#include "core/decide/spread.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct node_share {
	size_t has, quota;
};

/* Rendezvous hash of node and segment. Must never change: all nodes compute it. */
static uint64_t score(const char *name, int segment)
{
	uint64_t h = UINT64_C(0xCBF29CE484222325) ^ ((uint64_t)segment + 1) * UINT64_C(0x9E3779B97F4A7C15);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
	h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
	return h ^ h >> 31;
}

/* The remainder goes to the nodes that have the most segments, which needs the fewest moves. */
static void set_quotas(struct node_share *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].quota = SEGMENTS / n;
	for (size_t more = SEGMENTS % n; more > 0; more--) {
		size_t most = n;

		for (size_t i = 0; i < n; i++)
			if (v[i].quota == SEGMENTS / n && (most == n || v[i].has > v[most].has))
				most = i;
		v[most].quota++;
	}
}

/* Releases the segments with the lowest scores of a node above its quota. */
static void release_excess(struct node_share *v, const char *const names[], int ret[SEGMENTS], int node)
{
	while (v[node].has > v[node].quota) {
		int least = SPREAD_UNASSIGNED;

		for (int s = 0; s < SEGMENTS; s++)
			if (ret[s] == node && (least < 0 || score(names[node], s) < score(names[node], least)))
				least = s;
		ret[least] = SPREAD_UNASSIGNED;
		v[node].has--;
	}
}

static int best_node(const struct node_share *v, const char *const names[], size_t n, int segment)
{
	int best = SPREAD_UNASSIGNED;

	for (size_t i = 0; i < n; i++)
		if (v[i].has < v[i].quota &&
		    (best < 0 || score(names[i], segment) > score(names[best], segment)))
			best = (int)i;
	return best;
}

size_t spread_segments(const char *const names[], size_t n, const int was[SEGMENTS], int ret[SEGMENTS])
{
	struct node_share *v = xcalloc(n ? n : 1, sizeof(*v));
	size_t moved = 0;

	for (int s = 0; s < SEGMENTS; s++) {
		ret[s] = was[s] >= 0 && (size_t)was[s] < n ? was[s] : SPREAD_UNASSIGNED;
		if (ret[s] >= 0)
			v[ret[s]].has++;
	}
	if (n > 0)
		set_quotas(v, n);
	for (size_t i = 0; i < n; i++)
		release_excess(v, names, ret, (int)i);
	for (int s = 0; n > 0 && s < SEGMENTS; s++)
		if (ret[s] < 0) {
			ret[s] = best_node(v, names, n, s);
			v[ret[s]].has++;
		}
	for (int s = 0; s < SEGMENTS; s++)
		moved += ret[s] != was[s];
	free(v);
	return moved;
}
