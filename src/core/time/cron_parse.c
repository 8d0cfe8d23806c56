/* SPDX-License-Identifier: Apache-2.0 */
/* Parses cron expressions with five, six or seven fields. */
#include "core/time/clocktime.h"
#include "core/time/cron_field.h"
#include "core/time/scan.h"

#include <stdio.h>
#include <string.h>

const char *const cron_field_names[CRON_FIELD_MAX] = { "second", "minute", "hour", "day-of-month", "month",
	"day-of-week", "year" };

const struct cron_range cron_ranges[CRON_FIELD_MAX] = {
	[CRON_SECOND] = { .min = 0, .max = 59, .cycle = 60, .hash_min = 0, .hash_max = 59 },
	[CRON_MINUTE] = { .min = 0, .max = 59, .cycle = 60, .hash_min = 0, .hash_max = 59 },
	[CRON_HOUR] = { .min = 0, .max = 23, .cycle = 24, .hash_min = 0, .hash_max = 23 },
	[CRON_DAY] = { .min = 1, .max = 31, .cycle = 31, .hash_min = 1, .hash_max = 28, .marks = true },
	[CRON_MONTH] = { .min = 1, .max = 12, .cycle = 12, .names = month_words, .first_name = 1,
		.name_count = 12, .hash_min = 1, .hash_max = 12 },
	[CRON_WEEKDAY] = { .min = 0, .max = 7, .cycle = 7, .names = weekday_words, .name_count = 7,
		.hash_min = 0, .hash_max = 6, .marks = true },
	[CRON_YEAR] = { .min = CRON_YEAR_FIRST, .max = CRON_YEAR_LAST },
};

/* One field while it is read. */
struct field {
	struct scan s;   /* of this field only */
	size_t from;
	enum cron_field id;
	const struct cron_range *range;
	struct cron *out;
	const char *seed;
};

static bool field_refuse(const struct field *f, size_t at, const char *msg)
{
	return scan_fail_part(&f->s, cron_field_names[f->id], f->from, f->s.end, at, msg);
}

uint64_t cron_hash(const char *id, enum cron_field field)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325), x;

	for (; *id; id++)
		h = (h ^ (uint8_t)*id) * UINT64_C(0x100000001b3);
	x = h + UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)field + 1);
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

static void add_value(struct field *f, int v)
{
	if (f->id == CRON_YEAR)
		f->out->years[(v - CRON_YEAR_BASE) / 64] |= UINT64_C(1) << ((v - CRON_YEAR_BASE) % 64);
	else
		f->out->value[f->id] |= UINT64_C(1) << (f->id == CRON_WEEKDAY ? v % 7 : v);
}

/* From a to b in steps; if b is below a, the range continues past the end of the cycle. */
static void add_range(struct field *f, int64_t a, int64_t b, int64_t step)
{
	int64_t cycle = f->range->cycle;

	for (int64_t v = a; v <= (b < a ? b + cycle : b); v += step)
		add_value(f, (int)(v > f->range->max ? v - cycle : v));
}

static bool out_of_range(const struct field *f, size_t at)
{
	char msg[64];

	snprintf(msg, sizeof msg, "%s goes from %d to %d", cron_field_names[f->id], f->range->min,
		f->range->max);
	return field_refuse(f, at, msg);
}

