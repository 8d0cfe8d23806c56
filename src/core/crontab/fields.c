/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the time fields of a crontab entry. */
#include "core/crontab/fields.h"

#include "base/text.h"
#include "core/time/clocktime.h"
#include "core/time/cron.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 1000 /* cron refuses a number or name of this length */

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DOM, FIELD_MONTH, FIELD_DOW, FIELD_COUNT };

struct field {
	const char *name;
	int low, high;
	int cycle;
	const char *const *names; /* borrowed; the first has the value 'low' */
	int name_count;
	enum crontab_code code;   /* of the error */
	enum cron_field hash;     /* distinguishes the fields for '~' */
};
static const struct field fields[FIELD_COUNT] = {
	[FIELD_MINUTE] = { "minute", 0, 59, 60, NULL, 0, CODE_MINUTE, CRON_MINUTE },
	[FIELD_HOUR] = { "hour", 0, 23, 24, NULL, 0, CODE_HOUR, CRON_HOUR },
	[FIELD_DOM] = { "day-of-month", 1, 31, 31, NULL, 0, CODE_DOM, CRON_DAY },
	[FIELD_MONTH] = { "month", 1, 12, 12, month_words, 12, CODE_MONTH, CRON_MONTH },
	[FIELD_DOW] = { "day-of-week", 0, 7, 7, weekday_words, 7, CODE_DOW, CRON_WEEKDAY },
};

/* One item of a list. */
struct item {
	int first, last, step;
	int number;            /* of the item in its list, from 0 */
	bool star;
	bool range;            /* a dash was written */
	size_t pos;
};

static bool refuse(struct reader *r, const struct field *f, size_t pos, const char *why)
{
	return reader_report(r, f->code, pos, "%s field: %s", f->name, why);
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(int c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A character that ends a field. */
static bool ends_field(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == READER_END;
}

static bool out_of_range(struct reader *r, const struct field *f, size_t pos)
{
	char why[64];

	snprintf(why, sizeof why, "values go from %d to %d", f->low, f->high);
	return refuse(r, f, pos, why);
}

/* atoi() of the C library that Debian's cron uses: a long that overflows is cut to an int. */
static int read_decimal(const unsigned char *s, size_t len, bool *ret_wrapped)
{
	int64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (n > (INT64_MAX - (s[i] - '0')) / 10) {
			n = INT64_MAX;
			break;
		}
		n = n * 10 + (s[i] - '0');
	}
	*ret_wrapped |= n > INT32_MAX;
	return (int)(uint32_t)(uint64_t)n;
}

static int name_find(const struct field *f, const unsigned char *s, size_t len)
{
	for (int i = 0; i < f->name_count; i++)
		if (strlen(f->names[i]) == len && strncasecmp(f->names[i], (const char *)s, len) == 0)
			return f->low + i;
	return -1;
}

/* A number, or a name of this field. 'f' is NULL for a step. */
static bool read_number(struct reader *r, const struct field *of, const struct field *f, int *ret)
{
	size_t pos = r->pos, len = 0;
	const unsigned char *s = r->data + pos;
	bool digits = true, wrapped = false;
	int n;

	for (int c = reader_peek(r); is_alnum(c); c = reader_next(r)) {
		digits &= is_digit(c);
		len++;
	}
	if (len == 0)
		return refuse(r, of, pos, ends_field(reader_peek(r)) ? "a value is missing here" :
			f ? "a number or a name belongs here" : "a step is a number");
	if (len >= WORD_MAX)
		return refuse(r, of, pos, "the number is too long");
	/* Debian's cron takes the byte 0xff after a number for the end of the file */
	if (reader_peek(r) == 0xff && r->o->mode != CRONTAB_CRONIE)
		return refuse(r, of, r->pos, "the byte 0xff after a number is an error");
	n = f ? name_find(f, s, len) : -1;
	if (n >= 0) {
		*ret = n;
		return true;
	}
	if (!digits)
		return refuse(r, of, pos, !f ? "a step is a number" :
			f->names ? "not a number or one of the three-letter names of this field" :
			"names are allowed for months and weekdays only");
	*ret = read_decimal(s, len, &wrapped);
	if (wrapped)
		reader_report(r, CODE_WRAPPED, pos, "%s field: cron reads this number as %d", of->name, *ret);
	return true;
}

/* cronie: a~b, a~, ~b or ~ is one value from that range. It stays the same for the same table. */
static bool read_random(struct reader *r, const struct field *f, struct item *it)
{
	char id[48];
	uint64_t seed;
	int c = reader_next(r);

	it->last = f->high;
	if (!ends_field(c) && c != ',' && !read_number(r, f, f, &it->last))
		return false;
	if (it->first < f->low || it->last > f->high)
		return out_of_range(r, f, it->pos);
	if (it->first > it->last)
		return refuse(r, f, it->pos, "the range of '~' runs backwards");
	if (it->number == 0)
		snprintf(id, sizeof id, "%zu", r->line);
	else
		snprintf(id, sizeof id, "%zu.%d", r->line, it->number);
	seed = cron_hash(r->o->seed ? r->o->seed : "", f->hash) ^ cron_hash(id, f->hash);
	it->first += (int)(seed % (uint64_t)(it->last - it->first + 1));
	it->last = it->first;
	reader_report(r, CODE_RANDOM, it->pos,
		"%s field: '~' selects %d; cronie draws a new value each time it reads the table", f->name, it->first);
	return true;
}

static bool read_step(struct reader *r, const struct field *f, struct item *it)
{
	size_t pos;

	reader_next(r);
	pos = r->pos;
	if (!read_number(r, f, NULL, &it->step))
		return false;
	return it->step > 0 || refuse(r, f, pos, "a step is at least 1");
}

/* '*', a value or a range, each but the value with a step. */
static bool read_item(struct reader *r, const struct field *f, int number, struct item *it)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;

	*it = (struct item){ .first = f->low, .last = f->high, .step = 1, .number = number, .pos = r->pos };
	if (reader_peek(r) == '*') {
		it->star = true;
		reader_next(r);
	} else if (cronie && reader_peek(r) == '~') {
		return read_random(r, f, it);
	} else {
		if (!read_number(r, f, f, &it->first))
			return false;
		it->last = it->first;
		if (cronie && reader_peek(r) == '~')
			return read_random(r, f, it);
		if (reader_peek(r) == '/')
			return refuse(r, f, r->pos, "a step needs '*' or a range before it, as in 5-59/15");
		if (reader_peek(r) != '-')
			return true;
		it->range = true;
		reader_next(r);
		if (!read_number(r, f, f, &it->last))
			return false;
		/* cronie: a range may end on Sunday */
		if (cronie && f->code == CODE_DOW && reader_peek(r) != '/' && it->first > it->last && it->last == 0)
			it->last = 7;
	}
	return reader_peek(r) != '/' || read_step(r, f, it);
}

