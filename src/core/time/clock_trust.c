/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the clock by what the kernel says of it and by its own past. */
#include "core/time/clock_trust.h"

#define LATE (5 * USEC_SEC) /* an alarm that comes later than this was slept through */
#define BOOTING (3 * USEC_MIN) /* who starts later than this after a boot need not wait for what boots with him */
#define BACK USEC_MIN       /* less is what time servers correct */

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
