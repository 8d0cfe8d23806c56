/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a child process, prepared before the child exists. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct sandbox_prepared;
struct user;

/*
 * Environment variables by which the spawner identifies the processes of a run. It sets them after
 * the job's own.
 */
#define CHILD_VAR_SPAWNER "JOBSCHED_SPAWNER"
#define CHILD_VAR_RUN "JOBSCHED_RUN"
#define CHILD_VAR_FENCE "JOBSCHED_FENCE"

#define CHILD_EXTRA_FDS_MAX 21 /* secrets, notify pipe, results, gate, state, one of them twice (worker_start.c) */
#define CHILD_RESOURCES_MAX 20

struct child_limits {
	struct {
		int resource; /* RLIMIT_… */
		struct rlimit limit;
		bool is_default; /* the PAM session of the user may replace it */
	} v[CHILD_RESOURCES_MAX];
	size_t n;
	int nice;             /* 0: inherited */
	int ioprio;           /* value for ioprio_set(2); 0: inherited */
};

/* All pointers and descriptors are borrowed. */
struct child_plan {
	const struct user *user; /* NULL: the child keeps the user of the spawner */
	/* argv NULL: a dry run, which exits with status 0 instead of calling exec() */
	char *const *argv, *const *envp;
	const char *path;   /* search path of a command without a slash; NULL: none */
	const char *cwd;
	bool cwd_optional;  /* use '/' if 'cwd' cannot be entered */
	const int *cgroup;  /* directory of its control group; NULL: that of the caller */
	/*
	 * create the child inside that group (CLONE_INTO_CGROUP); otherwise the child moves there
	 */
	bool cgroup_clone;
	int in, out;        /* standard input (for a launcher -1: none); standard output and standard error */
	const int *extra_fds; /* become descriptors 3 and up */
	size_t extra_fds_n; /* at most CHILD_EXTRA_FDS_MAX */
	/* which of these, counted from 1, is a directory that the command may always write; 0: none */
	size_t state;
	/* a detached mount, attached at 'artifact_path' in the mount namespace of the child */
	int artifact;
	const char *artifact_path; /* NULL: no artifact */
	mode_t umask;
	const struct child_limits *limits;
	pid_t parent;       /* the spawner; the child exits if it has another parent */
	const struct sandbox_prepared *sandbox;
	const char *home;   /* home directory of the owner, for %h in paths of the profile */
	/* the child is killed if it has not called exec() by then; 0: never */
	usec_t setup_timeout;
	bool clone_parent;  /* create the child as a sibling of the caller (CLONE_PARENT) */
	bool oom_score_set; /* the caller has the score of jobs, which the child inherits */
	bool keyring;       /* keep the session keyring, which the PAM session has made */
};

/*
 * Progress and result of a setup, written by the kernel and the child. The caller of
 * launch_processes() is suspended until exec(); another process that shares this memory sees each
 * pid as soon as the process exists.
 */
struct child_report {
	int stage;        /* the failed step if 'error' is not 0; see child_stage_name() */
	int error;        /* an errno; 0: no failure */
	int cwd_error;    /* errno of the optional directory; the child is in '/' */
	bool pidns_helper; /* 'pid' is a helper that creates the PID namespace and exits */
	pid_t pid;        /* the first process; 0: none was created */
	pid_t worker, pidns_init; /* of a PID namespace; 0: not created */
};
const char *child_stage_name(const struct child_report *r); /* "exec", "directory" … */
bool child_error_transient(int errnum); /* a retry may succeed: EAGAIN, ENOMEM … */
/*
 * When memory runs out, the kernel kills processes with this score before the scheduler. False: inside a container the file
 * may not be writable.
 */
bool child_oom_score_set(void);
