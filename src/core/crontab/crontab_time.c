/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the times of a crontab entry to a schedule with the same slots. */
#include "base/buf.h"
#include "core/crontab/crontab.h"
#include "core/time/cron.h"

#define ALL_DOM UINT32_C(0xfffffffe)
#define ALL_DOW 0x7f
#define ALL_MONTH 0x1ffe

bool crontab_time_cron(const struct crontab_time *t, struct cron *ret)
{
	bool both = t->dom_star || t->dow_star;
	struct cron c = {
		.value = { [CRON_SECOND] = 1, [CRON_MINUTE] = t->minute, [CRON_HOUR] = t->hour, [CRON_DAY] = t->dom,
			[CRON_MONTH] = t->month, [CRON_WEEKDAY] = t->dow },
		.star = { [CRON_MINUTE] = t->minute_star, [CRON_HOUR] = t->hour_star, [CRON_DAY] = t->dom_star,
			[CRON_MONTH] = t->month == ALL_MONTH, [CRON_WEEKDAY] = t->dow_star },
		.any_year = true,
		.fields = 5,
	};
	int64_t first;

	if (!t->minute || !t->hour || !t->month || (both && (!t->dom || !t->dow)) || (!t->dom && !t->dow))
		return false;
	/* An empty day field beside a set one restricts nothing. The text of a schedule has no empty field. */
	if (!t->dom || !t->dow) {
		c.value[t->dom ? CRON_WEEKDAY : CRON_DAY] = t->dom ? ALL_DOW : ALL_DOM;
		c.star[t->dom ? CRON_WEEKDAY : CRON_DAY] = true;
	}
	cron_settle(&c);
	*ret = c;
	return cron_wall_next(&c, 0, &first);
}

void crontab_schedule(const struct crontab_entry *e, struct buf *out)
{
	struct cron c;

	if (e->reboot || e->nickname)
		buf_str(out, e->schedule);
	else if (crontab_time_cron(&e->time, &c))
		cron_print(&c, out);
	else
		buf_str(out, "manual");
}
