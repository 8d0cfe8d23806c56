/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of this machine, prepared once, and the steps by which a child puts itself under one. */
#pragma once
#include "core/job/sandbox_profile.h"
#include "exec/child/sandbox_seccomp.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct launch_stacks;

/* A profile as it is applied here. */
struct fences {
	struct sandbox profile;          /* without what is missing */
	const struct sandboxes *all;     /* borrowed */
	int namespaces;                  /* CLONE_NEW…; with CLONE_NEWPID a keeper is their first process */
	const struct sock_fprog *filter; /* borrowed; NULL: none */
	char *missing;                   /* in words; NULL: nothing is */
	bool reduced;                    /* a part is not applied at all: runs say so */
	bool usable;
};

struct sandboxes {
	struct fences *v;
	size_t n;
	struct sock_fprog filters[CALLS_MAX];
	int landlock;              /* the kernel's version of it; 0: none that is of use */
	int ruleset;               /* of FENCE_PROCESSES; -1: none */
	int network;               /* the namespace in which there is none; -1: made for each run */
	int init;                  /* the keeper's program; -1: not there */
	int self;                  /* our own pidfd, for children that do not see our number */
	int offers;                /* a sealed memfd: what the engine is told of them */
	bool user_ns;              /* we are nobody special: other namespaces come with one of users */
	char uid_map[40], gid_map[40];
};

/*
 * Tries what the profiles are made of, with the very steps of a worker. A profile of which something is missing is
 * refused, or goes without it (when 'report'); either way it says so. 'init' is the path of the keeper's program.
 */
bool sandbox_set_open(struct sandboxes **ret, const struct sandbox_profiles *profiles, bool report, const char *init,
	struct launch_stacks *l, struct err *e);
void sandbox_set_free(struct sandboxes *s);
/* NULL: no such profile, or not one to be used; why is in *e. */
const struct fences *sandbox_set_find(const struct sandboxes *s, const char *name, struct err *e);

/* ---- in the child; all return 0 or an errno, and have nothing to do when the profile does not ask for it ---- */
int sandbox_apply_users(const struct fences *f);                     /* maps us to ourselves in a new user namespace */
int sandbox_apply_network(const struct fences *f);
int sandbox_apply_mounts(const struct fences *f, const char *home, const char *keep /* a directory to mount on; NULL: none */);
int sandbox_apply_proc(const struct fences *f);                      /* by a process of the new PID namespace */
int sandbox_apply_capabilities(const struct fences *f, bool root);
int sandbox_apply_privileges(const struct fences *f);
int sandbox_apply_landlock(const struct fences *f, const char *home);
int sandbox_apply_seccomp(const struct fences *f);
int sandbox_exec_init(const struct fences *f, char *const envp[]);  /* becomes the keeper's program; returns on failure only */
int sandbox_spawner_alive(const struct fences *f);
