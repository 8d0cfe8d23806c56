/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that change the store; each is a message that is owned by whoever holds it. */
#pragma once
#include "base/err.h"
#include "core/job/event.h"
#include "core/decide/judge.h"
#include "core/decide/machine_conditions.h"
#include "core/job/pause.h"
#include "core/job/policy.h"
#include "store/read/prune_candidates.h"
#include "store/store.h"
#include <stdint.h>

enum op_kind {
	OP_JOB_ADD,    /* one job */
	OP_JOB_BULK,   /* many jobs, all or none */
	OP_JOB_CANCEL, /* no more slots; queued runs are cancelled */
	OP_JOB_REMOVE, /* the same, and out of sight; history stays */
	OP_JOB_CHANGE, /* a new definition under an expected revision */
	OP_TEMPLATE_PUT,
	OP_TEMPLATE_REMOVE,
	OP_RUN_CANCEL, /* a queued run ends; a running one is marked and must be signalled by the caller */
	OP_PAUSE,      /* a job, or all that a scope covers, does not start */
	OP_RESUME,     /* ... starts again; what was held back is let go */
	OP_PAUSES_END, /* the pauses whose time is over */
	OP_EXPIRE,     /* queued runs that may not start any more */
	OP_TRIGGER,    /* a run of a job now */
	OP_PLAN,       /* due slots become runs */
	OP_LATE,       /* after a time when nobody was there: catch-up for what had been planned */
	OP_BOOT,       /* a kernel booted: the jobs that wait for that get a run, once per boot and node name */
	OP_CLAIM,      /* due runs become ours */
	OP_STARTED,    /* a process exists */
	OP_ENDED,      /* an attempt is over */
	OP_GIVE_BACK,  /* claimed, never started: queued again */
	OP_DEAD_RETRY, /* dead letters are queued again */
	OP_DEAD_PURGE, /* they are dead letters no more; the runs stay as they ended */
	OP_NODE_OPEN,  /* this engine and its spawner; takes over what they held */
	OP_NODE_CLOSE, /* this engine leaves in peace */
	OP_NODE_COMMAND, /* what an administrator wants of a node */
	OP_LEASE,      /* this engine is alive, and may stand for leader */
	OP_LEAD,       /* the leader: dead nodes are given up, segments spread */
	OP_NODE_POLL,       /* changes nothing: what others did that concerns us */
	OP_PRUNE,      /* old runs and ended jobs go, as prune_candidates_find() found them */
	OP_FORGET,     /* the kept output of these attempts goes */
	OP_EVENT,      /* an event alone: something was refused */
	OP_LIMIT_SET,  /* a queue or the limits of an owner are made or changed */
	OP_LIMIT_RM,   /* ... removed; a queue that is in use stays */
	OP_OWNER,      /* somebody came: the number of this uid and name */
	OP_NOTICE_ADD,    /* somebody is to be told of a run that goes on, or on trial */
	OP_NOTICE_TAKE,   /* notices that are due become ours to send, for a while */
	OP_NOTICE_DONE,   /* a notice was sent, or not */
	OP_NOTICE_RESUME, /* what an earlier engine of this node name was sending is due again */
	OP_RELAY_ADD,  /* output is asked for, or a part of it handed over */
	OP_RELAY,      /* ... taken, still wanted, or not any more */
	OP_KIND_MAX
};

/* What to do about a live job that has the name already. */
enum if_exists { EXISTS_ERROR, EXISTS_KEEP, EXISTS_REPLACE, IF_EXISTS_MAX };

