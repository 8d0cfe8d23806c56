/* SPDX-License-Identifier: Apache-2.0 */
/* Draws cron expressions and writes down what each item means. */
#include "unit/core/random_cron.h"

#include "base/buf.h"

#include <string.h>

uint64_t random_next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

int random_below(struct random *r, int n)
{
	return (int)((random_next(r) >> 16) % (uint64_t)n);
}

struct draw {
	struct random *r;
	struct buf *out;
	struct model *m;
	const char *id;
	int field;          /* 0 second … 5 weekday, 6 year */
	int min, max;       /* of what may be written */
	bool *values;       /* of the model */
};

static const char *const month_names[] = { "", "JAN", "feb", "Mar", "APR", "may", "JUN", "JUL", "AUG", "sep", "OCT",
	"NOV", "DEC" };
static const char *const weekday_names[] = { "SUN", "mon", "Tue", "WED", "THU", "fri", "SAT" };

static int draw_value(struct draw *d)
{
	int v = d->min + random_below(d->r, d->max - d->min + 1);

	if (d->field == 4 && random_below(d->r, 3) == 0)
		buf_str(d->out, month_names[v]);
	else if (d->field == 5 && v < 7 && random_below(d->r, 3) == 0)
		buf_str(d->out, weekday_names[v]);
	else
		buf_printf(d->out, random_below(d->r, 8) ? "%d" : "0%d", v);
	return v;
}

static void mark(struct draw *d, int v)
{
	d->values[d->field == 5 ? v % 7 : v] = true;
}

/* One value after the other from a on, round the cycle, until b. */
static void mark_walk(struct draw *d, int a, int b, int step)
{
	int top = d->field == 5 ? 6 : d->max, n = 0;

	if (d->field == 5) {
		bool week = a == 0 && b == 7;

		a %= 7;
		b = week ? 6 : b % 7;
	}
	for (int v = a;; v = v == top ? d->min : v + 1) {
		if (n++ % step == 0)
			mark(d, v);
		if (v == b)
			break;
	}
}

static uint64_t spec_hash(const char *id, int k)
{
	uint64_t s = UINT64_C(14695981039346656037), x = 0;

	for (; *id; id++) {
		s ^= (unsigned char)*id;
		s *= UINT64_C(1099511628211);
	}
	for (int i = 0; i <= k; i++) {
		s += UINT64_C(0x9E3779B97F4A7C15);
		x = s;
		x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
		x ^= x >> 31;
	}
	return x;
}

static void draw_hash(struct draw *d)
{
	int a = d->min, b = d->field == 3 ? 28 : d->field == 5 ? 6 : d->max, step;
	uint64_t z = spec_hash(d->id, d->field);

	buf_char(d->out, random_below(d->r, 4) ? 'H' : 'h');
	if (random_below(d->r, 2)) {
		b = d->field == 5 ? 6 : d->max;
		a = d->min + random_below(d->r, b - d->min + 1);
		b = a + random_below(d->r, b - a + 1);
		buf_printf(d->out, "(%d-%d)", a, b);
	}
	if (random_below(d->r, 2)) {
		mark(d, a + (int)(z % (uint64_t)(b - a + 1)));
		return;
	}
	step = 1 + random_below(d->r, b - a + 1);
	buf_printf(d->out, "/%d", step);
	for (int v = a + (int)(z % (uint64_t)step); v <= b; v += step)
		mark(d, v);
}

static bool draw_mark(struct draw *d)
{
	struct model *m = d->m;
	int n;

	if (d->field == 3) {
		n = random_below(d->r, 31);
		switch (random_below(d->r, 5)) {
		case 0:
			buf_str(d->out, "L");
			m->last[0] = true;
			return true;
		case 1:
			buf_printf(d->out, "L-%d", n);
			m->last[n] = true;
			return true;
		case 2:
			buf_printf(d->out, "%dW", n + 1);
			m->near[n + 1] = true;
			return true;
		case 3:
			buf_str(d->out, "LW");
			m->near_last[0] = true;
			return true;
		default:
			buf_printf(d->out, "l-%dw", n);
			m->near_last[n] = true;
			return true;
		}
	}
	n = draw_value(d) % 7;
	if (random_below(d->r, 2)) {
		buf_char(d->out, 'L');
		m->last_weekday[n] = true;
	} else {
		int k = 1 + random_below(d->r, 5);

		buf_printf(d->out, "#%d", k);
		m->nth[k][n] = true;
	}
	return true;
}

static void draw_star(struct draw *d)
{
	int top = d->field == 5 ? 6 : d->max, step = 1;

	buf_char(d->out, '*');
	if (random_below(d->r, 2)) {
		step = 1 + random_below(d->r, top + 2 - d->min);
		buf_printf(d->out, "/%d", step);
	} else if (d->field == 6) {
		d->m->any_year = true;
	}
	for (int v = d->min; v <= top; v += step)
		mark(d, v);
}

static void draw_range(struct draw *d)
{
	int a = draw_value(d), b = a, step = 1, form = random_below(d->r, 4);

	if (form == 0) {
		mark(d, a);
		return;
	}
	if (form == 1) {
		step = 1 + random_below(d->r, 12);
		buf_printf(d->out, "/%d", step);
		for (int v = d->field == 5 ? a % 7 : a; v <= (d->field == 5 ? 6 : d->max); v += step)
			mark(d, v);
		return;
	}
	buf_char(d->out, '-');
	if (d->field == 6) {
		b = a + random_below(d->r, d->max - a + 1);
		buf_printf(d->out, "%d", b);
	} else {
		b = draw_value(d);
	}
	if (form == 3) {
		step = 1 + random_below(d->r, 12);
		buf_printf(d->out, "/%d", step);
	}
	mark_walk(d, a, b, step);
}

static void draw_field(struct draw *d, int density)
{
	size_t from = d->out->len;
	int items = random_below(d->r, 4) ? 1 : 1 + random_below(d->r, 3);
	bool star;

	for (int i = 0; i < items; i++) {
		int kind = random_below(d->r, 10);

		if (i)
			buf_char(d->out, ',');
		if (kind < density)
			draw_star(d);
		else if (kind == 8 && d->field != 6)
			draw_hash(d);
		else if (kind == 9 && (d->field == 3 || d->field == 5))
			draw_mark(d);
		else
			draw_range(d);
	}
	star = d->out->data[from] == '*';
	if (d->field <= 2)
		d->m->wild |= star;
	if (d->field == 3)
		d->m->star_day = star;
	if (d->field == 5)
		d->m->star_weekday = star;
}

void random_cron(struct random *r, const char *id, struct buf *text, struct model *m)
{
	static const struct {
		int min, max, density;
	} fields[] = { { 0, 59, 2 }, { 0, 59, 3 }, { 0, 23, 4 }, { 1, 31, 6 }, { 1, 12, 7 }, { 0, 7, 6 },
		{ 1970, 2199, 5 } };
	int count = 5 + (random_below(r, 3) == 0) + (random_below(r, 8) == 0);

	*m = (struct model){ .any_year = count < 7 };
	bool *values[] = { m->second, m->minute, m->hour, m->day, m->month, m->weekday, m->year };

	if (count == 5)
		m->second[0] = true;
	for (int f = count == 5; f < (count == 7 ? 7 : 6); f++) {
		struct draw d = { r, text, m, id, f, fields[f].min, fields[f].max, values[f] };

		if (text->len)
			buf_str(text, random_below(r, 8) ? " " : "\t ");
		draw_field(&d, fields[f].density);
	}
}
