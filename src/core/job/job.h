/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and their definitions. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include "core/job/durations.h"
#include "core/job/sign.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

enum job_state {
	JOB_ACTIVE,
	JOB_PAUSED,
	JOB_SUSPENDED, /* see 'reason' */
	JOB_FINISHED,  /* no further slot and no open run */
	JOB_CANCELLED,
	JOB_REMOVED,
	JOB_STATE_MAX
};
const char *job_state_name(enum job_state s);
bool job_state_parse(const char *name, enum job_state *ret);

#define JOB_QUEUE_DEFAULT "default"
#define JOB_TAG_METRICS "metrics" /* jobs with this tag have metrics of their own */

/* The definition of a job. Every member is listed in job_fields[]. */
struct job_spec {
	char *name;             /* NULL: none */
	struct strv command;    /* argv, run without a shell; empty when script is set */
	char *script;           /* run by the program of its '#!' line, else by /bin/sh -c; NULL when command is set */
	struct strv schedule;   /* see core/time/schedule.h; not empty after the check */
	struct strv after;      /* links to other jobs, see core/job/chain.h; such a job has no schedule of its own */
	int64_t after_mode;     /* enum chain_mode */
	char *tz;               /* IANA zone; NULL until the submitter's zone is known */
	int64_t dst_gap, dst_fold; /* enum dst_gap, enum dst_fold */
	usec_t from, until;     /* no slot before or after; 0: no bound */
	usec_t jitter;          /* each start is delayed by up to this, drawn once per slot */
	struct strv env;        /* NAME=value */
	struct strv tags;       /* key=value */
	char *cwd;              /* NULL: the owner's home */
	struct blob stdin_data; /* absent: /dev/null */
	char *sandbox;          /* the name of a profile; NULL: SANDBOX_PRESET */
	int64_t umask;
#define JOB_UMASK_UNSAID 077 /* of a stored definition without umask: the default when it was stored */
	int64_t priority;       /* higher starts first */
	usec_t timeout;         /* per attempt; 0: none */
	usec_t heartbeat;       /* longest time without a sign, see core/job/sign.h; 0: no limit */
	int64_t heartbeat_on_output; /* enum no_yes; output is a sign as well */
	int64_t results;        /* enum no_yes; the command can write results, see core/job/result.h */
	int64_t checkpoint;     /* enum no_yes; the attempts of a run share a directory */
	int64_t state_size;     /* bytes of that directory that move with the run to other nodes; 0: none */
#define JOB_STATE_SIZE_MAX (16 << 20)
	char *gate;             /* shell command before each attempt, see core/job/gate.h; NULL: none */
	usec_t gate_timeout;
	usec_t grace;           /* between SIGTERM and SIGKILL */
	int64_t mem;            /* memory limit in bytes for all its processes; 0: none */
	char *cpu;              /* CPU limit; NULL: none */
	int64_t pids;           /* limit on processes and threads; 0: none */
	int64_t nice;
	char *ionice;           /* NULL: the system default */
	struct strv limits;     /* NAME=N, for each of its processes */
	int64_t output_limit;   /* bytes of output kept: the first tenth and the last nine tenths */

