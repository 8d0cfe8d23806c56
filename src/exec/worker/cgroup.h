/* SPDX-License-Identifier: Apache-2.0 */
/* A control group for each run: what is in it ends with the run, is counted, and keeps to its limits. */
/*
 * Below a directory that is ours alone: jobs-NAME/uid-N/M, where M is one run at a time. An empty group is used again for
 * the next run of its owner as long as nothing of the last one is left in it: a process that is born in a group that
 * exists costs nothing, making and removing one a tenth of a start. With the memory controller, or after limits, there is
 * something left (pages, a peak), so these are removed.
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

struct cgroup_limits { /* 0: none */
	int64_t memory; /* bytes, swap included */
	int64_t cpu;    /* percent of one processor */
	int64_t pids;
};

struct cgroups {
	int root;              /* owned; -1: there are no groups */
	char *path;            /* owned: of root */
	bool births;           /* children can be born in them, else they have to move there */
	unsigned controllers;  /* enum cgroup_controller: those of the groups of runs */
	int64_t next;          /* number of the next group */
	struct cgroup_limits owner_limits; /* of each uid-N */
	struct map owners;     /* by uid */
	size_t stuck_n;        /* that could not be removed yet */
};

/* Of one run; embedded. */
struct cgroup {
	int dir;               /* owned; -1: none */
	struct source events;  /* cgroup.events, watched once the group is to become empty */
	int64_t uid, number;
	int64_t cpu_user, cpu_system; /* that were there before */
	bool spent;            /* not to be used again: it has limits, keeps pages, or was killed (which kills what is born there) */
};

struct cgroup_usage {
	int64_t cpu_user, cpu_system; /* microseconds; -1: not known */
	int64_t memory;               /* the most at a time; 0: not known */
	int64_t io_read, io_written;  /* bytes; -1: not known */
	bool out_of_memory;           /* something in it was killed for its memory limit */
};

/*
 * 'where' is a directory of a cgroup2 file system, "none", or "auto": our own group, if it was delegated to us. 'name'
 * tells several spawners in one place apart. What an earlier spawner of that name left there is killed and removed first.
 * Without a place there are no groups, which is no error unless one was named.
 */
bool cgroups_open(struct cgroups *c, const char *where, const char *name, struct err *e);
bool cgroups_resume(struct cgroups *c, int root, int64_t next, struct err *e); /* root is moved */
void cgroups_done(struct cgroups *c);
void cgroups_trim(struct cgroups *c); /* removes what is not in use */
static inline bool cgroups_enabled(const struct cgroups *c)
{
	return c->root >= 0;
}

int cgroup_acquire(struct cgroups *c, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret); /* 0, or -errno */
int cgroup_adopt(struct cgroups *c, const struct cgroup *g); /* one that the program before us took; 0, or -errno */
bool cgroup_populated(const struct cgroup *g); /* dead processes that nobody has reaped do not count */
void cgroup_kill(struct cgroup *g);
void cgroup_usage(const struct cgroups *c, struct cgroup *g, struct cgroup_usage *ret);
void cgroup_release(struct cgroups *c, struct cgroup *g); /* to be used again, or removed; none is fine */

/* ---- within the module ---- */
int cgroup_write(int dir, const char *file, const char *text); /* 0, or -errno */
int cgroup_read(int dir, const char *file, struct buf *out);
bool cgroup_root_find(const char *where, char **ret, struct err *e); /* NULL: there is none */
void cgroup_root_clear(int dir, const char *what); /* kills all that is below, and removes it */
void cgroup_root_remove_below(int dir);
