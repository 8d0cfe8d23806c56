/* SPDX-License-Identifier: Apache-2.0 */
/* One control group per run, for limits, accounting, killing. */
/*
 * The groups are jobs-NAME/uid-N/M below the delegated directory, where M belongs to one run at a
 * time. An empty group is reused for the next run of its owner: creating a process in an existing
 * group costs nothing, while creating and removing a group takes a tenth of a start. A group with
 * the memory controller or with limits keeps state (pages, a peak), so it is removed instead.
 */
#pragma once
#include "base/map.h"
#include "exec/proto/epoll_source.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

enum cgroup_controller { CGROUP_CPU = 1, CGROUP_MEMORY = 2, CGROUP_PIDS = 4, CGROUP_IO = 8 };

struct cgroup_limits { /* 0: no limit */
	int64_t memory; /* bytes, including swap */
	int64_t cpu;    /* percent of one processor */
	int64_t pids;
};

struct cgroups {
	int root;              /* owned directory; -1: there are no groups */
	char *path;            /* owned; of root */
	/* children can be created in a group (CLONE_INTO_CGROUP); otherwise they move there */
	bool can_clone_into;
	unsigned controllers;  /* enum cgroup_controller: available in the groups of runs */
	int64_t next;          /* number of the next group */
	struct cgroup_limits owner_limits; /* of each uid-N directory */
	struct map owners;     /* by uid */
	size_t stuck_n;        /* groups that could not be removed yet */
};

/* The group of one run; embedded in its worker. */
struct cgroup {
	int dir;               /* owned directory; -1: none */
	struct epoll_source events;  /* cgroup.events, watched while the group is becoming empty */
	int64_t uid, number;
	int64_t cpu_user, cpu_system; /* counters when the run began */
	/*
	 * not reused: it has limits, keeps pages, or was killed; the kernel may kill new processes
	 * of a killed group
	 */
	bool single_use;
};

struct cgroup_usage {
	int64_t cpu_user, cpu_system; /* microseconds; -1: not known */
	int64_t memory;               /* peak in bytes; 0: not known */
	int64_t io_read, io_written;  /* bytes; -1: not known */
	bool out_of_memory;           /* a process was killed at a memory limit */
};

/*
 * 'where' is a directory of a cgroup2 file system, "none", or "auto" for the spawner's own group if
 * it is delegated. 'name' distinguishes several spawners that share the directory. Processes and
 * groups of an earlier spawner of that name are killed and removed first. With "auto" a missing
 * delegation is not an error; runs then have no groups.
 */
bool cgroups_open(struct cgroups *c, const char *where, const char *name, struct err *e);
/* after a re-exec; root is moved */
bool cgroups_resume(struct cgroups *c, int root, int64_t next, struct err *e);
void cgroups_done(struct cgroups *c);
void cgroups_trim(struct cgroups *c); /* removes unused groups */
static inline bool cgroups_enabled(const struct cgroups *c)
{
	return c->root >= 0;
}

/* 0, or -errno */
int cgroup_acquire(struct cgroups *c, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret);
/* Counts a group that was acquired before a re-exec as in use. 0, or -errno. */
int cgroup_adopt(struct cgroups *c, const struct cgroup *g);
bool cgroup_populated(const struct cgroup *g); /* zombies do not count */
void cgroup_kill(struct cgroup *g);
void cgroup_usage(const struct cgroups *c, struct cgroup *g, struct cgroup_usage *ret);
/* keeps it for reuse, or removes it; one without a directory is ignored */
void cgroup_release(struct cgroups *c, struct cgroup *g);

int cgroup_write(int dir, const char *file, const char *text); /* 0, or -errno */
int cgroup_read(int dir, const char *file, struct buf *out);
