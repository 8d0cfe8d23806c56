/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons why a job runs, waits or will not run: a code, a sentence and a command to type next. */
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
	WHY_SCHEDULED,    /* nothing is due before the next slot */
	WHY_NOT_DUE,      /* its run exists and is due later */
	WHY_STARTING,     /* due, nothing prevents the start */
	WHY_RETRY,
	WHY_GATE,
	WHY_PAUSED,
	WHY_FROZEN,
	WHY_OVERLAP,
	WHY_MAX_RUNNING,
	WHY_QUEUE_FULL,
	WHY_OWNER_FULL,
	WHY_RATE,
	WHY_CONDITION,
	WHY_CRON,        /* the job of a crontab, which another cron daemon runs */
	WHY_NO_ROOM,
	WHY_NO_SPAWNER,
	WHY_ARTIFACT,     /* cannot be fetched at the moment */
	WHY_NET,          /* jobsched-net, which sends its request, is not running */
	WHY_STORE,        /* the store refuses the writes that a start needs */
	WHY_DRAINING,
	WHY_NO_NODE,      /* no node has its labels */
	WHY_DRAINED,      /* all nodes with its labels are drained */
	WHY_CLOCK,
	WHY_MANUAL,
	WHY_AFTER,        /* the next slot comes from the end of a run of another job */
	WHY_BOOT,
	WHY_FOLLOWS,      /* the next slot counts from the end of a run */
	WHY_UNPLANNED,    /* its slot has passed without being planned */
	WHY_FINISHED,
	WHY_CANCELLED,
	WHY_REMOVED,
	WHY_SUSPENDED,
	/* outcomes of a slot */
	WHY_SUCCEEDED,
	WHY_FAILED,
	WHY_DEAD,
	WHY_TIMED_OUT,
	WHY_LOST,
	WHY_REPLACED,
	WHY_MISSED,
	WHY_DEADLINE,
	WHY_EXPIRED,
	WHY_LIMIT,        /* too many runs were waiting */
	WHY_DENIED,       /* the spawner refused the owner or the command */
	/* answers about a given time */
	WHY_NO_SLOT,
	WHY_BEFORE,       /* before the job was added */
	WHY_TO_COME,
	WHY_NO_RECORD,
	WHY_CODE_MAX
};
const char *why_code_name(enum why_code c);

struct why_reason {
	enum why_code code;
	char message[480];
	char command[200]; /* empty: none */
};

/* A queue or an owner. */
struct why_share {
	const char *name;
	int64_t active, running; /* running 0: any number */
	usec_t rate_at;          /* when its rate allows the next start; now or before: at once */
};

#define WHY_REFUSED_MAX 160
#define WHY_ARTIFACTS_MAX 240
/* The state of this node, from the loop thread. */
struct why_node {
	bool stopping;
	bool user_mode;          /* a daemon of a single user, which starts its own spawner */
	char spawner[128];       /* why the spawner starts nothing; empty: it does */
	int64_t spawner_stopped; /* pid of the spawner if it is stopped (SIGSTOP); else 0 */
	int64_t active, room;    /* runs here; how many more may start */
	enum clock_trust clock;
	usec_t made_since, clock_left; /* CLOCK_UNSURE: runs created since then start; the longest wait of the others */
	char refused[WHY_REFUSED_MAX]; /* why the store accepts no starts; empty: it does */
	char calls[WHY_ARTIFACTS_MAX];     /* why calls cannot be sent; empty: no reason is known */
	char artifacts[WHY_ARTIFACTS_MAX]; /* why artifacts cannot be fetched; empty: no reason is known */
};

/* The nodes of the store that are alive. */
struct why_nodes {
	int64_t alive, awake;      /* awake: not drained */
	int64_t fit, fit_awake;    /* of these, nodes with the labels of the job; all if it has none */
	bool elsewhere;            /* this node is drained or lacks the labels, so its own obstacles do not matter */
	const char *wanted;        /* labels of the job; NULL: none */
	const char *offered;       /* "zone=a on n1, gpu=yes on n2"; NULL: no node has any */
	const char *drained;       /* a node to undrain; NULL: none */
	const char *leader;        /* NULL: no leader */
};

struct why_facts {
	usec_t now;
	const char *ref;                 /* name or number of the job, for commands */
	enum job_state state;
	const char *state_reason;        /* NULL: none */
	usec_t next_slot;                /* 0: none known */
	bool manual, boots, follows;     /* sources of slots other than times */
	const char *after;               /* the jobs that it runs after, see chain_explain(); NULL: none */
	const struct pause_order *pause; /* the pause that covers it; NULL: none */
	const char *error;               /* of the run's last attempt; NULL: none */
	int64_t owner_number;            /* see core/job/owner.h */
	bool bound;                      /* the client is no administrator: suggest only commands that it may use */
	const struct event *ended;       /* its cancellation or removal; NULL: unknown */

	const struct run *run;           /* its first open run, waiting runs before running ones; NULL: none */
	usec_t last_start;               /* the last moment at which it may start; 0: no limit */
	const struct run *holder;        /* the run that has the permit; NULL: unknown */
	int64_t taken, permits;          /* permits in use, and all permits; 0: no limit */
	struct why_share queue, owner;
	usec_t rate_at;                  /* of the job's own rate */
	bool artifact;                   /* the job has one */
	bool call;                       /* the job is a request, not a command */
	bool rated;                      /* the job has a rate or conditions */
	const char *unmet;               /* the condition that does not hold, with its figure; NULL: all hold */
	struct why_node node;
	struct why_nodes nodes;          /* alive 0: unknown */
};

/* Why the job does not run now, or will not run again. */
void why_now(const struct why_facts *f, struct why_reason *ret);
/*
 * The reason that keeps every run of the job from starting: a pause, a freeze or the spawner;
 * WHY_NONE: there is none.
 */
void why_held(const struct why_facts *f, struct why_reason *ret);
/* Whether the job waits for something other than its time, which lists show. */
bool why_is_wait(enum why_code c);

/*
 * The outcome of a slot. 'ref' names the job in commands; 'error' is the error of the last attempt,
 * or NULL. 'call': the job is a request, not a command.
 */
void why_run(const struct run *r, const char *error, bool call, const char *ref, usec_t now, struct why_reason *ret);

/* A time without a run. */
struct why_moment {
	usec_t at, now, created_at;
	const char *ref;
	usec_t previous, next;           /* the neighbouring slots; 0: none */
	bool is_slot;                    /* the current schedule has a slot at this time */
	const struct event *paused;      /* the pause in force at this time; NULL: none */
};
void why_at(const struct why_moment *m, struct why_reason *ret);
