/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a notice for each run that takes unusually long. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct active_run;
struct active_runs;
struct clock;
struct err;
struct long_runs;
struct sd_event;
struct store_thread;

bool long_runs_new(struct sd_event *ev, const struct clock *clock, struct store_thread *store,
	struct active_runs *all /* all borrowed */, struct long_runs **ret, struct err *e);
void long_runs_free(struct long_runs *l); /* after the store threads have ended; NULL is fine */
AUTO_DEFINE(long_runs);
void long_runs_watch(struct long_runs *l, struct active_run *a); /* it has started */
