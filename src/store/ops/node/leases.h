/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the node lease, with the leader lease. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stddef.h>
#include <stdint.h>

struct store;

#define NODE_NAME_SHOWN 80

/* Refused with ERR_FENCED if the node was reaped or a newer engine has its name (displaced). */
struct op_lease {
	struct op op;
	const char *node, *name;     /* borrowed: engine id, node name */
	usec_t ttl;                  /* duration of the node lease and the leader lease */
	usec_t run_ttl;              /* duration of the run lease; not below ttl */
	usec_t at;                   /* clock of this node, for the record */
	bool stands;                 /* may become leader */
	bool resigns;                /* gives the leader lease up */
	bool guarded;                /* its spawner has a deadline and ends runs that may not run twice */
	usec_t skew;                 /* of its clock, as last measured; shown in lists */
	/* results */
	bool displaced;              /* a newer engine has this node name */
	usec_t now;                  /* clock of the server; 0: SQLite, which has none of its own */
	bool leads, took;            /* took: it did not lead before */
	bool yielded;                /* it gave the leader lease up: it resigned, or was told to, or is drained */
	int64_t term;                /* of the current leader; never decreases */
	usec_t leader_remains;       /* until the lease of the current leader ends */
	int64_t others;              /* other live nodes */
	uint64_t segments;           /* of this node, as a mask */
	bool draining;
	usec_t first_slot;           /* of all segments; 0: none */
	char planner[NODE_NAME_SHOWN]; /* the node that plans first_slot; empty: none */
	char leader[NODE_NAME_SHOWN];  /* empty: there is no leader */
	usec_t worked;               /* when the leader last completed its work */
};
OP_DEFINE(lease, lease, OP_LEASE, OP_LEASE)

/*
 * Renews leases without a transaction around them: each renewal is one round trip
 * (db_ops.transact).
 */
bool lease_renew_outside_tx(struct store *s, struct op *const *ops, size_t n, struct err *e);