/* A job to be added. Strings are borrowed from the op's owner and live as long as the op. */
struct job_new {
	int64_t uid;             /* the owner's number: core/job/owner.h */
	const char *owner;
	const char *name;        /* NULL: none */
	const char *spec;        /* JSON, canonical */
	const char *key;         /* idempotency key; NULL: none */
	const char *content;     /* as submitted, before relative times became instants: the same key with the
				    same content is the same submission; NULL: the spec says it */
	const struct strv *tags; /* NULL: none */
	int64_t priority;
	const char *queue;       /* NULL: default */
	struct start_policy policy;
	usec_t now;
	usec_t run_at;           /* a run is queued at once for this slot; 0: none */
	usec_t run_delay;        /* and is due so long after it */
	usec_t next_slot;        /* the first slot of 'due'; 0: none; USEC_NEVER: it waits for something else */
	bool boots;              /* it is due at each boot */
	bool paused;             /* until it is resumed; by its owner, or by the administrator who adds it for another user */
	bool by_admin;           /* may take the name of a cancelled job that an administrator had paused */
	int64_t limit;           /* live jobs this uid may have, this one included; 0: any number */
	int64_t bytes_limit;     /* of all rows of this uid; 0: none */
	enum if_exists if_exists;
	const char *asked;       /* as submitted, before relative times became instants: asked for again, it is the
				    same job; NULL: no way to tell */
	const struct err *late;  /* borrowed: why it could not be added now, if its key is not known; NULL: it can */
	int64_t density_max;       /* the other jobs due at next_slot are counted up to this; 0: not at all */
	/* results */
	int64_t id;              /* the job's number */
	int64_t run;             /* the run queued at once; 0: none */
	bool existed;            /* the key was known, with the same content, or the name was: nothing was added */
	bool replaced;           /* ... but that job has this definition now */
	int64_t crowd;           /* the other jobs at next_slot; 0 in a batch that has too many slots to look at */
};

struct op_job_bulk {
	struct job_new *v; /* owned array */
	size_t n;
	size_t failed;     /* result: index of the one that was refused */
};

struct op_job_cancel {       /* OP_JOB_CANCEL and OP_JOB_REMOVE */
	int64_t uid;         /* whose jobs may be touched; -1: all */
	int64_t id;
	bool running;        /* also ask for the end of its running runs */
	usec_t now;
	/* results */
	char *name;          /* owned; NULL: none */
	enum job_state was;
	int64_t queued_cancelled;
	struct run_list open; /* its claimed and running runs */
};

/* A definition in place of another. Finished jobs with a new schedule come to life again. */
struct op_job_change {
	int64_t uid;         /* whose jobs may be touched; -1: all */
	int64_t id;
	int64_t expect;      /* the revision that was changed; 0: whichever it is */
	const char *what;    /* what is new, in words */
	int64_t origin;      /* the revision that has the same definition, when it is taken up again; 0: none */
	bool reschedule;     /* 'to' has other slots: what is planned and not due yet goes, and next_slot comes */
	bool follows;        /* ... but while a run of it is open, its end is waited for instead */
	struct job_new to;   /* name, spec, tags, queue, policy, slots, now; its results are not used */
	/* results */
	int64_t revision;
	enum job_state was, state;
	int64_t unplanned;   /* queued runs that are gone; their slots are no more, or are planned again */
	int64_t run;         /* queued at once; 0: none */
};

/* A template of one owner, made or replaced. Texts are borrowed. */
struct op_template {         /* OP_TEMPLATE_PUT and OP_TEMPLATE_REMOVE */
	int64_t uid;
	const char *owner, *name;
	const char *params, *spec; /* JSON */
	usec_t now;
	int64_t bytes_limit; /* of all rows of this uid; 0: none */
	int64_t revision;    /* result: 1 when it is new */
};

struct op_run_cancel {
	int64_t uid;
	int64_t id;
	usec_t now;
	/* results */
	struct run *run;     /* owned; as it is now: final, or cancel_asked */
	bool was_final;      /* it had ended before; nothing changed */
};

struct op_pause {
	int64_t uid;         /* whose jobs may be touched; -1: all */
	int64_t job;         /* with scope PAUSE_JOB */
	struct pause_order pause;  /* what, by whom, why, from when, how long; its texts are borrowed */
	int64_t limit;       /* pauses there may be for the jobs of its uid, this one included; 0: any number */
	/* results, of a job */
	char *name;          /* owned; NULL: none */
	enum job_state was;
	struct run_list open; /* its claimed and running runs: they go on */
};

/* What the planner decides for one due row. Slots ascend. */
struct planned {
	struct planned_run {
		enum run_state state;     /* RUN_QUEUED, or RUN_SKIPPED for missed ones */
		usec_t slot, slot_last;
		int64_t slot_count;
		usec_t due_at;
		const char *reason;       /* static text, or NULL */
		bool caught_up;           /* the slot passed earlier; the run waits for the run before it */
	} *runs;                          /* owned; see plan_run_add */
	size_t n;
	struct start_policy policy;       /* of these runs */
	usec_t next_slot;                 /* 0: the schedule has ended; USEC_NEVER: it waits for its run's end or a boot */
	const char *suspend;              /* static text: the job can go no further, and why; else NULL */
	int64_t steps;                    /* slots that may be looked at in this round; what was used is taken off */
	bool later;                       /* they did not suffice: the row stays as it is for the next round */
};
void plan_run_add(struct planned *p, const struct planned_run *run);
struct due_job {
	int64_t job, revision;
	const char *name; /* NULL: none */
	const char *spec; /* JSON */
	usec_t slot;      /* its next slot, inside the horizon */
	usec_t created_at;
};
/* Pure; called on the store thread inside the transaction. */
typedef void plan_fn(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret,
	void *arg);

