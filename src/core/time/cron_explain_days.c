/* SPDX-License-Identifier: Apache-2.0 */
/* Says on which days a cron expression matches. */
#include "core/time/cron_explain.h"
#include "core/time/word_list.h"

#define ALL_DAYS UINT64_C(0xfffffffe)
#define ALL_WEEKDAYS 0x7f
#define ALL_MONTHS 0x1ffe

static const char *const weekdays[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday",
	"Saturday", "Sunday" };
static const char *const months[] = { "", "January", "February", "March", "April", "May", "June", "July",
	"August", "September", "October", "November", "December" };
static const char *const nth[] = { "first", "second", "third", "fourth", "fifth" };

static void weekday_name(int d, struct buf *out)
{
	buf_str(out, weekdays[d]);
}

static void month_name(int m, struct buf *out)
{
	buf_str(out, months[m]);
}

/* The week begins on Monday: Sunday moves to its end. */
static uint64_t from_monday(uint64_t days)
{
	return (days & 0x7e) | (days & 1) << 7;
}

static void of_month(const struct cron *c, struct buf *out)
{
	AUTO_DONE(word_list) l = {};

	if (c->value[CRON_MONTH] == ALL_MONTHS) {
		buf_str(out, " of every month");
		return;
	}
	buf_str(out, " of ");
	word_list_bits(&l, c->value[CRON_MONTH], month_name);
	word_list_join(&l, "and", out);
}

static void in_month(const struct cron *c, struct buf *out)
{
	AUTO_DONE(word_list) l = {};

	if (c->value[CRON_MONTH] == ALL_MONTHS)
		return;
	buf_str(out, " in ");
	word_list_bits(&l, c->value[CRON_MONTH], month_name);
	word_list_join(&l, "and", out);
}

/* "the last day", "the working day nearest the day 3 days before the last" */
static void before_last(struct word_list *l, uint32_t bits, const char *none, const char *what)
{
	for (int n = 0; n < 31; n++) {
		if (!(bits >> n & 1))
			continue;
		if (n == 0)
			word_list_add(l, "%s", none);
		else
			word_list_add(l, "%sthe day %d day%s before the last", what, n, n > 1 ? "s" : "");
	}
}

/* Four and more at the same distance: "every 2nd day from the 1st to the 31st" */
static bool day_stride(uint32_t days, struct word_list *l)
{
	AUTO_DONE(buf) b = {};
	int first, last, step;

	if (__builtin_popcount(days) < 4)
		return false;
	first = __builtin_ctz(days);
	last = 31 - __builtin_clz(days);
	step = __builtin_ctz(days & (days - 1)) - first;
	for (int d = first; d <= last; d++)
		if ((days >> d & 1) != ((d - first) % step == 0))
			return false;
	if (step == 1)
		return false;
	buf_str(&b, "every ");
	word_list_ordinal(step, &b);
	buf_str(&b, " day from the ");
	word_list_ordinal(first, &b);
	buf_str(&b, " to the ");
	word_list_ordinal(last, &b);
	strv_take(&l->items, buf_steal(&b));
	return true;
}

static void plain_days(uint32_t days, struct word_list *l)
{
	AUTO_DONE(word_list) plain = {};

	if (day_stride(days, l))
		return;
	word_list_bits(&plain, days, word_list_ordinal);
	for (size_t i = 0; i < plain.items.n; i++)
		word_list_add(l, "the %s", plain.items.v[i]);
}

/* "the 1st, the 15th and the last day" */
static void day_list(const struct cron *c, struct word_list *l)
{
	AUTO_DONE(buf) b = {};

	plain_days((uint32_t)(c->value[CRON_DAY] & ALL_DAYS), l);
	for (int n = 1; n <= 31; n++) {
		if (!(c->near_day >> n & 1))
			continue;
		buf_clear(&b);
		word_list_ordinal(n, &b);
		word_list_add(l, "the working day nearest the %s", b.data);
	}
	before_last(l, c->last, "the last day", "");
	before_last(l, c->near_last, "the last working day", "the working day nearest ");
}

/* "Monday to Friday", and apart from them "the second Tuesday", "the last Friday" */
static void weekday_list(const struct cron *c, struct word_list *plain, struct word_list *counted)
{
	word_list_bits(plain, from_monday(c->value[CRON_WEEKDAY]), weekday_name);
	for (int n = 0; n < 5; n++)
		for (int d = 1; d <= 7; d++)
			if (c->nth[n] >> d % 7 & 1)
				word_list_add(counted, "the %s %s", nth[n], weekdays[d]);
	for (int d = 1; d <= 7; d++)
		if (c->last_weekday >> d % 7 & 1)
			word_list_add(counted, "the last %s", weekdays[d]);
}

static void explain_weekdays(const struct cron *c, bool months_follow, struct buf *out)
{
	AUTO_DONE(word_list) plain = {};
	AUTO_DONE(word_list) counted = {};

	weekday_list(c, &plain, &counted);
	if (plain.items.n) {
		buf_str(out, " on ");
		word_list_join(&plain, "and", out);
		if (months_follow)
			in_month(c, out);
	}
	if (counted.items.n) {
		buf_str(out, plain.items.n ? " and on " : " on ");
		word_list_join(&counted, "and", out);
		if (months_follow)
			of_month(c, out);
		else
			buf_str(out, " of the month");
	}
}

static void explain_month_days(const struct cron *c, struct buf *out)
{
	AUTO_DONE(word_list) l = {};

	day_list(c, &l);
	buf_str(out, " on ");
	word_list_join(&l, "and", out);
	of_month(c, out);
}

void cron_explain_days(const struct cron *c, bool frequent, struct buf *out)
{
	bool any_day = c->value[CRON_DAY] == ALL_DAYS, any_weekday = c->value[CRON_WEEKDAY] == ALL_WEEKDAYS;
	bool both = c->star[CRON_DAY] || c->star[CRON_WEEKDAY];

	/* with a star both fields must match, without one either does */
	if (both ? any_day && any_weekday : any_day || any_weekday) {
		if (!frequent)
			buf_str(out, " every day");
		in_month(c, out);
	} else if (both && any_day) {
		explain_weekdays(c, true, out);
	} else if (both && any_weekday) {
		explain_month_days(c, out);
	} else if (both) {
		explain_month_days(c, out);
		buf_str(out, ", but only");
		explain_weekdays(c, false, out);
	} else {
		explain_month_days(c, out);
		buf_str(out, ", and also");
		explain_weekdays(c, true, out);
	}
}
