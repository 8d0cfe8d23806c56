/* SPDX-License-Identifier: Apache-2.0 */
/* Passes run output from the node that has it (the holder) to the node that reads it. */
#pragma once
#include "store/ops/op.h"
#include "store/relay_part.h"
#include "store/store.h"

/* OP_RELAY_ADD (ask, put) and OP_RELAY (keep, take, drop) */
struct op_relay {
	struct op op;
	enum relay_verb { RELAY_ASK, RELAY_PUT, RELAY_KEEP, RELAY_TAKE, RELAY_DROP } verb;
	int64_t id;                  /* random */
	const char *node;            /* borrowed: this engine */
	usec_t ttl;                  /* until it ends, unless it is kept or taken from */
	bool follow;                 /* ask, keep: send more when there is more */
	bool changed;                /* keep: 'follow' has changed */
	char *ran_on;                /* ask: owned, the engine that ran it; a later engine of the node may have the output */
	int64_t run, attempt;        /* ask */
	int64_t from, tail;          /* ask: first offset, and at most this many bytes of the end; tail -1: all */
	struct relay_part part;      /* put: the part; take: result, number 0: none */
	/* results */
	bool gone;                   /* the relay does not exist any more; ask: no live node has the output */
	char *holder, *name;         /* ask: owned, the engine that has the output and its node name; NULL: unknown */
};
OP_DEFINE(output_relay, relay, OP_RELAY_ADD, OP_RELAY)

bool output_relays_prune(struct store *s, struct err *e); /* deletes relays that have ended */