struct op_resume {
	int64_t uid;         /* whose jobs may be touched; -1: all */
	int64_t job;         /* with scope PAUSE_JOB */
	enum pause_scope scope;
	const char *key;     /* borrowed, as in a pause */
	int64_t of_uid;      /* whose jobs the pause was for; -1: everybody's */
	const char *reason;  /* borrowed, for the events and the next pause; NULL: none */
	usec_t now;
	usec_t until;        /* the pause begins again then; 0: it does not */
	int64_t by_uid;      /* sets the next pause */
	const char *by_name; /* borrowed */
	plan_fn *fn;         /* finds the next slot of a job that was suspended or cancelled */
	void *fn_arg;
	int64_t limit;       /* live jobs the owner may have, with this one; 0: any number */
	/* results */
	bool found;          /* there was such a pause, or the job was paused, suspended or cancelled */
	char *name;          /* of a job, owned; NULL: none */
	enum job_state was;  /* of a job */
	size_t released;     /* runs that were held back */
};

struct op_pauses_end {
	usec_t now;
	size_t jobs, scopes, released; /* results */
	size_t begun;                  /* jobs whose pause began */
};

/* A run that an operation changed without starting it. */
struct run_change {
	int64_t job, run, fence;
	enum run_state state;  /* as it is now */
};
struct run_changes {
	struct run_change *v;  /* owned */
	size_t n;
};
struct op_expire {
	usec_t now;
	struct run_changes expired; /* result */
};

struct op_trigger {
	int64_t uid;         /* whose jobs may be touched; -1: all */
	int64_t job;
	int64_t revision;    /* that policy and tags are of; another one by now: ERR_BUSY */
	struct start_policy policy;
	const struct strv *tags; /* borrowed */
	const char *params;  /* borrowed JSON; NULL: none */
	bool forced;         /* in spite of a pause, and of runs that go on */
	bool overrides_freeze;          /* ... and of a freeze: an administrator asks */
	int64_t limit;       /* live jobs its owner may have, should it come back to life; 0: any number */
	int64_t bytes_limit; /* of all rows of its owner; 0: none */
	usec_t now;
	struct run *run;     /* result, owned */
};

struct op_plan {
	const char *node;    /* borrowed: this engine's id, which plans its segments; NULL: all, and nobody is asked */
	usec_t now, horizon;
	size_t limit;        /* due rows at a time */
	int64_t steps;       /* slots that passed looked at in all, so that a transaction stays short */
	plan_fn *fn;
	void *fn_arg;
	/* results */
	size_t jobs, runs;   /* rows moved, runs made */
};

/* Runs of one job that had been planned and whose slots then passed while nobody was there. */
struct late_job {
	struct due_job job;   /* its slot is the next one without a run; 0: none */
	const usec_t *slots;  /* ascending */
	size_t n;
};
/*
 * Returns how many of them, from the oldest on, are missed. *ret_caught_up: the job's catch-up is 'all', so the others
 * run one after another. Pure; called on the store thread inside the transaction.
 */
typedef size_t late_fn(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg);
struct op_late {
	usec_t since, now;   /* slots from after the one up to the other passed unseen */
	int64_t after;       /* jobs up to this one were looked at */
	bool set_back;       /* the clock: what was planned for later than the look-ahead is planned anew */
	late_fn *fn;
	void *fn_arg;
	/* results */
	size_t missed;       /* runs skipped */
	size_t undone;       /* jobs planned anew */
	int64_t more;        /* ask again with this as 'after'; 0: that was all */
};

/* Whether a job with this spec runs after a boot, and when. Pure; on the store thread inside the transaction. */
typedef bool boot_fn(int64_t job, const char *spec, usec_t now, usec_t *ret_due, struct start_policy *ret_policy,
	void *arg);
struct op_boot {
	const char *name, *boot; /* borrowed: the node's name, the kernel's boot id */
	usec_t now;
	boot_fn *fn;             /* NULL: at once */
	void *fn_arg;
	size_t runs;             /* result: runs made; 0 when this boot was known */
};

