/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's work: reaps dead nodes, assigns segments. */
#pragma once
#include "store/ops/run/claims.h"

struct op_lead {
	struct op op;
	const char *node;            /* borrowed */
	int64_t term;
	usec_t now;
	bool spares;                 /* do not reap nodes: the store was unavailable, perhaps also for them */
	usec_t unguarded_wait;       /* added to the run lease of a node whose spawner has no deadline */
	usec_t away_before;          /* runs of a node without a deadline that left before this time are lost */
	/* results */
	struct claim_list lost;      /* runs of dead nodes, now assigned to this engine, which records them as lost */
	int64_t dead, live;          /* nodes reaped; live nodes including this one */
	int64_t moved;               /* segments assigned to another node */
};
OP_DEFINE(leader, lead, OP_LEAD, OP_LEAD)

bool leader_worked(struct store *s, usec_t at, struct err *e); /* records that the leader's work was done */
