/* SPDX-License-Identifier: Apache-2.0 */
/* Times, durations, sizes, results as readable text. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;

#define WORDS_MAX 48
/* Local time in whole seconds: 2026-11-16T10:00:00+01:00. */
char *words_instant(usec_t t, char out[WORDS_MAX]);
/* Copies a sentence; times in UTC become local times. */
void words_localize(const char *text, struct buf *out);
char *words_relative(usec_t t, usec_t now, char out[WORDS_MAX]); /* in 5m, 3h ago, now */
char *words_duration(usec_t d, char out[WORDS_MAX]);             /* 12ms, 1.5s, 3m5s, 2d3h */
char *words_size(int64_t bytes, char out[WORDS_MAX]);            /* 12 B, 3.4 MiB */

bool words_waits_for_retry(const json_t *run); /* an attempt failed and another one will follow */
/*
 * How a run ended: "exit code 3", "killed by SIGKILL", "overlap", an error. A success gives
 * nothing.
 */
/* The progress of a running run, as "40% copying"; nothing if it has reported none. */
void words_progress(const json_t *run, struct buf *out);
void words_result(const json_t *run, struct buf *out);

/*
 * Whether a job is paused or frozen. It does not run at its next slot then, so no next slot is
 * shown.
 */
bool words_is_held(const json_t *job);
/* The command of a job object on one line: words quoted as for a shell, or the script. */
void words_command(const json_t *job, struct buf *out);
/* "every 15m; on boot": the schedules as they were typed. */
void words_schedule(const json_t *job, struct buf *out);
