/* SPDX-License-Identifier: Apache-2.0 */
/* Detects unset clocks and clock jumps. */
#include "core/time/clock_trust.h"

#define LATE (5 * USEC_SEC) /* a timer that fires later than this was delayed by a jump or a suspend */
#define BOOTING (3 * USEC_MIN) /* a daemon that starts later than this after the boot does not wait for time synchronisation */
#define BACK USEC_MIN       /* smaller steps are corrections by time synchronisation */

enum clock_trust clock_trust_judge(usec_t now, usec_t up, usec_t began, bool synchronised, usec_t wait)
{
	if (now < CLOCK_FLOOR)
		return CLOCK_WRONG;
	if (synchronised || began >= BOOTING)
		return CLOCK_GOOD;
	return up - began < wait ? CLOCK_UNSURE : CLOCK_GOOD;
}

enum clock_trust_jump clock_trust_jump(usec_t seen, usec_t alarm, usec_t now)
{
	if (seen - now > BACK)
		return JUMP_BACK;
	return alarm != USEC_NEVER && now - alarm > LATE ? JUMP_AHEAD : JUMP_NONE;
}
