/* SPDX-License-Identifier: Apache-2.0 */
/* A run in our hands: from its claim until its end is in the store. */
#pragma once
#include "base/map.h"
#include "core/job/start_plan.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include <stdbool.h>

enum active_run_stage {
	ACTIVE_RUN_HELD,     /* claimed a moment early, to start when another ends */
	ACTIVE_RUN_ADOPTED,  /* taken over from an earlier life; the spawner has not yet said what it is */
	ACTIVE_RUN_FETCHING, /* waits for its artifact */
	ACTIVE_RUN_STARTING, /* the plan was sent */
	ACTIVE_RUN_RUNNING,
	ACTIVE_RUN_ENDED,    /* the end is known and not yet in the store */
};

struct active_run {
	struct run *run;         /* owned */
	char *spec;              /* owned; JSON of the job, until the plan is sent */
	char *artifact, *artifact_sum; /* owned; URL and SHA-256 of its artifact; NULL: none */
	int tree;                /* owned; the directory of its artifact, until the plan is sent; -1: none */
	enum active_run_stage stage;
	struct retry_policy retry; /* nothing asked for, until its spec was read */
	bool orphan;             /* its spawner is gone; lost, unless the next one knows how it ended */
	bool outlives_lease;              /* its job may overlap: it goes on when the lease is lost */
	bool stopped;            /* it ended because the spawner was told to stop */
	struct active_run *next_held;
	bool start_recorded;
	enum start_failure refused; /* why it was denied; START_ERROR: it was not */
	bool recording;          /* its end is on the way to the store */
	bool late;               /* ... which did not take it before */
	struct attempt end;      /* owned strings; of a running one: pid and start */
	usec_t typical;          /* how long it usually takes; 0: nobody wants to know */
	usec_t long_at;          /* when it takes unusually long; 0: not, or it was said */
};

struct job_spec;
bool active_run_outlives_lease(const struct job_spec *spec);
struct active_run *active_run_new(struct run *run /* moved */, enum active_run_stage stage);
void active_run_free(struct active_run *f);

/* All of them, by run. */
struct active_runs {
	struct map by_run;
	size_t active;           /* neither held nor ended: these take up room */
	size_t starting;         /* of these, sent to the spawner and not heard of yet */
	struct active_run *first_held, *last_held;
	size_t held;
	void (*on_remove)(struct active_run *f, void *arg); /* before it is freed; NULL: nothing */
	void *arg;
};
void active_runs_done(struct active_runs *all);
struct active_run *active_runs_get(const struct active_runs *all, int64_t run, int64_t fence); /* NULL: not ours */
void active_runs_add(struct active_runs *all, struct active_run *f /* moved */);
void active_runs_remove(struct active_runs *all, struct active_run *f); /* frees it */
void active_runs_set_stage(struct active_runs *all, struct active_run *f, enum active_run_stage stage); /* neither from nor to ACTIVE_RUN_HELD */
void active_runs_hold(struct active_runs *all, struct active_run *f);
struct active_run *active_runs_release(struct active_runs *all, struct active_run *f); /* NULL: the first one; to ACTIVE_RUN_STARTING */
void active_runs_end(struct active_runs *all, struct active_run *f);    /* to ACTIVE_RUN_ENDED */
/* Tells each running one that takes unusually long, once. When the next one will; USEC_NEVER: none. */
usec_t active_runs_overlong(struct active_runs *all, usec_t now, void (*on_overlong)(struct active_run *f, void *arg), void *arg);
