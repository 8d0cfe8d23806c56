/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job runs, does not run or will not run: one code, one sentence, and the next command to type. */
#pragma once
#include "base/clock.h"
#include "core/time/clock_trust.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

struct event;
struct pause_order;

enum why_code {
	WHY_NONE,
	/* now */
	WHY_RUNNING,
	WHY_SCHEDULED,    /* nothing is due: the next slot is to come */
	WHY_NOT_DUE,      /* its run is made, and due later */
	WHY_STARTING,     /* nothing is in its way */
	WHY_RETRY,
	WHY_PAUSED,
	WHY_FROZEN,
	WHY_OVERLAP,
	WHY_MAX_RUNNING,
	WHY_QUEUE_FULL,
	WHY_OWNER_FULL,
	WHY_RATE,
	WHY_CONDITION,
	WHY_NO_ROOM,
	WHY_NO_SPAWNER,
	WHY_ARTIFACT,     /* cannot be fetched at the moment */
	WHY_STORE,        /* does not take what has to be written first */
	WHY_DRAINING,
	WHY_NO_NODE,      /* that has its labels */
	WHY_DRAINED,      /* are all nodes that have them */
	WHY_CLOCK,
	WHY_MANUAL,
	WHY_BOOT,
	WHY_FOLLOWS,      /* the next slot counts from the end of a run */
	WHY_UNPLANNED,    /* its slot has passed, and is not planned yet */
	WHY_FINISHED,
	WHY_CANCELLED,
	WHY_REMOVED,
	WHY_SUSPENDED,
	/* what became of a slot */
	WHY_SUCCEEDED,
	WHY_FAILED,
	WHY_DEAD,
	WHY_TIMED_OUT,
	WHY_LOST,
	WHY_REPLACED,
	WHY_MISSED,
	WHY_DEADLINE,
	WHY_EXPIRED,
	WHY_LIMIT,        /* too many waited */
	WHY_DENIED,       /* its owner, or what he asked for, is not let through to a process */
	/* a moment somebody asked about */
	WHY_NO_SLOT,
	WHY_BEFORE,       /* the job was not there yet */
	WHY_TO_COME,
	WHY_NO_RECORD,
	WHY_CODE_MAX
};
const char *why_code_name(enum why_code c);

struct why_reason {
	enum why_code code;
	char message[480];
	char command[200]; /* empty: nothing to type */
};

/* A queue or an owner. */
struct why_share {
	const char *name;
	int64_t active, running; /* running 0: any number */
	usec_t rate_at;          /* when its rate lets the next one start; now or before: at once */
};

#define WHY_REFUSED_MAX 160
#define WHY_ARTIFACTS_MAX 240
/* How this node is, as the loop knows it. */
struct why_node {
	bool stopping;
	bool user_mode;          /* the daemon of one user, which starts its spawner itself */
	char spawner[128];       /* why the spawner starts nothing; empty: it does */
	int64_t spawner_stopped; /* its process, if SIGCONT would help; else 0 */
	int64_t active, room;    /* runs here; how many more may start */
	enum clock_trust clock;
	char refused[WHY_REFUSED_MAX]; /* why the store takes no starts; empty: it does */
	char artifacts[WHY_ARTIFACTS_MAX]; /* why artifacts cannot be fetched; empty: no reason is known */
};

/* The nodes of the store that are alive. */
struct why_nodes {
	int64_t alive, awake;      /* awake: not drained */
	int64_t fit, fit_awake;    /* of these, with the labels that the job wants; all if it wants none */
	bool elsewhere;            /* this node is drained, or has not its labels: what is in the way here, is not */
	const char *wanted;        /* labels; NULL: any node will do */
	const char *offered;       /* "zone=a on n1, gpu=yes on n2"; NULL: no node has any */
	const char *drained;       /* a node to undrain; NULL: none */
	const char *leader;        /* NULL: nobody leads */
};

struct why_facts {
	usec_t now;
	const char *ref;                 /* what to type for the job */
	enum job_state state;
	const char *state_reason;        /* NULL: none */
	usec_t next_slot;                /* 0: none known */
	bool manual, boots, follows;     /* what its slots come from, beside times */
	const struct pause_order *pause; /* that covers it; NULL: none */
	const char *error;               /* of the run's last attempt; NULL: none */
	int64_t owner_number;            /* whose job it is (core/job/owner.h) */
	bool bound;                      /* an ordinary user asks, who gets no advice that only administrators can follow */
	const struct event *ended;       /* its cancellation or removal; NULL: not known */

	const struct run *run;           /* its first open run, a waiting one before one that runs; NULL: none */
	usec_t last_start;               /* after this it will not start any more; 0: any time */
	const struct run *holder;        /* of the place that the run waits for; NULL: not known */
	int64_t taken, places;           /* of its places; places 0: any number of its runs may go on */
	struct why_share queue, owner;
	usec_t rate_at;                  /* of the job's own rate */
	bool artifact;                   /* the job has one */
	const char *unmet;               /* the condition that does not hold, with its figure; NULL: all hold */
	struct why_node node;
	struct why_nodes nodes;          /* alive 0: not known */
};

/* What the job waits for, now or for good. */
void why_now(const struct why_facts *f, struct why_reason *ret);
/* The reason that keeps every run of the job from starting: a pause, a freeze or the spawner; WHY_NONE: there is none. */
void why_held(const struct why_facts *f, struct why_reason *ret);
/* Whether that is a waiting for something other than its time: worth a word in a list. */
bool why_is_wait(enum why_code c);

/* The outcome of a slot. 'ref' names the job in commands; 'error' is the error of the last attempt, or NULL. */
void why_run(const struct run *r, const char *error, const char *ref, usec_t now, struct why_reason *ret);

/* A moment that has no run. */
struct why_moment {
	usec_t at, now, created_at;
	const char *ref;
	usec_t previous, next;           /* slots around it; 0: none */
	bool is_slot;                    /* the schedule, as it is now, has a slot there */
	const struct event *paused;      /* the last pause before it, if nothing has ended that before; NULL: none */
};
void why_at(const struct why_moment *m, struct why_reason *ret);
