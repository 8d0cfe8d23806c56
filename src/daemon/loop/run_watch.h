/* SPDX-License-Identifier: Apache-2.0 */
/* Tells waiting clients on the loop thread that a run has moved. */
#pragma once
#include "base/auto.h"
#include "core/job/run.h"
#include <stdint.h>

struct hub;
struct hub_watch;

/* Called after the commit. 'run' moved to 'state'. */
typedef void hub_fn(int64_t job, int64_t run, enum run_state state, void *arg);

struct hub *hub_new(void);
void hub_free(struct hub *h); /* no watch may be left */
AUTO_DEFINE(hub);

/* Watches one run, every run of a job (run 0), or all there are (job 0 too). May be ended from inside its own call. */
struct hub_watch *hub_watch_new(struct hub *h, int64_t job, int64_t run, hub_fn *fn, void *arg);
void hub_watch_free(struct hub_watch *w);
AUTO_DEFINE(hub_watch);

void hub_tell(struct hub *h, int64_t job, int64_t run, enum run_state state);
void hub_stir(struct hub *h); /* anything may have moved elsewhere: whoever watches a job looks again */
