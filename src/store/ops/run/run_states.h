/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and deletes the state that runs take to other nodes, see exec/proto/run_state.h. */
#pragma once
#include "store/ops/op.h"
#include <stdint.h>

struct store;

#define RUN_STATE_PART_BYTES (192 << 10) /* of an archive, before base64 */

/*
 * OP_STATE_PUT: one part. The parts of an attempt are written in order, from 0 on. The last one deletes
 * the parts of earlier attempts. ERR_FENCED: the attempt does not belong to this node. ERR_LIMIT, of the
 * first part: all parts together would exceed the limit of the owner.
 */
struct op_state_put {
	struct op op;
	const char *node;    /* borrowed: this engine */
	int64_t run, fence, part;
	bool last;
	int64_t total;       /* bytes of all parts, in base64 */
	char *data;          /* owned: base64 */
	char *owner;         /* owned: name, for messages */
	int64_t bytes_limit; /* of all rows of the owner; 0: no limit */
};
OP_DEFINE(run_states_put, state_put, OP_STATE_PUT, OP_STATE_PUT)

/* OP_STATE_DROP: the run has ended. A run that continues keeps its state. */
struct op_state_drop {
	struct op op;
	int64_t run;
};
OP_DEFINE(run_states_drop, state_drop, OP_STATE_DROP, OP_STATE_DROP)

/* Deletes the state of some runs that have ended. */
bool run_states_sweep(struct store *s, struct err *e);
