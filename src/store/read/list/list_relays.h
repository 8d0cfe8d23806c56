/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the output relays of a node. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

struct relay_view {
	int64_t id;
	bool serves;            /* this node has the output; else it reads it */
	int64_t run, attempt, from, tail, taken; /* if it serves the output */
	bool follow;
	int64_t ready;          /* if it reads the output: parts that are ready */
	bool alive;             /* ... and whether the serving node has a lease */
};
struct relay_list {
	struct relay_view *v;   /* owned */
	size_t n;
};
void relay_list_done(struct relay_list *l);
bool list_relays_of_node(struct store *s, const char *node, struct relay_list *ret, struct err *e);