static void lint_item(struct reader *r, const struct field *f, const struct item *it)
{
	bool clock = f->code == CODE_MINUTE || f->code == CODE_HOUR;

	if (it->range && it->first > it->last && it->first <= f->high && it->last >= f->low)
		reader_report(r, CODE_REVERSED, it->pos, "%s field: the range %d-%d runs backwards and matches nothing; "
			"write two ranges: %d-%d,%d-%d", f->name, it->first, it->last, it->first,
			f->cycle - 1 + f->low, f->low, it->last);
	else if (it->range && it->first > it->last)
		reader_report(r, CODE_REVERSED, it->pos, "%s field: the range %d-%d runs backwards and matches nothing; "
			"values go from %d to %d", f->name, it->first, it->last, f->low, f->high);
	if (!it->star || it->step == 1)
		return;
	if (it->step > f->cycle - 1)
		reader_report(r, CODE_WIDE, it->pos, "%s field: '*/%d' matches %d only", f->name, it->step, f->low);
	else if (clock && f->cycle % it->step)
		reader_report(r, CODE_UNEVEN, it->pos,
			"%s field: '*/%d' starts again at 0 in each %s, so the last interval is %d %ss", f->name, it->step,
			f->code == CODE_MINUTE ? "hour" : "day", (f->cycle - 1) % it->step + 1, f->name);
}

/* The largest value of a range with a step; the range does not run backwards. */
static int64_t last_value(const struct item *it)
{
	return it->last - ((int64_t)it->last - it->first) % it->step;
}

static bool add_item(struct reader *r, const struct field *f, const struct item *it, uint64_t *bits)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;

	/* cronie checks the values that it adds, not the ends of the range */
	if (cronie ? it->first <= it->last && (it->first < f->low || last_value(it) > f->high)
		   : it->first < f->low || it->first > f->high || it->last < f->low || it->last > f->high)
		return out_of_range(r, f, it->pos);
	/* the addition of cron overflows here, and the negative value is refused */
	if (it->first <= it->last && (int64_t)it->first + it->step > INT32_MAX)
		return refuse(r, f, it->pos, "the step is too large");
	for (int64_t v = it->first; v <= it->last; v += it->step)
		*bits |= UINT64_C(1) << v;
	lint_item(r, f, it);
	return true;
}

