/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a cron expression in canonical form; H is replaced by its values. */
#include "base/buf.h"
#include "core/time/clocktime.h"
#include "core/time/cron_field.h"

#define VALUES_MAX 256

/* The members of a list, in ascending order. */
struct values {
	int v[VALUES_MAX];
	size_t n;
};

static void print_value(enum cron_field field, int v, struct buf *out)
{
	const struct cron_range *r = &cron_ranges[field];
	const char *name;

	if (!r->names) {
		buf_printf(out, "%d", v);
		return;
	}
	name = r->names[field == CRON_WEEKDAY ? v % 7 : v - r->first_name];
	for (int i = 0; i < 3; i++)
		buf_char(out, (char)(name[i] - 'a' + 'A'));
}

/* The number of values from i on that have the same distance. */
static size_t progression_length(const struct values *l, size_t i)
{
	size_t k = i + 1;

	while (k + 1 < l->n && l->v[k + 1] - l->v[k] == l->v[i + 1] - l->v[i])
		k++;
	return k < l->n ? k - i + 1 : 1;
}

static void print_list(enum cron_field field, const struct values *l, const char *comma, struct buf *out)
{
	for (size_t i = 0; i < l->n;) {
		size_t len = progression_length(l, i);
		int step = len > 1 ? l->v[i + 1] - l->v[i] : 0;

		buf_str(out, comma);
		comma = ",";
		print_value(field, l->v[i], out);
		if (len < 3) {
			i++;
			continue;
		}
		buf_char(out, '-');
		print_value(field, l->v[i + len - 1], out);
		if (step > 1)
			buf_printf(out, "/%d", step);
		i += len;
	}
}

/* The values of '*' with a step. */
static uint64_t star_values(enum cron_field field, int step)
{
	int max = field == CRON_WEEKDAY ? 6 : cron_ranges[field].max;
	uint64_t bits = 0;

	for (int v = cron_ranges[field].min; v <= max; v += step)
		bits |= UINT64_C(1) << v;
	return bits;
}

/*
 * A field with a star is printed with one: the smallest step whose values are all in the field.
 * Returns the values that remain.
 */
static uint64_t print_star(enum cron_field field, uint64_t bits, struct buf *out)
{
	int step = 1;

	while (star_values(field, step) & ~bits)
		step++;
	buf_char(out, '*');
	if (step > 1)
		buf_printf(out, "/%d", step);
	return bits & ~star_values(field, step);
}

static const char *print_marks(const char *comma, uint32_t bits, const char *before, const char *after,
	struct buf *out)
{
	for (int n = 0; n < 32; n++)
		if (bits >> n & 1) {
			buf_printf(out, "%s%s%d%s", comma, before, n, after);
			comma = ",";
		}
	return comma;
}

static const char *print_weekdays(const char *comma, uint32_t bits, const char *after, int number,
	struct buf *out)
{
	for (int d = 1; d <= 7; d++)
		if (bits >> d % 7 & 1) {
			buf_str(out, comma);
			print_value(CRON_WEEKDAY, d, out);
			buf_str(out, after);
			if (number)
				buf_printf(out, "%d", number);
			comma = ",";
		}
	return comma;
}

static void print_field(const struct cron *c, enum cron_field field, struct buf *out)
{
	uint64_t bits = c->value[field];
	struct values l = {};
	const char *comma = "";

	if (c->star[field]) {
		bits = print_star(field, bits, out);
		comma = ",";
	}
	/* the week begins on Monday here, so that SAT-SUN is a range */
	for (int v = cron_ranges[field].min + (field == CRON_WEEKDAY); v <= cron_ranges[field].max; v++)
		if (bits >> (field == CRON_WEEKDAY ? v % 7 : v) & 1)
			l.v[l.n++] = v;
	print_list(field, &l, comma, out);
	if (l.n)
		comma = ",";
	if (field == CRON_DAY) {
		comma = print_marks(comma, c->near_day, "", "W", out);
		if (c->last & 1) {
			buf_printf(out, "%sL", comma);
			comma = ",";
		}
		comma = print_marks(comma, c->last & ~1u, "L-", "", out);
		if (c->near_last & 1) {
			buf_printf(out, "%sLW", comma);
			comma = ",";
		}
		print_marks(comma, c->near_last & ~1u, "L-", "W", out);
	}
	if (field == CRON_WEEKDAY) {
		for (int n = 0; n < 5; n++)
			comma = print_weekdays(comma, c->nth[n], "#", n + 1, out);
		print_weekdays(comma, c->last_weekday, "L", 0, out);
	}
}

void cron_print(const struct cron *c, struct buf *out)
{
	bool seconds = !c->any_year || c->star[CRON_SECOND] || c->value[CRON_SECOND] != 1;
	const char *gap = "";

	for (int f = seconds ? CRON_SECOND : CRON_MINUTE; f < CRON_YEAR; f++) {
		buf_str(out, gap);
		gap = " ";
		print_field(c, (enum cron_field)f, out);
	}
	if (!c->any_year) {
		struct values l = {};

		for (int y = CRON_YEAR_FIRST; y <= CRON_YEAR_LAST; y++)
			if (c->years[(y - CRON_YEAR_BASE) / 64] >> ((y - CRON_YEAR_BASE) % 64) & 1)
				l.v[l.n++] = y;
		buf_char(out, ' ');
		print_list(CRON_YEAR, &l, "", out);
	}
}
