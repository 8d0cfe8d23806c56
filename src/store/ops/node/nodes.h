/* SPDX-License-Identifier: Apache-2.0 */
/* Registers engines: open, poll, close. */
#pragma once
#include "store/ops/run/claims.h"

struct strv;

struct op_node_open {
	struct op op;
	const char *node, *name, *spawner; /* borrowed: engine id, stable node name, spawner id */
	const char *host;
	const char *labels;                /* as in op_claim; NULL: none */
	bool barred;                       /* it never leads */
	usec_t now;
	usec_t ttl;                        /* duration of the node lease; 0: it does not end */
	usec_t run_ttl;                    /* duration of the run lease; not below ttl */
	const char *boot;                  /* boot id of the machine; NULL: unknown */
	const char *machine;               /* machine id; NULL: unknown */
	usec_t uptime;                     /* since that boot */
	bool in_use;                       /* another process has the file open: rows of this name may be a live daemon's */
	const struct strv *past_spawners;  /* borrowed: spawners of daemons that have ended; NULL: unknown */
	/*
	 * results: active runs of earlier engines of this node name, now assigned to this engine
	 * with the same fence
	 */
	struct claim_list same_spawner;    /* the spawner still has them or their results */
	struct claim_list other_spawner;   /* their spawner is gone: lost */
	bool rival;                        /* refused: another daemon of this name uses the store */
	bool given_up;                     /* this engine had been reaped: it lost its runs */
	usec_t last_seen;                  /* when an engine was last active, as far as rows tell; 0: never */
	int64_t others;                    /* other live nodes */
};
OP_DEFINE(node_open, node_open, OP_NODE_OPEN, OP_NODE_OPEN)

struct op_node_close {
	struct op op;
	const char *node;            /* borrowed */
	usec_t now;
	bool guarded;                /* its spawner has a deadline and ends runs that may not run twice */
	usec_t run_ttl;              /* with guarded: how long the runs in 'held' are waited for */
	int64_t *held;               /* owned: runs that its spawner has; the others are lost at once */
	size_t n_held;
};
OP_DEFINE(node_close, node_close, OP_NODE_CLOSE, OP_NODE_CLOSE)

struct op_node_poll {
	struct op op;
	const char *node;            /* borrowed */
	/* results */
	uint64_t segments;           /* of this node, as a mask */
	int64_t others;              /* other live nodes */
	struct run_changes to_end;   /* runs of this node that were asked to end */
};
OP_DEFINE(node_poll, node_poll, OP_NODE_POLL, OP_NODE_POLL)

/*
 * Locks the row of a node until the commit. *ret_spawner NULL: the node is not open, or its lease
 * has ended.
 */
bool node_hold(struct store *s, const char *node, char **ret_spawner, bool *ret_draining, struct err *e);
/* Counts the other live nodes; the store notifies them of changes if there are any. */
bool nodes_others(struct store *s, const char *node, int64_t *ret, struct err *e);
