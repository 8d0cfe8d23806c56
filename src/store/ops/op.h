/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: messages that change the store. The holder of the pointer owns the operation. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include "core/job/event.h"
#include <assert.h>
#include <stdbool.h>

enum op_kind {
	OP_JOB_ADD,       /* add one job */
	OP_JOB_BULK,      /* add many jobs, all or none */
	OP_JOB_APPLY,     /* add, change and remove many jobs, all or none */
	OP_JOB_CANCEL,    /* stop the schedule of a job; its queued runs are cancelled */
	OP_JOB_REMOVE,    /* the same, and hide the job; its history stays */
	OP_JOB_CHANGE,    /* replace the definition of a job, if its revision is the expected one */
	OP_TEMPLATE_PUT,
	OP_TEMPLATE_REMOVE,
	OP_RUN_CANCEL,    /* end a queued run, or mark a running one; the caller signals the process */
	OP_PAUSE,         /* pause one job, or all jobs of a scope */
	OP_RESUME,        /* end a pause and release the runs that it held back */
	OP_PAUSES_END,    /* end or begin the pauses whose time has come */
	OP_EXPIRE,        /* expire queued runs that may not start any more */
	OP_TRIGGER,       /* add a run of a job now */
	OP_PLAN,          /* turn due slots into queued runs */
	OP_LATE,          /* apply the catch-up policy to planned runs after downtime or a clock change */
	OP_BOOT,          /* add a run of each boot job, once per boot and node name */
	OP_CLAIM,         /* claim due runs for this node */
	OP_STARTED,       /* record that a process was started */
	OP_ENDED,         /* record the end of an attempt */
	OP_GIVE_BACK,     /* queue a claimed run again that was not started */
	OP_DEAD_RETRY,    /* queue dead letters again */
	OP_DEAD_PURGE,    /* clear the dead-letter mark; the runs keep their state */
	OP_NODE_OPEN,     /* register this engine and its spawner; take over the runs of earlier engines */
	OP_NODE_CLOSE,    /* unregister this engine */
	OP_NODE_COMMAND,  /* drain, undrain or resign, as an administrator asked */
	OP_LEASE,         /* renew the node lease, and the leader lease if this node stands for leader */
	OP_LEAD,          /* the leader's work: reap dead nodes, assign segments */
	OP_NODE_POLL,     /* read what other nodes changed; writes nothing */
	OP_PRUNE,         /* delete the runs and jobs that prune_candidates_find() found */
	OP_FORGET,        /* record that the kept output of attempts was deleted */
	OP_EVENT,         /* add one audit event, for example of a refused request */
	OP_LIMIT_SET,     /* create or change a queue, or the limits of an owner */
	OP_LIMIT_RM,      /* remove them; a queue that is in use is refused */
	OP_TOKEN_ADD,     /* add a token or a session */
	OP_TOKEN_REMOVE,  /* remove a token and its sessions, or one session */
	OP_OWNER,         /* find or assign the number of a uid and user name */
	OP_NOTICE_ADD,    /* add the notices of a run that is still active, or test notices */
	OP_NOTICE_TAKE,   /* reserve due notices for sending by this node */
	OP_NOTICE_DONE,   /* record the result of sending a notice */
	OP_NOTICE_RESUME, /* make the notices due again that an earlier engine of this node was sending */
	OP_RELAY_ADD,     /* request output from another node, or hand over a part of it */
	OP_RELAY,         /* take a part, extend the request or end it */
	OP_PROGRESS,      /* record the progress of running attempts */
	OP_STATE_PUT,     /* store a part of the state of a run */
	OP_STATE_DROP,    /* delete the state of a run that has ended */
	OP_KIND_MAX
};

/* Each kind has a struct that begins with this one, for example struct op_claim (OP_CLAIM). */
struct op {
	enum op_kind kind;
	bool ok;               /* result */
	struct err err;        /* when not ok */
	void (*on_done)(struct op *op, void *arg); /* on the loop thread, after the commit; owns the op from then on */
	void *arg;
	struct act act;        /* who asks for it; the system unless set */
	bool patient;          /* no client waits for it: the batch may be delayed for more operations */
	struct op *next;       /* in the queue that holds it */
};

const char *op_kind_name(enum op_kind kind); /* NULL: no such kind */
struct op *op_new(enum op_kind kind, void (*on_done)(struct op *, void *), void *arg);
void op_free(struct op *op); /* frees the owned results; NULL is fine */
AUTO_DEFINE(op);

/*
 * Defines NAME_op(op): the struct op_TYPE that begins with 'op', whose kind is 'first' or 'second'.
 */
#define OP_DEFINE(name, type, first, second)                            \
	static inline struct op_##type *name##_op(const struct op *op)  \
	{                                                               \
		assert(op->kind == (first) || op->kind == (second));    \
		return (struct op_##type *)op;                          \
	}

/* Sets all members of an operation but its struct op. */
#define op_fill(o, ...) ((void)(*(o) = (__typeof__(*(o))){.op = (o)->op, __VA_ARGS__}))
/* Copies all members of an operation but its struct op. */
#define op_copy(o, from)                         \
	do {                                     \
		__typeof__(o) to_ = (o);         \
		struct op kept_ = to_->op;       \
						 \
		*to_ = (from);                   \
		to_->op = kept_;                 \
	} while (0)
