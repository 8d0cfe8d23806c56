/* SPDX-License-Identifier: Apache-2.0 */
/* Two windows of time, so that the count neither jumps nor lags. */
#include "daemon/schedule/rate_meter.h"

void pace_count(struct pace *p, usec_t boottime)
{
	usec_t age = boottime - p->since;

	if (age >= PACE_WINDOW) {
		p->before = age < 2 * PACE_WINDOW ? p->now : 0;
		p->now = 0;
		p->since = boottime;
	}
	p->now++;
}

size_t pace_recent(const struct pace *p, usec_t boottime)
{
	return boottime - p->since < 2 * PACE_WINDOW ? p->now + p->before : 0;
}
