/* SPDX-License-Identifier: Apache-2.0 */
/* Starts workers. */
#pragma once
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/child/child.h"
#include "exec/worker/cgroup.h"
#include <stdbool.h>
#include <sys/types.h>

struct child;
struct err;
struct frame_start;
struct exec_spec;
struct payload;
struct secrets;
struct user;
struct worker;
struct workers;

struct worker_start {
	const struct frame_start *frame;
	const struct payload *payload;
	const struct user *user; /* as admitted */
	int in;                  /* standard input; -1: /dev/null */
	int artifact;            /* a directory; -1: none */
	struct secrets *secrets; /* moved; NULL: none */
	/* group of the run, in which its secrets were read; moved; NULL: none yet */
	struct cgroup *group;
};
/*
 * Always returns a worker. A failed start is in its reports. Members are borrowed unless they are
 * marked as moved.
 */
struct worker *worker_start(struct workers *ws, const struct worker_start *s);
/* 0, or -errno; without groups: 0 */
int worker_start_cgroup(
	struct workers *ws, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret);
struct worker *worker_start_refuse(struct workers *ws, const struct frame_start *s,
	enum start_failure reason, const char *why);

void worker_start_done(struct worker *w, const struct child *c); /* it already counts as running */
void worker_start_failed(struct worker *w, enum start_failure reason, char *why /* moved */);
/* WORKER_OPENING only */
void worker_start_give_up(struct worker *w, enum start_failure reason, const char *why);
enum start_failure worker_start_failure(int errnum);

/* ---- worker_limits.c ---- */
struct worker_limits {
	struct child_limits child;
	struct cgroup_limits group;
	char *note; /* owned: the limits that are not enforced, as text; NULL: all are */
};
bool worker_limits(const struct workers *ws, const struct exec_spec *o, struct worker_limits *ret,
	struct err *e);
void worker_limits_done(struct worker_limits *l);
unsigned worker_limits_refused(const struct workers *ws); /* enum limit_kind */
