/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a prepared command into a process: made like vfork, set up by a table of steps. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct cgroup;
struct err;
struct fences;
struct user;

#define CHILD_EXTRA_FDS_MAX 16

#define CHILD_RESOURCES_MAX 20
struct child_limits {
	struct {
		int resource; /* RLIMIT_… */
		struct rlimit limit;
		bool ours; /* a default, which the session of a user may replace */
	} v[CHILD_RESOURCES_MAX];
	size_t n;
	int nice;             /* 0: as we are */
	int ioprio;           /* as the kernel wants it; 0: as we are */
};

/* Everything the child needs, made before it exists; all borrowed. */
struct child_plan {
	const struct user *user; /* who to become; NULL: it stays who we are */
	char *const *argv, *const *envp; /* no argv: a trial, which ends well where the command would begin */
	const char *path;   /* where a command without a slash is looked for; NULL: nowhere */
	const char *cwd;    /* to be entered */
	bool cwd_optional;  /* or '/' when that fails */
	const struct cgroup *cgroup; /* to be in; NULL: where we are */
	bool born;          /* there; else it has to move */
	int in, out;        /* become 0, and 1 and 2 */
	const int *more;    /* become 3 and what follows */
	size_t more_n;      /* up to CHILD_EXTRA_FDS_MAX */
	int artifact;       /* a mount to be put at 'artifact_place', for this child only */
	const char *artifact_place; /* NULL: none */
	mode_t umask;
	const struct child_limits *limits;
	pid_t parent;
	const struct fences *fences; /* of its sandbox */
	const char *home;            /* of its owner, for paths of the sandbox */
	usec_t patience;    /* it is killed when it has not become the command by then; 0: however long it takes */
	bool beside;        /* a child of our parent, as we are: see launch_processes() */
	bool keyring;       /* we have one for it, which it keeps */
};

/*
 * The words that the kernel and the child write before the command begins. The caller of launch_processes() is suspended until
 * then; another process that shares this memory sees the process numbers as soon as the processes exist.
 */
struct child_report {
	int stage;        /* of the table, when error is not 0 */
	int error;
	int cwd_error;    /* the directory could not be entered, the child is in '/' */
	bool host;        /* 'pid' only makes a PID namespace with its keeper and worker, and exits */
	pid_t pid;        /* the first process; 0: none was made */
	pid_t worker, keeper; /* of a PID namespace; 0: none */
};

struct launch_stacks; /* of children and of those they make; one is enough, births do not overlap */
bool launch_stacks_new(struct launch_stacks **ret, struct err *e);
void launch_stacks_free(struct launch_stacks *s);

struct child {
	pid_t pid;    /* ours to reap */
	int pidfd;    /* owned */
	pid_t keeper; /* of its PID namespace, ours to reap, too, and to be killed when 'pid' has ended; 0: none */
};
/*
 * Returns when the command runs, or with the reason why not: 0, or -errno of the step that *word names. The child shares the
 * caller's memory until then, and it may be blocked by a file system of its owner: the spawner itself calls this for
 * children only that stay root and use trusted paths. The processes are not reaped.
 */
int launch_processes(struct launch_stacks *s, const struct child_plan *p, struct child_report *word);
/* launch_processes() for a child of our own; what failed is reaped. */
int launch_child(struct launch_stacks *s, const struct child_plan *p, struct child *ret, struct child_report *ret_word);
int launch_child_reap(struct child *c); /* one that ends by itself, and all that goes with it; its status, as of waitpid */
const char *child_stage_name(const struct child_report *w); /* "exec", "directory" … */
bool child_error_transient(int errnum); /* worth another try: EAGAIN, ENOMEM … */
