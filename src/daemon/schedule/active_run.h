/* SPDX-License-Identifier: Apache-2.0 */
/* The active runs of this node: from the claim until the end is recorded. */
#pragma once
#include "base/map.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "core/job/trace.h"
#include <stdbool.h>

struct job_spec;

/* Why the call of a run failed. */
struct call_failure {
	int64_t status;      /* of HTTP; 0: none */
	bool final;          /* no retry */
	bool gone;           /* the job is suspended */
	usec_t retry_after;  /* the server asks to wait this long; 0: it does not */
};

enum active_run_stage {
	ACTIVE_RUN_HELD,     /* claimed before there is room; starts when another run ends */
	/* Taken over after a restart or reconnect; the spawner has not reported on it yet. */
	ACTIVE_RUN_ADOPTED,
	ACTIVE_RUN_FETCHING, /* waits for its artifact, or its call waits for jobsched-net */
	/* From the claim, or the end of the wait, until the spawner reports the start. */
	ACTIVE_RUN_STARTING,
	ACTIVE_RUN_RUNNING,
	ACTIVE_RUN_ENDED,    /* the end is known but not recorded yet */
};

struct active_run {
	struct run *run;         /* owned */
	char *spec;              /* owned; JSON of the job, until the plan is sent */
	char *artifact, *artifact_sum; /* owned; URL and SHA-256 of its artifact; NULL: none */
	/* Owned; the directory of its artifact, until the plan is sent; -1: none. */
	int tree;
	bool call;               /* it runs in jobsched-net */
	bool asynchronous;       /* its target reports the end of the call */
	bool reports_results;    /* results are read from the response of a call */
	struct strv secrets;     /* of a call: paths of its secrets */
	usec_t call_timeout;
	struct call_failure failure;
	char *response;          /* owned, base64: the end of the response of a call; NULL: none */
	enum active_run_stage stage;
	struct strv params;        /* NAME=value of the run, for the jobs that run after it */
	struct strv results;       /* KEY=VALUE that the command has written, when it has ended */
	struct trace trace;        /* the id is empty until the spec was read */
	struct retry_policy retry; /* the default policy until the spec was read */
	usec_t deadline, expires;  /* for its gate: when it may not start any more; 0: no limit */
	/* Its spawner is gone; the run is lost unless the next spawner reports its end. */
	bool orphan;
	bool checkpoint;         /* its attempts share a directory, which is removed with its end */
	int64_t state_size;      /* bytes of that directory that move to other nodes; 0: none */
	bool state_ready;        /* the directory has been filled from the store */
	bool outlives_lease;     /* its job may overlap, so it continues when the lease is lost */
	bool stopped;            /* it ended because the spawner was told to stop */
	struct active_run *next_held;
	bool start_recorded;
	usec_t record_at;        /* boottime: its start is recorded then if it still runs */
	enum start_failure refused; /* why the spawner denied it; START_ERROR: not denied */
	bool recording;          /* the end has been submitted to the store */
	bool late;               /* the store has refused the end before */
	struct attempt end;      /* strings are owned; pid and started_at are set when it starts */
	struct progress progress; /* as its command reported it */
	bool progress_waiting;   /* it is not written to the store yet */
	int progress_events;     /* steps of progress that have had an event */
	usec_t typical;          /* usual duration; 0: no notice about long runs is wanted */
	/* When it becomes unusually long; 0: never, or the notice was added. */
	usec_t long_at;
};

bool active_run_outlives_lease(const struct job_spec *spec); /* the job may overlap */
struct active_run *active_run_new(struct run *run /* moved */, enum active_run_stage stage);
void active_run_free(struct active_run *a);

/* All active runs of this node. */
struct active_runs {
	struct map by_run;
	size_t active;           /* neither held nor ended; limited by max-running */
	size_t starting;         /* of these, the ones in stage ACTIVE_RUN_STARTING */
	struct active_run *first_held, *last_held;
	size_t held;
	void (*on_remove)(struct active_run *a, void *arg); /* before it is freed; NULL: nothing */
	void *arg;
};
void active_runs_done(struct active_runs *all);
/* Returns NULL if the run is not in the table. */
struct active_run *active_runs_get(const struct active_runs *all, int64_t run, int64_t fence);
void active_runs_add(struct active_runs *all, struct active_run *a /* moved */);
void active_runs_remove(struct active_runs *all, struct active_run *a); /* frees it */
/* Not for changes from or to ACTIVE_RUN_HELD. */
void active_runs_set_stage(struct active_runs *all, struct active_run *a,
	enum active_run_stage stage);
void active_runs_hold(struct active_runs *all, struct active_run *a);
/* Moves a held run (NULL: the first one) to ACTIVE_RUN_STARTING. */
struct active_run *active_runs_release(struct active_runs *all, struct active_run *a);
void active_runs_end(struct active_runs *all, struct active_run *a);    /* to ACTIVE_RUN_ENDED */
/*
 * Calls on_overlong() once for each run that has become unusually long. Returns when the next one
 * will; USEC_NEVER: none.
 */
usec_t active_runs_overlong(struct active_runs *all, usec_t now,
	void (*on_overlong)(struct active_run *a, void *arg), void *arg);
