/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the wall clock can be believed, and whether it has gone on as it should. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

#define CLOCK_FLOOR INT64_C(1735689600000000) /* 2025-01-01T00:00:00Z: this program was not there before */

enum clock_trust {
	CLOCK_GOOD,
	CLOCK_UNSURE, /* just booted, and the kernel says that nobody has set it yet */
	CLOCK_WRONG,  /* before this program was made */
};
/* 'up' is the time since boot, 'began' what that was when we began; 'wait' later an unsynchronised clock is taken as it is. */
enum clock_trust clock_trust_judge(usec_t now, usec_t up, usec_t began, bool synchronised, usec_t wait);

enum clock_trust_jump {
	JUMP_NONE,
	JUMP_AHEAD, /* nobody was there when the alarm was due: the machine slept, was stopped, or its clock was set */
	JUMP_BACK,
};
/* 'seen' is when we looked last, 'alarm' when we had to look again (USEC_NEVER: no such moment). */
enum clock_trust_jump clock_trust_jump(usec_t seen, usec_t alarm, usec_t now);
