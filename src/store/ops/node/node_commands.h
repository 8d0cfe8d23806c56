/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of an administrator to a node. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stdint.h>

struct op_node_command {
	struct op op;
	const char *name;            /* borrowed: node name; NULL with NODE_RESIGN: the leader */
	enum node_command { NODE_DRAIN, NODE_UNDRAIN, NODE_RESIGN } order;
	usec_t now;
	/* results */
	bool changed;                /* it was not so before */
	int64_t others;              /* other nodes that start runs */
};
OP_DEFINE(node_command, node_command, OP_NODE_COMMAND, OP_NODE_COMMAND)
