/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture: a real spawner in its own directory, and a client that stores every report. */
#pragma once
#include "base/clock.h"
#include "core/start/start_plan.h"
#include "exec/proto/frame.h"
#include "exec/proto/spawn_client.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sd_event;

#define RIG_TIMEOUT (90 * USEC_SEC)

struct rig_report {
	struct spawn_report r; /* with the text of 'error' below */
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
	bool as_nobody;     /* the spawner runs as uid 65534 */
	const char *const *wrapper; /* a command that executes the spawner; NULL: none */
	const char *program;        /* NULL: the one in top_builddir */
	const char *const *options; /* further options of the spawner; NULL: none */
};

void rig_up(struct rig *g);            /* directory, spawner, connection */
void rig_up_with(struct rig *g, const char *const *options);
void rig_up_wrapped(struct rig *g, const char *const *wrapper, const char *const *options);
void rig_up_program(struct rig *g, const char *program);
bool rig_up_as_nobody(struct rig *g, const char *nproc); /* nproc: RLIMIT_NPROC, NULL: unchanged; false: needs root */
void rig_down(struct rig *g);          /* stops the spawner and removes the directory */
void rig_spawner_start(struct rig *g); /* waits until it listens */
void rig_spawner_kill(struct rig *g);  /* SIGKILL */
size_t rig_logged(struct rig *g, const char *words); /* how often the log contains 'words' */
void rig_wait_logged(struct rig *g, const char *words, size_t times);
void rig_reload(struct rig *g);        /* sends SIGHUP and waits until the new program has resumed */
void rig_connect(struct rig *g);       /* as a new daemon */
void rig_disconnect(struct rig *g);

/* A start plan for a shell script with a new run number. The caller may change it and frees it with its done function. */
struct start_plan rig_plan(struct rig *g, const char *script);
void rig_start(struct rig *g, const struct start_plan *p);

/* The next report of this kind for this run (0: any). The test fails if there is none within the timeout. */
const struct rig_report *rig_wait(struct rig *g, enum spawn_report_kind kind, int64_t run);
size_t rig_count(const struct rig *g, enum spawn_report_kind kind, int64_t run); /* so far */
void rig_spin(struct rig *g, usec_t time); /* runs the loop for this time */

/* Starts the run, waits for its end and acknowledges it. */
const struct rig_report *rig_run(struct rig *g, const struct start_plan *p);
const struct rig_report *rig_script(struct rig *g, const char *script);

char *rig_output(struct rig *g, const struct rig_report *end, size_t *ret_len); /* the kept output; the caller frees it */
void rig_expect(struct rig *g, const char *script, const char *output); /* the script must succeed and write exactly 'output' */
bool rig_wait_gone(pid_t pid); /* waits until the process is gone or a zombie; false: timeout */
int rig_raw(struct rig *g);    /* a connection without a hello */
pid_t rig_file_pid(struct rig *g, const char *name); /* waits for a pid that a job writes to dir/name */
size_t rig_file_size(struct rig *g, const char *name); /* of dir/name; 0: there is no such file */
void rig_touch(struct rig *g, const char *name);       /* creates an empty file dir/name */
void rig_expect_serving(struct rig *g);                /* reconnects; the spawner must still run jobs */
