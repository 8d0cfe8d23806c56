/* SPDX-License-Identifier: Apache-2.0 */
/* A worker from the request to a launcher until exec(). */
#pragma once
#include "core/job/run.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include <stdbool.h>
#include <sys/types.h>

struct child;
struct child_plan;
struct child_report;
struct launcher_start;
struct worker;
struct workers;

struct worker_launch {
	struct launcher_start *start; /* NULL: the launcher has finished */
	/* for error messages; owned */
	char *user;                  /* NULL: that of the spawner */
	char *command, *cwd, *artifact_path;
	uid_t uid;
	bool given_up;               /* reason and error of the worker are already set */
	enum attempt_outcome end_wanted; /* ATTEMPT_RUNNING: none; else it is ended when it exists */
};

void worker_launch(struct worker *w, struct child_plan *p);
void worker_launch_give_up(struct worker *w, enum start_failure reason, const char *why);
/*
 * The command may already run although its launcher has not answered. So the worker is ended when
 * the launcher answers, or when the start counts as blocked. False: it still waits for a launcher.
 */
bool worker_launch_end(struct worker *w, enum attempt_outcome why);
void worker_launch_ended(struct worker *w); /* its process has ended: records a failed setup */
void worker_launch_free(struct worker *w);
/* caller frees */
char *worker_launch_error(const struct child_report *report, const struct child_plan *p);
/* Takes over the processes of a report: 0 and the worker, or -errno, and all of them are killed. */
int worker_launch_adopt(struct workers *ws, const struct child_report *report, struct child *ret);
