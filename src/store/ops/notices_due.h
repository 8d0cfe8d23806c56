/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the due notices that this node sends next. */
#pragma once
#include "store/notice_row.h"
#include "store/ops/op.h"
#include "store/store.h"

struct query;

struct op_notice_take {
	struct op op;
	const char *node;            /* borrowed */
	usec_t now;
	usec_t again_at;             /* when they become due again if no result is recorded */
	size_t limit;                /* slots of this node; notices that are being sent use some of them */
	bool shared;                 /* the slots are divided between owners (core/fair_share.h); root is exempt */
	struct notice_use {
		int64_t uid;
		int64_t n;
	} *in_use;                   /* owned: notices that this node is sending, by owner */
	size_t n_in_use;
	/* results */
	struct notice_list taken;
	bool held;                   /* due notices were left, because no slot is free or their owner has its share */
};
OP_DEFINE(notices_due, notice_take, OP_NOTICE_TAKE, OP_NOTICE_TAKE)

/*
 * When the next waiting notice is due, except those of owners without a free slot; USEC_NEVER:
 * none.
 */
bool notices_due_first(const struct store *s, struct query *owners, usec_t *ret);