	/* policies: see core/job/policy.h for the grammars; NULL is the default given here */
	char *catchup;          /* latest */
	usec_t deadline;        /* latest start of the first attempt after the slot; 0: none */
	usec_t expires;         /* latest start of any attempt after the slot; 0: none */
	char *overlap;          /* skip */
	int64_t max_running;    /* concurrent runs if they may overlap; 0: no limit */
	char *rate;             /* rate limit of its starts; NULL: none */
	char *queue;            /* NULL: default */
	struct strv when;       /* conditions that must all hold before a start */
	struct strv node_labels; /* KEY=VALUE; the node must have all of them */
	int64_t retries;        /* further attempts after a failed one */
	char *backoff;          /* exp:10s..10m */
	char *on_exit;          /* NULL: 0 succeeds, other codes fail */
	usec_t run_timeout;     /* for all attempts together; 0: none */
	int64_t on_lost;        /* enum on_lost */
	int64_t leftovers;      /* enum leftovers */
	struct strv notify;     /* channels */
	struct strv secrets;    /* NAME=file:/path, read with the owner's permissions at the start; never the value */
	/* a call instead of a command, see core/job/call.h */
	char *http;             /* method; NULL: the job has a command */
	char *url;
	struct strv headers;    /* Name: value */
	struct blob body;
	char *expect_status;    /* NULL: 200-299 */
	char *expect_body;      /* extended regular expression; NULL: any */
	int64_t expect_size;    /* bytes; a larger response is an error; 0: no limit */
	int64_t on_410;         /* enum on_410 */
	int64_t http_async;     /* 1: a status of 202 accepts the call, and the target reports its end */
	struct strv sign;       /* names of secrets that sign the body */
	char *tls_ca, *tls_cert, *tls_key; /* names of secrets; NULL: none */
	char *kafka;            /* BROKERS/TOPIC, see core/target/kafka.h; NULL: none */
	char *message_key;      /* NULL: none */
	struct blob message;
	int64_t kafka_tls;      /* 1: connections to brokers use TLS */
	char *sasl;             /* mechanism; NULL: no authentication */
	char *sasl_user, *sasl_password; /* names of secrets; NULL: none */
	char *lambda;           /* FUNCTION[:QUALIFIER], see core/target/lambda.h; NULL: none */
	char *region;           /* of the function */
	int64_t lambda_event;   /* 1: the function runs after the request has ended */
	char *artifact;         /* URL of an archive or program; NULL: none */
	char *sha256;           /* of the artifact, in lower-case hexadecimal digits */
	char *template;         /* the name of the template it was created from; NULL: none */
	char *traceparent, *tracestate, *baggage; /* trace context of the submission, see core/job/trace.h; NULL: none */
	char *warrant;          /* approval by root or the owner, see core/job/warrant.h; NULL: none */
	char *origin;           /* FILE:LINE of the crontab that the job comes from; NULL: it was submitted */
	struct strv params;     /* NAME=value: replaces {NAME} in the command, and is set in the environment */
};
enum on_410 { ON_410_FAIL, ON_410_SUSPEND, ON_410_MAX };
enum no_yes { SAY_NO, SAY_YES, NO_YES_MAX };
enum on_lost { LOST_RERUN, LOST_FAIL, ON_LOST_MAX };
enum leftovers { LEFTOVERS_END, LEFTOVERS_KEEP, LEFTOVERS_MAX };
void job_spec_init(struct job_spec *s); /* sets the defaults of job_fields[] */
void job_spec_done(struct job_spec *s);
#define JOB_SCRIPT_FD 9          /* a script with a '#!' line is read from this descriptor, see exec_spec_build.c */
#define JOB_WORD_MAX 131071      /* bytes of one argument (kernel limit); a script is one argument */
#define JOB_COMMAND_MAX (1 << 20) /* bytes of all arguments, half of the kernel's limit for arguments and environment */
/*
 * The program of the '#!' line of a script, and its argument. False: the script is run by /bin/sh.
 */
bool job_script_program(const char *script, char **ret_program, char **ret_arg /* NULL: none */);
bool job_spec_check(const struct job_spec *s, struct err *e); /* checks that involve several fields */
/*
 * For changes to a job of another user: refuses variables that make its programs load foreign code
 * (LD_PRELOAD, ENV …), except those in 'had'.
 */
bool job_env_check_foreign(const struct strv *env, const struct strv *had /* NULL: none */, struct err *e);
bool job_command_fits(const struct strv *argv, struct err *e); /* the kernel's limits on arguments */

bool job_name_check(const char *name, struct err *e); /* [A-Za-z0-9._-]{1,128}, not all digits */

/*
 * A stored job. 'spec' is the JSON text of its definition; of its members the store reads only
 * 'node_labels' and 'notify'.
 */
struct job {
	int64_t id;
	int64_t uid;            /* the owner number, see core/job/owner.h */
	char *owner;
	char *name;             /* NULL: none */
	enum job_state state;
	char *reason;           /* of the state; NULL: none */
	int64_t revision;
	int64_t segment;
	char *queue;
	int64_t priority;
	char *spec;             /* JSON */
	usec_t created_at, updated_at;
	usec_t next_slot;       /* slot of its first queued run, else the next slot to be planned; 0: none */
	struct {                /* its newest run that is not queued; id 0: none */
		int64_t id;
		int state;      /* enum run_state */
		usec_t slot, ended_at;
		int64_t exit_code, term_signal;
		struct progress progress; /* of a running run, filled in by run_progress_read_jobs() */
		usec_t estimated_end;     /* 0: unknown */
	} last_run;
	struct {                /* the pause of a paused job, or with 'later' the future pause of an active job */
		char *by_name;  /* owned; NULL: unknown */
		int64_t by_uid; /* -1: the daemon itself */
		usec_t at, until;
		char *reason;   /* owned; of a pause with 'later'; NULL: none */
		bool later;     /* the pause starts at 'at' */
	} pause;
	struct {                /* its first queued run, filled in by why_waiting_read(); id 0: none */
		int64_t id;
		usec_t slot, due_at;
		int hold;       /* enum run_hold */
		int64_t attempt;
		char *reason;
	} waiting;
	char *waiting_code, *waiting_message; /* what it waits for (core/decide/why.h); NULL: nothing, or not computed */
	struct durations durations; /* filled in by run_durations_read() */
};
void job_free(struct job *j);
AUTO_DEFINE(job);

#define SEGMENTS 64
int64_t job_segment(uint64_t seed); /* the segment for a hash value */
