/* SPDX-License-Identifier: Apache-2.0 */
/* A job: what its owner asked for, and the one table that lists what can be asked. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

enum job_state {
	JOB_ACTIVE,
	JOB_PAUSED,
	JOB_SUSPENDED, /* the reason is beside it */
	JOB_FINISHED,  /* no slot left and no open run */
	JOB_CANCELLED,
	JOB_REMOVED,
	JOB_STATE_MAX
};
const char *job_state_name(enum job_state s);
bool job_state_parse(const char *name, enum job_state *ret);

/* What a submitter writes. Every member is listed in job_fields[]. */
struct job_spec {
	char *name;             /* NULL: none */
	struct strv command;    /* argv, run without a shell; empty when script is set */
	char *script;           /* run by the program of its '#!' line, else by /bin/sh -c; NULL when command is set */
	struct strv schedule;   /* see core/time/schedule.h; never empty once checked */
	char *tz;               /* IANA zone; NULL until the submitter's is known */
	int64_t dst_gap, dst_fold; /* enum dst_gap, enum dst_fold */
	usec_t from, until;     /* no slot before or after; 0: no bound */
	usec_t jitter;          /* each start is delayed by up to this, drawn once per slot */
	struct strv env;        /* NAME=value */
	struct strv tags;       /* key=value */
	char *cwd;              /* NULL: the owner's home */
	struct blob stdin_data; /* absent: /dev/null */
	char *sandbox;          /* the name of a profile; NULL: SANDBOX_PRESET */
	int64_t umask;
#define JOB_UMASK_UNSAID 077 /* of a stored definition without one: it was stored while that was the default */
	int64_t priority;       /* higher goes first */
	usec_t timeout;         /* per attempt; 0: none */
	usec_t grace;           /* between SIGTERM and SIGKILL */
	int64_t mem;            /* bytes of memory all its processes may have; 0: any */
	char *cpu;              /* share of processors; NULL: any */
	int64_t pids;           /* processes at a time; 0: any */
	int64_t nice;
	char *ionice;           /* NULL: as the machine has it */
	struct strv limits;     /* NAME=N, of each of its processes */
	int64_t output_limit;   /* bytes kept of the output: a tenth from its start, the rest from its end */

	/* policies; the grammars are in core/job/policy.h, NULL is the default */
	char *catchup;          /* latest */
	usec_t deadline;        /* after its slot, for the first attempt; 0: none */
	usec_t expires;         /* after its slot, for every attempt; 0: never */
	char *overlap;          /* skip */
	int64_t max_running;    /* its runs at a time when they may overlap; 0: any number */
	char *rate;             /* of its starts; NULL: no limit */
	char *queue;            /* NULL: default */
	struct strv when;       /* all must hold before a start */
	struct strv node_labels; /* KEY=VALUE; a node that starts it has them all */
	int64_t retries;        /* further attempts after a failed one */
	char *backoff;          /* exp:10s..10m */
	char *on_exit;          /* NULL: 0 is ok, the rest fails */
	usec_t run_timeout;     /* over all attempts; 0: none */
	int64_t on_lost;        /* enum on_lost */
	struct strv notify;     /* channels */
	struct strv secrets;    /* NAME=file:/path: where a value is read when it starts, as its owner; never the value */
	char *artifact;         /* URL of what it brings along; NULL: nothing */
	char *sha256;           /* of that, in small hex digits */
	char *template;         /* the name of what it was made from; NULL: none */
	char *warrant;          /* the word of root, or of its owner, for what it starts; NULL: none */
	struct strv params;     /* NAME=value: what stands for {NAME} in the command, and is in the environment */
};
enum on_lost { LOST_RERUN, LOST_FAIL, ON_LOST_MAX };
void job_spec_init(struct job_spec *s); /* the defaults of the table */
void job_spec_done(struct job_spec *s);
#define JOB_SCRIPT_FD 9          /* a script with a '#!' line is read from it, see order_spec.c */
#define JOB_WORD_MAX 131071      /* bytes of one argument, the kernel's limit; a script is one */
#define JOB_COMMAND_MAX (1 << 20) /* of all together, half of what the kernel takes with the environment */
/* The program of a script's '#!' line and its argument, if any. false: /bin/sh runs it. */
bool job_script_program(const char *script, char **ret_program, char **ret_arg /* NULL: none */);
bool job_spec_check(const struct job_spec *s, struct err *e); /* rules that span fields */
/* What would let one user run code as another is refused in a job that somebody else writes, unless it was there. */
bool job_env_check_foreign(const struct strv *env, const struct strv *had /* NULL: none */, struct err *e);
bool job_command_fits(const struct strv *argv, struct err *e); /* what exec would refuse is refused before */

bool job_name_check(const char *name, struct err *e); /* [A-Za-z0-9._-]{1,128}, not all digits */

/* A stored job. The spec is JSON text here: the store keeps it and never looks inside. */
struct job {
	int64_t id;
	int64_t uid;            /* the owner's number: core/job/owner.h */
	char *owner;
	char *name;             /* NULL: none */
	enum job_state state;
	char *reason;           /* why it is in that state; NULL: nothing to say */
	int64_t revision;
	int64_t segment;
	char *queue;
	int64_t priority;
	char *spec;             /* JSON */
	usec_t created_at, updated_at;
	usec_t next_slot;       /* of its first queued run, else still to be planned; 0: none */
	struct {                /* its newest run that is not queued; id 0: none yet */
		int64_t id;
		int state;      /* enum run_state */
		usec_t slot, ended_at;
		int64_t exit_code, term_signal;
	} last_run;
	struct {                /* of a paused one: 'reason' is why; with 'later' of an active one */
		char *by_name;  /* owned; NULL: nothing is known of it */
		int64_t by_uid; /* -1: the daemon itself */
		usec_t at, until;
		char *reason;   /* owned; of one with 'later'; NULL: none */
		bool later;     /* it begins at 'at' */
	} pause;
	struct {                /* its first queued run, where somebody has asked (why_waiting_read); id 0: none */
		int64_t id;
		usec_t slot, due_at;
		int hold;       /* enum run_hold */
		int64_t attempt;
		char *reason;
	} waiting;
	char *waiting_code, *waiting_message; /* what it waits for (core/decide/why.h); NULL: nothing, or nobody has asked */
};
void job_free(struct job *j);
AUTO_DEFINE(job);

#define SEGMENTS 64
int64_t job_segment(uint64_t seed); /* which of the 64 segments; any well spread number will do */