struct claimed {
	struct run *run;     /* owned */
	char *spec;          /* owned JSON of the job; empty when its row is damaged or gone */
	usec_t typical;      /* how long it usually takes; 0: unknown, or nobody wants to know */
};
struct claim_list {
	struct claimed *v;
	size_t n;
};
/* What the spec of a job with a condition or a rate says. Pure; on the store thread inside the transaction. */
struct gate_says {
	bool met;         /* its conditions hold */
	bool unknown;     /* not met, as the machine does not tell what they ask for */
	struct rate rate; /* n 0: none */
};
typedef void gate_fn(const char *spec, const struct machine_figures *machine, struct gate_says *ret);
struct op_claim {
	const char *node;    /* borrowed: this engine's id */
	usec_t now;
	size_t room;
	size_t owner_max;    /* runs of one owner at a time on this node; 0: no such limit */
	const char *labels;  /* borrowed: of this node, a line break before, between and after; NULL: none */
	gate_fn *gate;       /* NULL: conditions and rates of jobs are not asked */
	struct machine_figures machine;
	/* results */
	struct claim_list claimed; /* in the order in which they should start */
	struct run_changes settled;  /* became final: skipped, expired, cancelled */
	struct run_changes replaced; /* claimed or running, and to be ended by whoever has them */
};

struct op_started {
	const char *node, *spawner; /* borrowed */
	int64_t run, fence, attempt;
	int64_t pid;
	usec_t started_at;
};

struct op_ended {
	const char *node;            /* borrowed */
	struct attempt attempt;      /* owned strings; run, number, fence say which */
	enum run_state state;        /* what becomes of the run (judge_attempt) */
	usec_t due_at;               /* when state is RUN_QUEUED */
	char reason[RUN_REASON_MAX]; /* empty: nothing to say */
	bool failure, lost;          /* which count of the run it adds to */
	bool dead;                   /* it is a dead letter from then on */
	char *tail;                  /* owned, base64: the end of what it wrote, for other nodes to show; NULL: it stays where it is */
	bool pause;                  /* its exit code says that the job is to be paused */
	const char *suspend;         /* static: the job can go no further, and why; else NULL */
	/* results */
	enum run_state became;       /* 'state', but a cancelled job's run is not queued again: RUN_CANCELLED */
	bool stale;                  /* somebody else has the run: kept as a stale attempt */
	bool job_finished, job_paused;
	int64_t job;
};

struct op_give_back {
	const char *node;
	int64_t run, fence;
	usec_t due_at;               /* when it may be claimed again */
	usec_t now;                  /* when it ended, if nobody wants it any more */
};

struct op_dead {                     /* OP_DEAD_RETRY and OP_DEAD_PURGE */
	int64_t uid;                 /* whose may be touched; -1: all */
	int64_t id;                  /* this run; 0: all that the rest says, oldest first */
	int64_t job;                 /* 0: of every job */
	usec_t since, until;         /* when they died: from 'since' to before 'until'; 0: open */
	usec_t after_at;             /* cursor: beyond this moment ... */
	int64_t after;               /* ... and run */
	size_t limit;                /* rows looked at in one step */
	usec_t now;
	/* results */
	struct run_list runs;        /* those that changed, as they are now */
	int64_t refused;             /* of those that were meant; the first reason is in 'why' */
	struct err why;
	bool more;                   /* go on from next_at and next */
	usec_t next_at;
	int64_t next;
};

struct op_node_open {
	const char *node, *name, *spawner; /* borrowed: engine id, stable node name, spawner id */
	const char *host;
	const char *labels;                /* as op_claim has them; NULL: none */
	bool barred;                       /* it never leads */
	usec_t now;
	usec_t ttl;                        /* how long it lives without being renewed; 0: for ever */
	usec_t run_ttl;                    /* how long its runs are its own without that; not below ttl */
	const char *boot;                  /* which boot of which machine this is; NULL: unknown */
	const char *machine;               /* the machine alone; NULL: unknown */
	usec_t uptime;                     /* since that boot */
	bool in_use;                       /* another process had the file open before us: rows of our name may be a live daemon's */
	const struct strv *past_spawners;  /* borrowed; of daemons that have ended; NULL: none are known */
	/* results: claimed and running runs of earlier engines of this node name, now ours (same fence) */
	struct claim_list same_spawner;  /* the spawner knows what became of them */
	struct claim_list other_spawner; /* their spawner is gone: lost */
	bool rival;                        /* refused: another daemon of this name uses the store */
	bool given_up;                     /* this very engine had been: what it held is not its own any more */
	usec_t last_seen;                  /* when an engine was last there, as far as rows tell; 0: never */
	int64_t others;                    /* other nodes that are alive */
};

