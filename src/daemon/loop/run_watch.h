/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies waiting requests, on the loop, when a run changes state. */
#pragma once
#include "base/auto.h"
#include "core/job/run.h"
#include <stdint.h>

struct run_watch_set;
struct run_watch;

/* Called after the commit that changed 'run' to 'state'. */
typedef void run_watch_fn(int64_t job, int64_t run, enum run_state state, void *arg);

struct run_watch_set *run_watch_set_new(void);
void run_watch_set_free(struct run_watch_set *h); /* no watch may be left */
AUTO_DEFINE(run_watch_set);

/*
 * Watches one run, all runs of a job (run 0) or all runs (job 0, run 0). It may be freed inside its
 * own callback.
 */
struct run_watch *run_watch_new(struct run_watch_set *h, int64_t job, int64_t run, run_watch_fn *fn,
	void *arg);
void run_watch_free(struct run_watch *w);
AUTO_DEFINE(run_watch);

void run_watch_notify(struct run_watch_set *h, int64_t job, int64_t run, enum run_state state);
/* Other nodes may have changed any run: calls all watches of jobs, with run 0. */
void run_watch_recheck(struct run_watch_set *h);
