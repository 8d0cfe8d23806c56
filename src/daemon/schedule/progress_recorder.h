/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the progress of active runs and writes it to the store once a second. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct active_run;
struct active_runs;
struct err;
struct progress_recorder;
struct sd_event;
struct spawn_report;
struct store_thread;

bool progress_recorder_new(struct sd_event *ev, struct store_thread *store, struct active_runs *all,
	struct progress_recorder **ret, struct err *e);
void progress_recorder_free(struct progress_recorder *p);
AUTO_DEFINE(progress_recorder);

void progress_recorder_note(struct progress_recorder *p, const struct spawn_report *r);
/* The run has ended: writes progress that is not written yet. */
void progress_recorder_flush(struct progress_recorder *p, struct active_run *a);
