/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox profiles: preparation in the spawner, application in the child. */
#pragma once
#include "core/job/sandbox_profile.h"
#include "exec/child/sandbox_seccomp.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct launch_stacks;

/* A profile as this kernel can apply it. */
struct sandbox_prepared {
	struct sandbox profile;          /* without the parts that are missing */
	const struct sandbox_set *all;   /* borrowed */
	/* CLONE_NEW…; with CLONE_NEWPID jobsched-init is the first process */
	int namespaces;
	const struct sock_fprog *filter; /* borrowed; NULL: none */
	char *missing;                   /* missing parts and their errors, as text; NULL: none */
	bool reduced;                    /* a part is not applied; the run gets a note about it */
	bool usable;
};

struct sandbox_set {
	struct sandbox_prepared *v;
	size_t n;
	struct sock_fprog filters[CALLS_MAX];
	/* Landlock ABI version; 0: none, or a version that cannot be used */
	int landlock;
	int ruleset;               /* of LANDLOCK_PROCESSES; -1: none */
	/* a network namespace without interfaces; -1: each run gets its own */
	int network;
	int init;                  /* the program jobsched-init; -1: not found */
	/* pidfd of the spawner, for children in a PID namespace, which cannot see its pid */
	int self;
	int offers;                /* sealed memfd: the list of profiles for the daemon */
	/* the spawner is not root: other namespaces need a user namespace */
	bool user_ns;
	char uid_map[40], gid_map[40];
};

/*
 * Tests the profiles with the same setup steps as a worker. A profile with a missing part is
 * refused, or with 'report' used without that part; both are reported. 'init' is the path of
 * jobsched-init.
 */
bool sandbox_set_open(struct sandbox_set **ret, const struct sandbox_profiles *profiles,
	bool report, const char *init, struct launch_stacks *l, struct err *e);
void sandbox_set_free(struct sandbox_set *s);
/* NULL: there is no such profile, or it cannot be used; *e has the reason. */
const struct sandbox_prepared *sandbox_set_find(
	const struct sandbox_set *s, const char *name, struct err *e);

/* ---- in the child: 0 or an errno; nothing is done if the profile does not need it ---- */
/* maps the own uid and gid in a new user namespace */
int sandbox_apply_users(const struct sandbox_prepared *f);
int sandbox_apply_network(const struct sandbox_prepared *f);
/* 'mount_point' is created if it is below a directory that the profile replaces; NULL: none. */
int sandbox_apply_mounts(
	const struct sandbox_prepared *f, const char *home, const char *mount_point);
/* called by a process of the new PID namespace */
int sandbox_apply_proc(const struct sandbox_prepared *f);
int sandbox_apply_capabilities(const struct sandbox_prepared *f, bool root);
int sandbox_apply_privileges(const struct sandbox_prepared *f);
int sandbox_apply_landlock(const struct sandbox_prepared *f, const char *home, int state);
int sandbox_apply_seccomp(const struct sandbox_prepared *f);
/* executes jobsched-init; returns only on failure */
int sandbox_exec_init(const struct sandbox_prepared *f, char *const envp[]);
int sandbox_spawner_alive(const struct sandbox_prepared *f);

/* ---- paths of a profile, in the child ---- */
#define SANDBOX_PATH_MAX 4096
/*
 * Replaces %h by the home directory of the owner. False: too long, or there is no home directory.
 */
bool sandbox_path_expand(const char *path, const char *home, char out[SANDBOX_PATH_MAX]);
/*
 * Opens a path with O_PATH; a descriptor, or -errno. The owner can replace anything below %h, so
 * symbolic links are not followed there (-ELOOP). Other paths are controlled by the administrator.
 */
int sandbox_path_open(const char *path, const char *home);
bool sandbox_path_absent(int error); /* the path does not exist, or the owner cannot reach it */
