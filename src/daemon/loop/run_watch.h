/* SPDX-License-Identifier: Apache-2.0 */
/* Tells waiting clients on the loop thread that a run has moved. */
#pragma once
#include "base/auto.h"
#include "core/job/run.h"
#include <stdint.h>

struct run_watch_set;
struct run_watch;

/* Called after the commit. 'run' moved to 'state'. */
typedef void run_watch_fn(int64_t job, int64_t run, enum run_state state, void *arg);

struct run_watch_set *run_watch_set_new(void);
void run_watch_set_free(struct run_watch_set *h); /* no watch may be left */
AUTO_DEFINE(run_watch_set);

/* Watches one run, every run of a job (run 0), or all there are (job 0 too). May be ended from inside its own call. */
struct run_watch *run_watch_new(struct run_watch_set *h, int64_t job, int64_t run, run_watch_fn *fn, void *arg);
void run_watch_free(struct run_watch *w);
AUTO_DEFINE(run_watch);

void run_watch_notify(struct run_watch_set *h, int64_t job, int64_t run, enum run_state state);
void run_watch_recheck(struct run_watch_set *h); /* anything may have moved elsewhere: whoever watches a job looks again */
