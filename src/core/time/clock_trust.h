/* SPDX-License-Identifier: Apache-2.0 */
/* Judges whether the wall clock is set and runs continuously. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

#define CLOCK_FLOOR INT64_C(1735689600000000) /* 2025-01-01T00:00:00Z: jobsched did not exist before */

enum clock_trust {
	CLOCK_GOOD,
	CLOCK_UNSURE, /* recently booted, and not synchronised according to the kernel */
	CLOCK_WRONG,  /* before CLOCK_FLOOR */
};
/*
 * 'up' is the time since boot, 'began' its value when the daemon started. After 'wait' an
 * unsynchronised clock is accepted.
 */
enum clock_trust clock_trust_judge(usec_t now, usec_t up, usec_t began, bool synchronised, usec_t wait);

enum clock_trust_jump {
	JUMP_NONE,
	JUMP_AHEAD, /* the timer was late: the machine was suspended, the process stopped, or the clock set */
	JUMP_BACK,
};
/*
 * 'seen' is the time of the last check, 'alarm' the time when the timer was due (USEC_NEVER: none).
 */
enum clock_trust_jump clock_trust_jump(usec_t seen, usec_t alarm, usec_t now);