/* Text after a valid item, up to the next blank. */
static bool read_rest(struct reader *r, const struct field *f)
{
	size_t pos = r->pos;

	if (!ends_field(reader_peek(r))) {
		if (r->o->mode == CRONTAB_CRONIE)
			return refuse(r, f, pos, "',' or a blank belongs here");
		if (reader_peek(r) == 0xff)
			return refuse(r, f, pos, "the byte 0xff is an error here");
		while (!ends_field(reader_peek(r)))
			reader_next(r);
		reader_report(r, CODE_IGNORED, pos, "%s field: cron ignores '%.*s'", f->name,
			(int)(r->pos - pos < 40 ? r->pos - pos : 40), (const char *)r->data + pos);
	}
	reader_skip_blanks(r);
	if (reader_peek(r) == READER_END || (reader_peek(r) == 0xff && r->o->mode != CRONTAB_CRONIE))
		return refuse(r, f, r->pos, "the line ends after this field");
	return true;
}

static bool read_list(struct reader *r, const struct field *f, uint64_t *bits, bool *star)
{
	*bits = 0;
	*star = reader_peek(r) == '*';
	for (int number = 0;; number++) {
		struct item it;

		if (!read_item(r, f, number, &it) || !add_item(r, f, &it, bits))
			return false;
		if (reader_peek(r) != ',')
			return read_rest(r, f);
		reader_next(r);
	}
}

bool fields_read(struct reader *r, struct crontab_time *ret)
{
	uint64_t bits[FIELD_COUNT];
	bool star[FIELD_COUNT];

	for (int i = 0; i < FIELD_COUNT; i++)
		if (!read_list(r, &fields[i], &bits[i], &star[i]))
			return false;
	*ret = (struct crontab_time){
		.minute = bits[FIELD_MINUTE],
		.hour = (uint32_t)bits[FIELD_HOUR],
		.dom = (uint32_t)bits[FIELD_DOM],
		.month = (uint16_t)bits[FIELD_MONTH],
		.dow = (uint8_t)((bits[FIELD_DOW] | bits[FIELD_DOW] >> 7) & 0x7f),
		.minute_star = star[FIELD_MINUTE],
		.hour_star = star[FIELD_HOUR],
		.dom_star = star[FIELD_DOM],
		.dow_star = star[FIELD_DOW],
	};
	return true;
}

#define ALL_DOM UINT32_C(0xfffffffe)
#define ALL_MONTH 0x1ffe
#define ALL_DOW 0x7f

static const struct nickname {
	const char *name;
	struct crontab_time time;
} nicknames[] = {
	{ "@reboot", {} },
	{ "@yearly", { 1, 1, 2, 2, ALL_DOW, .dow_star = true } },
	{ "@annually", { 1, 1, 2, 2, ALL_DOW, .dow_star = true } },
	{ "@monthly", { 1, 1, 2, ALL_MONTH, ALL_DOW, .dow_star = true } },
	{ "@weekly", { 1, 1, ALL_DOM, ALL_MONTH, 1, .dom_star = true } },
	{ "@daily", { 1, 1, ALL_DOM, ALL_MONTH, ALL_DOW } },
	{ "@midnight", { 1, 1, ALL_DOM, ALL_MONTH, ALL_DOW } },
	{ "@hourly", { 1, 0xffffff, ALL_DOM, ALL_MONTH, ALL_DOW, .hour_star = true } },
};

bool fields_read_nickname(struct reader *r, struct crontab_entry *e)
{
	size_t pos = r->pos, len = reader_span(r, " \t\n");

	for (size_t i = 0; i < ELEMENTS(nicknames); i++)
		if (strlen(nicknames[i].name) == len && memcmp(nicknames[i].name, r->data + pos, len) == 0) {
			e->reboot = i == 0;
			e->nickname = i > 0;
			e->time = nicknames[i].time;
			r->pos += len;
			return true;
		}
	return reader_report(r, CODE_TIMESPEC, pos, "'%.*s' is not one of @reboot, @yearly, @annually, @monthly, "
		"@weekly, @daily, @midnight and @hourly", (int)(len < 40 ? len : 40), (const char *)r->data + pos);
}

void fields_lint(struct reader *r, const struct crontab_entry *e, size_t pos)
{
	const struct crontab_time *t = &e->time;

	if (e->reboot || e->nickname)
		return;
	if (e->never)
		reader_report(r, CODE_NEVER, pos, "no date and time match, so cron never runs this entry");
	else if (!t->dom_star && !t->dow_star)
		reader_report(r, CODE_DAY_OR, pos,
			"day-of-month and day-of-week are both set: the entry runs on days that match either field");
	else if (t->dom != ALL_DOM && t->dow != ALL_DOW)
		reader_report(r, CODE_DAY_AND, pos,
			"a day field begins with '*': the entry runs only on days that match both day fields");
}
