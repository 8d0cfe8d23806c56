/* SPDX-License-Identifier: Apache-2.0 */
/* Claims due runs for this node. */
#pragma once
#include "core/decide/machine_conditions.h"
#include "store/ops/run/runs.h"

struct batch_wake;
struct query;

struct claimed {
	struct run *run;     /* owned */
	char *spec;          /* owned JSON of the job; empty when its row is damaged or deleted */
	usec_t typical;      /* usual duration; 0: unknown, or no notice depends on it */
};
void claimed_done(struct claimed *c);
struct claim_list {
	struct claimed *v;
	size_t n;
};
void claim_list_done(struct claim_list *l);

/* The conditions and the rate of a job's spec. */
struct gate_says {
	bool met;         /* its conditions hold */
	bool unknown;     /* not met, because the machine does not report the value */
	const char *withheld; /* why its slots do not run: static; NULL: they run */
	struct rate rate; /* n 0: none */
};
/* Pure; called on the store thread inside the transaction. */
typedef void gate_fn(const char *spec, const struct machine_figures *machine, struct gate_says *ret);

struct op_claim {
	struct op op;
	const char *node;    /* borrowed: this engine */
	usec_t now;
	usec_t made_since;   /* the clock is unsure: only runs created since then are decided; 0: all */
	size_t room;         /* runs that may be claimed */
	size_t owner_max;    /* active runs of one owner on this node; 0: no limit */
	const char *labels;  /* borrowed: of this node, each between line breaks; NULL: none */
	gate_fn *gate;       /* NULL: conditions and rates of jobs are not checked */
	struct machine_figures machine;
	/* results */
	struct claim_list claimed;   /* in the order in which they should start */
	struct run_changes settled;  /* became final: skipped, expired, cancelled */
	struct run_changes replaced; /* active runs that the node which has them must end */
};
OP_DEFINE(claim, claim, OP_CLAIM, OP_CLAIM)

struct claimed claimed_read(struct query *q); /* from the columns of runs_get_claimed */
/*
 * On a server, for a batch that is one claim: whether a single read without a transaction has shown
 * that there is nothing to claim. False: the batch is applied as usual.
 */
bool claim_peek(struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret);
bool claim_read_runs(struct store *s, const char *ids, struct claim_list *ret, struct err *e);
/* Assigns claimed and running runs to this node; their fence does not change. */
bool claim_take_over(struct store *s, const char *node, struct set *ids, struct claim_list *ret, struct err *e);
/* When a limit was last seen to close the lane of this queue and owner; 0: not recently. */
usec_t claim_lane_closed_at(const struct store *s, const char *queue, int64_t uid);
