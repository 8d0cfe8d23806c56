/* SPDX-License-Identifier: Apache-2.0 */
/* A real spawner in a directory of its own, with an engine's client that keeps every report. */
#pragma once
#include "base/clock.h"
#include "core/job/start_plan.h"
#include "exec/proto/frame.h"
#include "exec/proto/spawn_client.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sd_event;

#define RIG_PATIENCE (20 * USEC_SEC)

struct rig_report {
	struct spawn_report r; /* its error is 'error' below */
	char error[FRAME_TEXT_MAX];
};

struct rig {
	char dir[64], sock[96], output[96], copy[96];
	pid_t spawner;      /* 0: none */
	struct sd_event *ev;
	struct spawn_client *client;
	struct rig_report *reports;
	size_t n, seen;
	int64_t next_run;
	int output_dir;
	bool as_nobody;     /* the spawner's user is 65534 */
	const char *const *wrapper; /* words before the spawner's own; NULL: none */
	const char *program;        /* NULL: the one that was built */
	const char *const *options; /* further ones of the spawner; NULL: none */
};

void rig_up(struct rig *g);            /* directory, spawner, connection */
void rig_up_with(struct rig *g, const char *const *options);
void rig_up_wrapped(struct rig *g, const char *const *wrapper, const char *const *options);
void rig_up_program(struct rig *g, const char *program);
bool rig_up_as_nobody(struct rig *g, const char *nproc); /* nproc NULL: as it is; false: cannot be done */
void rig_down(struct rig *g);          /* and nothing is left: no process, no file */
void rig_spawner_start(struct rig *g); /* waits until it listens */
void rig_spawner_kill(struct rig *g);  /* SIGKILL */
size_t rig_logged(struct rig *g, const char *words); /* how often so far */
void rig_wait_logged(struct rig *g, const char *words, size_t times);
void rig_reload(struct rig *g);        /* SIGHUP, and waits until the new program has gone on */
void rig_connect(struct rig *g);       /* a new engine */
void rig_disconnect(struct rig *g);

/* A plan for a shell script, with a run number of its own; the caller changes it and calls start_plan_done. */
struct start_plan rig_plan(struct rig *g, const char *script);
void rig_start(struct rig *g, const struct start_plan *p);

/* The next report of that kind for that run (0: any); fails the test when none comes in time. */
const struct rig_report *rig_wait(struct rig *g, enum spawn_report_kind kind, int64_t run);
size_t rig_count(const struct rig *g, enum spawn_report_kind kind, int64_t run); /* so far */
void rig_spin(struct rig *g, usec_t time); /* takes reports for that long */

/* Start to end, acknowledged. */
const struct rig_report *rig_run(struct rig *g, const struct start_plan *p);
const struct rig_report *rig_script(struct rig *g, const char *script);

char *rig_output(struct rig *g, const struct rig_report *end, size_t *ret_len); /* all that is kept; caller frees */
void rig_expect(struct rig *g, const char *script, const char *output); /* succeeds and writes just that */
bool rig_wait_gone(pid_t pid); /* within the patience: no such process, or a zombie of somebody else */
int rig_raw(struct rig *g);    /* a bare connection */
pid_t rig_file_pid(struct rig *g, const char *name); /* a number that a job writes to dir/name; waits for it */
