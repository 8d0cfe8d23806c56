/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a job: a command that runs before each attempt, as a part of it. */
/*
 * The exec spec wraps the command of the job (exec_spec_build.c): a shell runs the gate and, if that
 * exits with 0, becomes the command. Otherwise the shell writes the exit code of the gate to the
 * descriptor that the spawner reads at the end, and the attempt ends as ATTEMPT_GATED with this code.
 */
#pragma once
#include "base/clock.h"

#define GATE_DELAY 75 /* exit code: look again later; EX_TEMPFAIL of sysexits.h */
#define GATE_SKIP 77  /* exit code: the run is not wanted */
#define GATE_TIMED_OUT 124 /* exit code of timeout(1) */

#define GATE_LOOK_MIN (5 * USEC_SEC)     /* the delay doubles with every look ... */
#define GATE_LOOK_MAX (10 * USEC_MIN) /* ... up to this */
