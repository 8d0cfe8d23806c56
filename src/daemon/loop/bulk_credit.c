/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the work that is thrown away when bulks give way to due runs. */
#include "daemon/loop/bulk_credit.h"

#define SHARE 10                      /* one part in so many of the time of one processor */
#define CREDIT_MAX (200 * USEC_MSEC)  /* two or three bulks of 10,000 jobs */

void bulk_credit_begin(struct bulk_credit *c, usec_t now, usec_t cpu)
{
	c->credit = c->at ? c->credit + (now - c->at) / SHARE : CREDIT_MAX;
	if (c->credit > CREDIT_MAX)
		c->credit = CREDIT_MAX;
	c->at = now;
	c->began = cpu;
}

bool bulk_credit_spend(struct bulk_credit *c, usec_t cpu)
{
	usec_t spent = cpu - c->began;

	if (spent > c->credit)
		return false;
	c->credit -= spent;
	return true;
}
