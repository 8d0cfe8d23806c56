/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on notices: adding them, recording their delivery. */
#pragma once
#include "core/job/notice.h"
#include "store/notice_row.h"
#include "store/ops/op.h"
#include "store/store.h"

struct set;

struct op_notice_add {
	struct op op;
	int64_t uid;                 /* whose jobs may be used; -1: all */
	int64_t job, run;            /* run 0: the notice is about the job */
	enum notice_kind kind;
	usec_t now;
	/* results */
	struct notice_list added;    /* empty: the notice was sent before, or the job has no channels */
};
OP_DEFINE(notice_add, notice_add, OP_NOTICE_ADD, OP_NOTICE_ADD)

struct op_notice_done {
	struct op op;
	int64_t id, try;
	enum notice_state state;     /* NOTICE_WAITING: to be retried at due_at */
	bool untried;                /* nothing was sent: the try is not counted */
	usec_t now, due_at;
	char *error;                 /* owned; NULL: none */
	bool stale;                  /* result: the notice was taken again, or was finished before */
};
OP_DEFINE(notice_done, notice_done, OP_NOTICE_DONE, OP_NOTICE_DONE)

struct op_notice_resume {
	struct op op;
	const char *node, *name;     /* borrowed: engine id, node name */
	usec_t now;
	int64_t *under_way;          /* owned: notices that are still being sent */
	size_t n;
};
OP_DEFINE(notice_resume, notice_resume, OP_NOTICE_RESUME, OP_NOTICE_RESUME)

bool notices_prune(struct store *s, struct set *jobs, struct err *e); /* deletes the notices of deleted jobs */
bool notices_drop_old(struct store *s, usec_t now, struct err *e);    /* deletes some that were sent long ago */
