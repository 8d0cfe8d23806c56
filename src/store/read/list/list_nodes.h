/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the nodes of the cluster. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

struct node_view {
	char *id, *name, *host; /* owned */
	usec_t opened_at;
	usec_t lease_remains;   /* 0 or less: the lease has expired */
	usec_t runs_remain;     /* the same for the run lease */
	bool guarded;           /* its spawner has a deadline */
	usec_t skew;            /* difference between its clock and that of the store */
	bool draining, leads;
	int64_t segments;       /* number of segments that it plans */
	int64_t active;         /* claimed and running runs */
	char *labels;           /* owned: as in op_claim; empty: none */
	bool barred;            /* it may never lead */
	usec_t left_at;         /* 0: the node is open */
	bool lost;              /* with left_at: the leader declared it lost */
};
struct node_list {
	struct node_view *v;    /* owned; by name */
	size_t n;
	char *leader;           /* owned: its name; NULL: no leader */
	int64_t term;
	usec_t lease_remains;   /* of the leader lease */
	usec_t worked;          /* when the leader last completed its work; 0: never, or there were no other nodes */
};
void node_list_done(struct node_list *l);
bool list_nodes_open(struct store *s, struct node_list *ret, struct err *e);
/*
 * Nodes that left within the last day, were lost within the last week, or are drained, and have not
 * come back. The list has no leader.
 */
bool list_nodes_gone(struct store *s, usec_t now, struct node_list *ret, struct err *e);
bool list_nodes_rows(struct store *s, struct node_list *l, struct err *e); /* open nodes; inside a transaction */
