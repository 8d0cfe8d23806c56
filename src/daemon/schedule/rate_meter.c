/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the counts of two successive windows, so that the result changes smoothly. */
#include "daemon/schedule/rate_meter.h"

void rate_meter_count(struct rate_meter *p, usec_t boottime)
{
	usec_t age = boottime - p->since;

	if (age >= RATE_METER_WINDOW) {
		p->before = age < 2 * RATE_METER_WINDOW ? p->now : 0;
		p->now = 0;
		p->since = boottime;
	}
	p->now++;
}

size_t rate_meter_recent(const struct rate_meter *p, usec_t boottime)
{
	return boottime - p->since < 2 * RATE_METER_WINDOW ? p->now + p->before : 0;
}
