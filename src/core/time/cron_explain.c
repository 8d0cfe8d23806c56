/* SPDX-License-Identifier: Apache-2.0 */
/* Says a cron expression in plain English: the time of day, then the days. */
#include "core/time/cron_explain.h"

#include "core/time/cron_field.h"
#include "core/time/word_list.h"

#define TIMES_SHOWN 6 /* up to so many are listed as clock times */

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

/* "every minute", "every 15 minutes" (after an 'of': "every 15th minute"), "minute 5", "minutes 5 and 20" */
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
		if (!cron_has_year(c, y))
			continue;
		while (end < CRON_YEAR_LAST && cron_has_year(c, end + 1))
			end++;
		if (end - y >= 2)
			word_list_add(&l, "%d to %d", y, end);
		else
			word_list_add(&l, "%d", end = y);
	}
	buf_str(out, ", in ");
	word_list_join(&l, "and", out);
}

bool cron_has_year(const struct cron *c, int year)
{
	int i = year - CRON_YEAR_BASE;

	return c->years[i / 64] >> (i % 64) & 1;
}

void cron_explain(const struct cron *c, struct buf *out)
{
	bool frequent = c->value[CRON_HOUR] == all_values(CRON_HOUR) || even_step(CRON_HOUR, c->value[CRON_HOUR]);

	explain_time(c, out);
	cron_explain_days(c, frequent, out);
	if (!c->any_year)
		explain_years(c, out);
}
