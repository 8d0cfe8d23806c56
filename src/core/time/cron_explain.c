/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a cron expression in English: times, then days. */
#include "base/buf.h"
#include "core/time/cron.h"
#include "core/time/cron_field.h"
#include "core/time/word_list.h"

#define TIMES_SHOWN 6 /* maximum number of times that are listed one by one */
#define ALL_DAYS UINT64_C(0xfffffffe)
#define ALL_WEEKDAYS 0x7f
#define ALL_MONTHS 0x1ffe

static const char *const weekdays[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday",
	"Saturday", "Sunday" };
static const char *const months[] = { "", "January", "February", "March", "April", "May", "June", "July",
	"August", "September", "October", "November", "December" };
static const char *const nth[] = { "first", "second", "third", "fourth", "fifth" };

static bool matches_year(const struct cron *c, int year)
{
	int i = year - CRON_YEAR_BASE;

	return c->years[i / 64] >> (i % 64) & 1;
}

/* ---- days ---- */

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

/* " every day", " on the last Friday of every month"; nothing for every day when 'frequent'. */
static void cron_explain_days(const struct cron *c, bool frequent, struct buf *out)
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

/* ---- times ---- */

static uint64_t all_values(enum cron_field f)
{
	uint64_t bits = 0;

	for (int v = cron_ranges[f].min; v <= (f == CRON_WEEKDAY ? 6 : cron_ranges[f].max); v++)
		bits |= UINT64_C(1) << v;
	return bits;
}

/* n if the values are 0, n, 2n … to the end of the cycle, evenly; else 0 */
static int even_step(enum cron_field f, uint64_t bits)
{
	uint64_t want = 0;
	int n;

	if (!(bits & 1) || bits == 1)
		return 0;
	n = __builtin_ctzll(bits & ~UINT64_C(1));
	if ((cron_ranges[f].max + 1) % n)
		return 0;
	for (int v = 0; v <= cron_ranges[f].max; v += n)
		want |= UINT64_C(1) << v;
	return bits == want ? n : 0;
}

static void explain_clock_times(const struct cron *c, struct buf *out)
{
	AUTO_DONE(word_list) l = {};
	bool seconds = c->value[CRON_SECOND] != 1;

	for (int t = 0; t < 86400; t++) {
		if (!(c->value[CRON_HOUR] >> (t / 3600) & 1)) {
			t += 3599;
			continue;
		}
		if (!(c->value[CRON_MINUTE] >> (t / 60 % 60) & 1)) {
			t += 59;
			continue;
		}
		if (!(c->value[CRON_SECOND] >> (t % 60) & 1))
			continue;
		if (seconds)
			word_list_add(&l, "%02d:%02d:%02d", t / 3600, t / 60 % 60, t % 60);
		else
			word_list_add(&l, "%02d:%02d", t / 3600, t / 60 % 60);
	}
	buf_str(out, "at ");
	word_list_join(&l, "and", out);
}

/*
 * "every minute", "every 15 minutes" (after an 'of': "every 15th minute"), "minute 5", "minutes 5
 * and 20"
 */
static void explain_part(const struct cron *c, enum cron_field f, bool after_of, struct buf *out)
{
	uint64_t bits = c->value[f];
	int step = even_step(f, bits);
	AUTO_DONE(word_list) l = {};

	if (bits == all_values(f)) {
		buf_printf(out, "every %s", cron_field_names[f]);
	} else if (step && after_of) {
		buf_str(out, "every ");
		word_list_ordinal(step, out);
		buf_printf(out, " %s", cron_field_names[f]);
	} else if (step) {
		buf_printf(out, "every %d %ss", step, cron_field_names[f]);
	} else {
		buf_printf(out, "%s%s ", cron_field_names[f], bits & (bits - 1) ? "s" : "");
		word_list_bits(&l, bits, word_list_number);
		word_list_join(&l, "and", out);
	}
}

static bool starts_every(const struct cron *c, enum cron_field f)
{
	return c->value[f] == all_values(f) || even_step(f, c->value[f]);
}

static void explain_hours(const struct cron *c, bool every, struct buf *out)
{
	uint64_t bits = c->value[CRON_HOUR], run = bits >> __builtin_ctzll(bits);
	int first = __builtin_ctzll(bits), last = 63 - __builtin_clzll(bits);

	if (bits == all_values(CRON_HOUR)) {
		buf_str(out, every ? "" : " of every hour");
	} else if (!(run & (run + 1))) {
		buf_printf(out, every ? " from %02d:00 to %02d:59" : " of every hour from %02d:00 to %02d:59",
			first, last);
	} else {
		buf_str(out, " of ");
		explain_part(c, CRON_HOUR, true, out);
	}
}

static void explain_minutes(const struct cron *c, struct buf *out)
{
	bool every = starts_every(c, CRON_MINUTE);
	int hours = even_step(CRON_HOUR, c->value[CRON_HOUR]);

	/* 0 0-22/2: the hours say it all */
	if (c->value[CRON_MINUTE] == 1 && hours > 1 && c->value[CRON_SECOND] == 1) {
		buf_printf(out, "every %d hours on the hour", hours);
		return;
	}
	if (c->value[CRON_MINUTE] == 1 && c->value[CRON_HOUR] == all_values(CRON_HOUR) &&
	    c->value[CRON_SECOND] == 1) {
		buf_str(out, "every hour on the hour");
		return;
	}
	if (!every && c->value[CRON_SECOND] == 1)
		buf_str(out, "at ");
	explain_part(c, CRON_MINUTE, c->value[CRON_SECOND] != 1, out);
	explain_hours(c, every, out);
}

static void explain_time(const struct cron *c, struct buf *out)
{
	int times = __builtin_popcountll(c->value[CRON_SECOND]) *
		    __builtin_popcountll(c->value[CRON_MINUTE]) *
		    __builtin_popcountll(c->value[CRON_HOUR]);

	if (times <= TIMES_SHOWN) {
		explain_clock_times(c, out);
		return;
	}
	if (c->value[CRON_SECOND] != 1) {
		bool every = starts_every(c, CRON_SECOND);

		if (!every)
			buf_str(out, "at ");
		explain_part(c, CRON_SECOND, false, out);
		if (every && c->value[CRON_MINUTE] == all_values(CRON_MINUTE) &&
		    c->value[CRON_HOUR] == all_values(CRON_HOUR))
			return;
		buf_str(out, " of ");
	}
	explain_minutes(c, out);
}

static void explain_years(const struct cron *c, struct buf *out)
{
	AUTO_DONE(word_list) l = {};

	for (int y = CRON_YEAR_FIRST, end; y <= CRON_YEAR_LAST; y = end + 1) {
		end = y;
		if (!matches_year(c, y))
			continue;
		while (end < CRON_YEAR_LAST && matches_year(c, end + 1))
			end++;
		if (end - y >= 2)
			word_list_add(&l, "%d to %d", y, end);
		else
			word_list_add(&l, "%d", end = y);
	}
	buf_str(out, ", in ");
	word_list_join(&l, "and", out);
}

void cron_explain(const struct cron *c, struct buf *out)
{
	bool frequent = c->value[CRON_HOUR] == all_values(CRON_HOUR) || even_step(CRON_HOUR, c->value[CRON_HOUR]);

	explain_time(c, out);
	cron_explain_days(c, frequent, out);
	if (!c->any_year)
		explain_years(c, out);
}