static bool scan_name(struct field *f, int *ret)
{
	size_t at = f->s.pos, len;
	char word[SCAN_WORD_MAX];
	int n;

	len = scan_word(&f->s, word);
	/* FRIL: the letter belongs to the item */
	if (f->id == CRON_WEEKDAY && len == 4 && word[3] == 'l') {
		word[3] = '\0';
		f->s.pos--;
	}
	n = f->range->names ? scan_lookup(word, f->range->names, (size_t)f->range->name_count) : -1;
	if (n < 0)
		return field_refuse(f, at, f->range->names ? "not a three-letter name of this field" :
			"names are for months and weekdays, in their own fields");
	*ret = n + f->range->first_name;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool scan_value(struct field *f, int *ret)
{
	size_t at = f->s.pos;
	int64_t n;

	if (is_letter(scan_peek(&f->s)))
		return scan_name(f, ret);
	if (!scan_number(&f->s, &n, NULL))
		return field_refuse(f, at, scan_done(&f->s) || scan_peek(&f->s) == ',' ?
			"a value is missing here" :
			scan_peek(&f->s) == '-' ? "negative numbers are not values of a field" :
			scan_peek(&f->s) == '?' ? "'?' stands alone, in day-of-month or day-of-week" :
			"a number or a name belongs here");
	if (n < f->range->min || n > f->range->max)
		return out_of_range(f, at);
	*ret = (int)n;
	return true;
}

/* The n of '/', n */
static bool scan_step(struct field *f, int64_t *ret)
{
	size_t at = f->s.pos;

	if (!scan_number(&f->s, ret, NULL))
		return field_refuse(f, at, "a step is a whole number");
	if (*ret < 1)
		return field_refuse(f, at, "a step of 0 leads nowhere");
	return true;
}

static bool scan_star(struct field *f)
{
	bool first = f->s.pos == f->from + 1;
	int max = f->id == CRON_WEEKDAY ? 6 : f->range->max;
	int64_t step = 1;

	if (scan_take(&f->s, '/')) {
		if (!scan_step(f, &step))
			return false;
		if (f->id != CRON_YEAR && first)
			f->out->star_step[f->id] = (uint32_t)step;
		if (f->id != CRON_YEAR && step > max - f->range->min)
			f->out->wide_step[f->id] = true;
	}
	if (f->id == CRON_YEAR && step == 1)
		f->out->any_year = true;
	add_range(f, f->range->min, max, step);
	return true;
}

/* H, H(a-b), H/n, H(a-b)/n */
static bool scan_hash(struct field *f)
{
	uint64_t z = cron_hash(f->seed, f->id);
	int a = f->range->hash_min, b = f->range->hash_max, size;
	int64_t step;
	size_t at = f->s.pos;

	f->out->hashed[f->id] = true;
	if (scan_take(&f->s, '(')) {
		if (!scan_value(f, &a))
			return false;
		if (!scan_take(&f->s, '-'))
			return field_refuse(f, f->s.pos, "a range belongs here, as in H(0-29)");
		if (!scan_value(f, &b))
			return false;
		if (!scan_take(&f->s, ')'))
			return field_refuse(f, f->s.pos, "')' belongs here");
		if (b < a)
			return field_refuse(f, at + 1, "the range of H does not run backwards");
	}
	size = b - a + 1;
	if (!scan_take(&f->s, '/')) {
		add_value(f, a + (int)(z % (uint64_t)size));
		return true;
	}
	at = f->s.pos;
	if (!scan_step(f, &step))
		return false;
	if (step > size)
		return field_refuse(f, at, "the step of H is not larger than its range");
	add_range(f, a + (int64_t)(z % (uint64_t)step), b, step);
	return true;
}

/* L, L-n, LW, L-nW */
static bool scan_last_day(struct field *f)
{
	size_t at = f->s.pos;
	int64_t n = 0;

	if (scan_take(&f->s, '-') && (!scan_number(&f->s, &n, NULL) || n > 30))
		return field_refuse(f, at + 1, "a number from 0 to 30 belongs after L-");
	if (scan_take(&f->s, 'W'))
		f->out->near_last |= UINT32_C(1) << n;
	else
		f->out->last |= UINT32_C(1) << n;
	return true;
}

/* Weekdays: 0 and 7 are Sunday, which ends a range that begins on another day. */
static void add_weekdays(struct field *f, int a, int b, int64_t step)
{
	if (a == 7) {
		a = 0;
		if (b == 7)
			b = 0;
	}
	add_range(f, a, b == 0 && a > 0 ? 7 : b, step);
}

/* value, value-value, with a step; values may also carry W, L or # */
static bool scan_plain(struct field *f)
{
	size_t at = f->s.pos;
	int a, b;
	int64_t step = 1, n;

	if (!scan_value(f, &a))
		return false;
	if (f->id == CRON_DAY && scan_take(&f->s, 'W')) {
		f->out->near_day |= UINT32_C(1) << a;
		return true;
	}
	if (f->id == CRON_WEEKDAY && scan_take(&f->s, 'L')) {
		f->out->last_weekday |= (uint8_t)(1 << a % 7);
		return true;
	}
	if (f->id == CRON_WEEKDAY && scan_take(&f->s, '#')) {
		at = f->s.pos;
		if (!scan_number(&f->s, &n, NULL) || n < 1 || n > 5)
			return field_refuse(f, at, "a number from 1 to 5 belongs after #");
		f->out->nth[n - 1] |= (uint8_t)(1 << a % 7);
		return true;
	}
	b = a;
	if (scan_take(&f->s, '-')) {
		if (!scan_value(f, &b))
			return false;
	} else if (scan_peek(&f->s) == '/') {
		b = f->id == CRON_WEEKDAY ? 6 : f->range->max;
		a = f->id == CRON_WEEKDAY ? a % 7 : a;
	}
	if (scan_take(&f->s, '/') && !scan_step(f, &step))
		return false;
	if (f->id == CRON_YEAR && b < a)
		return field_refuse(f, at, "years do not run backwards");
	if (f->id == CRON_WEEKDAY)
		add_weekdays(f, a, b, step);
	else
		add_range(f, a, b, step);
	return true;
}

static bool scan_item(struct field *f)
{
	struct scan look = f->s;

	if (scan_take(&f->s, '*'))
		return scan_star(f);
	if (f->id == CRON_DAY && scan_take(&f->s, 'L'))
		return scan_last_day(f);
	if (f->id != CRON_YEAR && scan_take(&look, 'H') && !is_letter(scan_peek(&look))) {
		f->s = look;
		return scan_hash(f);
	}
	return scan_plain(f);
}

static bool item_end(struct field *f)
{
	char c = scan_peek(&f->s);

	return field_refuse(f, f->s.pos,
		c == '~' ? "random ranges are not known here; H(a-b) gives each job its own fixed value" :
		c == '/' ? "this item takes no step" :
		c == '-' ? "this item takes no range" :
		c == '?' ? "'?' stands alone, in day-of-month or day-of-week" :
		c == '#' ? "'#' belongs after one weekday, as in MON#1" :
		c == 'W' || c == 'w' ? "'W' belongs after one day of the month, as in 15W" :
		c == 'L' || c == 'l' ? "'L' is a day of the month, or follows a weekday as in 5L" :
		"',' or a blank belongs here");
}

static bool scan_field(struct field *f)
{
	struct scan *s = &f->s;

	if (scan_peek(s) == '?') {
		if (!f->range->marks || s->end - s->pos != 1)
			return field_refuse(f, s->pos, "'?' stands alone, in day-of-month or day-of-week");
		f->out->star[f->id] = true;
		add_range(f, f->range->min, f->id == CRON_WEEKDAY ? 6 : f->range->max, 1);
		return true;
	}
	if (f->id != CRON_YEAR)
		f->out->star[f->id] = scan_peek(s) == '*';
	do {
		if (!scan_item(f))
			return false;
	} while (scan_take(s, ','));
	return scan_done(s) || item_end(f);
}

/* The positions of the first 8 fields; returns the number of all fields. */
static size_t fields_split(const struct scan *s, size_t from[8], size_t to[8])
{
	struct scan look = *s;
	size_t n = 0;

	while (scan_blanks(&look), !scan_done(&look)) {
		size_t start = look.pos;

		while (!scan_done(&look) && scan_peek(&look) != ' ' && scan_peek(&look) != '\t')
			look.pos++;
		if (n < 8) {
			from[n] = start;
			to[n] = look.pos;
		}
		n++;
	}
	return n;
}

static bool wrong_count(struct scan *s, size_t n)
{
	const char *text = s->text + s->pos;
	size_t digits = strspn(text, "0123456789");

	if (n <= 2 && digits && (text[digits] == '/' || text[digits] == '.'))
		return scan_fail(s, s->pos, "this could be more than one date; write YYYY-MM-DD HH:MM");
	if (n == 1)
		return scan_fail(s, s->pos, "not a schedule; a cron expression has 5 to 7 fields, other forms "
			"are in jobsched-time(7)");
	return scan_fail(s, s->end, "a cron expression has 5, 6 or 7 fields, not %zu", n);
}

static bool matches_every_day(const struct cron *c)
{
	bool day = c->value[CRON_DAY] == UINT64_C(0xfffffffe), weekday = c->value[CRON_WEEKDAY] == 0x7f;
	bool both = c->star[CRON_DAY] || c->star[CRON_WEEKDAY];

	return c->any_year && c->value[CRON_MONTH] == 0x1ffe && (both ? day && weekday : day || weekday);
}

void cron_settle(struct cron *c)
{
	if (c->any_year)
		memset(c->years, 0xff, sizeof c->years);
	c->years[3] &= (UINT64_C(1) << (CRON_YEARS - 192)) - 1;
	c->every_day = matches_every_day(c);
	c->wild = c->star[CRON_SECOND] || c->star[CRON_MINUTE] || c->star[CRON_HOUR];
}

bool cron_scan(struct scan *s, const char *id, struct cron *ret)
{
	size_t from[8], to[8], n = fields_split(s, from, to), k = 0;
	struct cron c = {};

	if (n < 5 || n > 7)
		return wrong_count(s, n);
	if (n == 5)
		c.value[CRON_SECOND] = 1;
	if (n < 7)
		c.any_year = true;
	for (int i = n == 5 ? CRON_MINUTE : CRON_SECOND; i < (n == 7 ? CRON_FIELD_MAX : CRON_YEAR); i++, k++) {
		struct field f = {
			.s = { .text = s->text, .pos = from[k], .end = to[k], .e = s->e },
			.from = from[k],
			.id = (enum cron_field)i,
			.range = &cron_ranges[i],
			.out = &c,
			.seed = id,
		};

		if (!scan_field(&f))
			return false;
	}
	cron_settle(&c);
	c.fields = (int)n;
	s->pos = s->end;
	*ret = c;
	return true;
}