struct op_node_close {
	const char *node;            /* borrowed */
	usec_t now;
	bool guarded;                /* its spawner keeps a deadline, and ends what must not run twice */
	usec_t run_ttl;              /* how long 'held' are waited for, if so */
	int64_t *held;               /* owned: runs that its spawner has; the others are given up at once */
	size_t n_held;
};

struct op_node_command {
	const char *name;            /* borrowed: the node's name; NULL with resign: whoever leads */
	enum node_command { NODE_DRAIN, NODE_UNDRAIN, NODE_RESIGN } order;
	usec_t now;
	/* results */
	bool changed;                /* it was not so before */
	int64_t others;              /* other nodes that start runs */
};

/* All of it is refused with ok false and ERR_FENCED to an engine that was given up, or displaced (then 'displaced'). */
#define NODE_NAME_SHOWN 80
struct op_lease {
	const char *node, *name;     /* borrowed: engine id, node name */
	usec_t ttl;
	usec_t run_ttl;              /* not below ttl */
	usec_t at;                   /* our clock, for the record */
	bool stands;                 /* it would lead */
	bool resigns;                /* it leads no longer */
	bool guarded;                /* its spawner has a deadline, and ends what must not run twice */
	usec_t skew;                 /* of its clock, as last measured: shown to people */
	/* results */
	bool displaced;              /* a newer engine has this node's name */
	usec_t now;                  /* the store's clock; 0: it has none but ours */
	bool leads, took;            /* took: it did not before */
	int64_t term;                /* of the leader, whoever that is: only ever grows */
	usec_t leader_remains;       /* until the leader's lease ends, whoever that is */
	int64_t others;              /* other nodes that are alive */
	uint64_t segments;           /* ours, as a mask */
	bool draining;
	usec_t first_slot;           /* of all segments, whoever plans them; 0: none */
	char planner[NODE_NAME_SHOWN]; /* the node that is to plan it; empty: none */
	char leader[NODE_NAME_SHOWN];  /* empty: nobody leads */
	usec_t worked;               /* when the leader's work was last done whole, as it wrote down */
};

struct op_lead {
	const char *node;            /* borrowed */
	int64_t term;
	usec_t now;
	bool spares;                 /* nobody is given up yet: the store was away, for others perhaps as well */
	usec_t unguarded_wait;       /* how much longer a node is waited for whose spawner has no deadline */
	usec_t away_before;          /* a node without a deadline that left before that is not expected back for its runs */
	/* results */
	struct claim_list lost;    /* what dead nodes had; it is ours now, to be given up */
	int64_t dead, live;          /* nodes given up; nodes alive, this one among them */
	int64_t moved;               /* segments that changed hands */
};

struct op_node_poll {
	const char *node;            /* borrowed */
	/* results */
	uint64_t segments;
	int64_t others;
	struct run_changes to_end;   /* runs of this node that somebody wants to end */
};

struct op_notice_add {
	int64_t uid;                 /* whose jobs may be touched; -1: all */
	int64_t job, run;            /* run 0: of the job as such */
	enum notice_kind kind;
	usec_t now;
	/* results */
	struct notice_list added;    /* none: it has been said, or the job has no channels */
};

struct op_notice_take {
	const char *node;            /* borrowed */
	usec_t now;
	usec_t again_at;             /* when they are due again, should we never say what became of them */
	size_t limit;                /* slots of this node; those in use by an earlier take count */
	bool shared;                 /* the slots are divided between owners (core/decide/fair_share.h); root is exempt */
	struct notice_use {
		int64_t uid;
		int64_t n;
	} *in_use;                   /* owned: notices under way on this node, by owner */
	size_t n_in_use;
	struct notice_list taken;    /* result */
	bool held;                   /* result: due notices were left, because no slot is free or their owner has its share */
};

struct op_notice_done {
	int64_t id, try;
	enum notice_state state;     /* NOTICE_WAITING: to be tried again at due_at */
	bool untried;                /* nothing was sent: the try is not counted */
	usec_t now, due_at;
	char *error;                 /* owned; NULL: none */
	bool stale;                  /* result: it had been taken again, or was done */
};

