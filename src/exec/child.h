/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a prepared command into a process: launched like vfork, set up by a table of steps. */
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

#define CHILD_MORE_MAX 16

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
	size_t more_n;      /* up to CHILD_MORE_MAX */
	int artifact;       /* a mount to be put at 'artifact_place', for this child only */
	const char *artifact_place; /* NULL: none */
	mode_t umask;
	const struct child_limits *limits;
	pid_t parent;
	const struct fences *fences; /* of its sandbox */
	const char *home;            /* of its owner, for paths of the sandbox */
	usec_t patience;    /* it is killed when it has not become the command by then; 0: however long it takes */
	bool beside;        /* a child of our parent, as we are: see child_make() */
	bool keyring;       /* we have one for it, which it keeps */
	bool aside;         /* in memory of its own, nobody waits: what went wrong it says itself, in its output */
};

/* What the child wrote before it became the command. */
struct child_word {
	int stage;        /* of the table, when error is not 0 */
	int error;
	int cwd_error;    /* the directory could not be entered, the child is in '/' */
	pid_t worker, keeper; /* of a PID namespace; 0: none */
};

struct launcher; /* the stack and the shared word of children; one is enough, launches do not overlap */
bool launcher_new(struct launcher **ret, struct err *e);
void launcher_free(struct launcher *l);

struct child {
	pid_t pid;    /* ours to reap */
	int pidfd;    /* owned */
	pid_t keeper; /* of its PID namespace, ours to reap, too, and to be killed when 'pid' has ended; 0: none */
};
/* Returns when the command runs, or with the reason why not: 0, or -errno of the step *ret_word names. Aside: at once. */
int child_launch(struct launcher *l, const struct child_plan *p, struct child *ret, struct child_word *ret_word);
/*
 * The same in two halves: the first is done by a process between us and the child, which inherits from it (plan.beside),
 * the second by us, with what the first has returned. Whatever became of it, it is reaped or ours afterwards.
 */
struct child_made {
	pid_t pid;
	bool host;             /* it was gone again when its guests were made */
	struct child_word word;
};
int child_make(struct launcher *l, const struct child_plan *p, struct child_made *ret, int *ret_pidfd);
int child_take(struct child_made *m, struct child *ret); /* -ECHILD: it is no child of ours */
/* Whether it was killed for want of patience, before it was the command; 'began' is when it was launched (boottime). */
bool child_stalled(const struct child *c, const struct child_plan *p, usec_t began);
bool child_can_aside(const struct child_plan *p); /* not with a PID namespace: we would not learn who it is */
int child_reap(struct child *c); /* one that ends by itself, and all that goes with it; its status, as of waitpid */
const char *child_stage_name(const struct child_word *w); /* "exec", "directory" … */
bool child_error_transient(int errnum); /* worth another try: EAGAIN, ENOMEM … */