struct op_notice_resume {
	const char *node, *name;     /* borrowed: engine id, node name */
	usec_t now;
	int64_t *under_way;          /* owned: those whose sending still goes on */
	size_t n;
};

struct op_prune {
	const struct prune_candidates *list; /* borrowed */
	usec_t events_before;          /* audit events older than this go too, a few at a time */
	/* results */
	int64_t runs, jobs, events;
	struct kept_output *outputs;   /* owned: files that nobody needs any more */
	size_t n_outputs;
};

struct op_forget {
	const struct kept_output *v;   /* borrowed */
	size_t n;
};

/* Output of an attempt on its way from the node that has it, the holder, to one where somebody reads it. */
struct op_relay {
	enum relay_verb { RELAY_ASK, RELAY_PUT, RELAY_KEEP, RELAY_TAKE, RELAY_DROP } verb; /* the first two: OP_RELAY_ADD */
	int64_t id;                  /* random */
	const char *node;            /* borrowed: this engine */
	usec_t ttl;                  /* how long it lives unless it is kept or taken from */
	bool follow;                 /* ask, keep: more is to come when there is more */
	bool changed;                /* keep: 'follow' is another one now */
	char *ran_on;                /* ask: owned, the engine that ran it, perhaps not the one that is there now */
	int64_t run, attempt;        /* ask */
	int64_t from, tail;          /* ask: first offset, but no more than so many bytes of the end; tail -1: all */
	struct relay_part part;      /* put: what is given; take: what was got, number 0: nothing */
	/* results */
	bool gone;                   /* there is no such relay any more; ask: nobody is there who has it */
	char *holder, *name;         /* ask: owned, the engine that has it, and its node's name; NULL: unknown */
};

/* What op->act asked for did not happen, or has no other operation. */
struct op_event {
	const char *result;  /* static: the error's code; NULL: ok */
	char detail[200];    /* empty: nothing to add */
	int64_t job, run, owner;
	usec_t now;
};

/* OP_LIMIT_SET and OP_LIMIT_RM. */
struct op_limit {
	enum limit_scope scope;
	const char *key;      /* borrowed: the queue's name, or the uid in digits */
	enum limit_be { LIMIT_BE_EITHER, LIMIT_BE_NEW, LIMIT_BE_THERE } be; /* else it is refused */
	/* what is not given stays as it was, or as it is when nobody says anything */
	bool running_given, weight_given, rate_given;
	int64_t running, weight;
	struct rate rate;
	usec_t now;
	bool created;         /* result */
};

struct op_owner {
	uint32_t uid;
	const char *name;     /* borrowed */
	usec_t now;
	int64_t number;       /* result: see core/job/owner.h */
};

struct op {
	enum op_kind kind;
	bool ok;               /* result */
	struct err err;        /* when not ok */
	void (*on_done)(struct op *op, void *arg); /* on the loop thread, after the commit; then owns the op */
	void *arg;
	struct act act;        /* who asks for it; the system unless told otherwise */
	bool patient;          /* nobody waits for it: it may wait a moment for company */
	struct op *next;       /* of whatever queue holds it */
	union {
		struct job_new add;
		struct op_job_bulk bulk;
		struct op_job_cancel job_cancel;
		struct op_job_change change;
		struct op_template template;
		struct op_run_cancel run_cancel;
		struct op_pause pause;
		struct op_resume resume;
		struct op_pauses_end pauses_end;
		struct op_expire expire;
		struct op_trigger trigger;
		struct op_plan plan;
		struct op_late late;
		struct op_boot boot;
		struct op_claim claim;
		struct op_started started;
		struct op_ended ended;
		struct op_give_back give_back;
		struct op_dead dead;
		struct op_node_open node_open;
		struct op_node_close node_close;
		struct op_node_command node_command;
		struct op_lease lease;
		struct op_lead lead;
		struct op_node_poll look;
		struct op_notice_add notice_add;
		struct op_notice_take notice_take;
		struct op_notice_done notice_done;
		struct op_notice_resume notice_resume;
		struct op_relay relay;
		struct op_prune prune;
		struct op_forget forget;
		struct op_event event;
		struct op_limit limit;
		struct op_owner owner;
	};
};

struct op *op_new(enum op_kind kind, void (*on_done)(struct op *, void *), void *arg);
void op_free(struct op *op); /* frees the owned results; NULL is fine */
AUTO_DEFINE(op);
void claim_list_done(struct claim_list *l);
void run_changes_done(struct run_changes *l);
