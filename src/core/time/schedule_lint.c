/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about valid schedules that are probably mistakes. */
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/cron_field.h"
#include "core/time/schedule_form.h"
#include "core/time/zone.h"

#include <stdarg.h>
#include <stdio.h>

#define LOOK_AHEAD (2 * 366 * DAY_SECONDS) /* period that is searched for DST changes */
#define ALL_DAYS UINT64_C(0xfffffffe)

struct lint {
	const struct schedule *s;
	schedule_finding_fn *fn;
	void *arg;
};

void schedule_lint_report(schedule_finding_fn *fn, void *arg, const char *code, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fn(code, text, arg);
}

static bool full_hours(const struct cron *c)
{
	return c->value[CRON_HOUR] == 0xffffff;
}

static void lint_steps(const struct lint *l)
{
	static const enum cron_field fields[] = { CRON_SECOND, CRON_MINUTE, CRON_HOUR };
	const struct cron *c = &l->s->cron;

	for (size_t i = 0; i < ELEMENTS(fields); i++) {
		enum cron_field f = fields[i];
		int n = (int)c->star_step[f], cycle = cron_ranges[f].cycle;
		const char *name = cron_field_names[f];

		if (c->wide_step[f])
			schedule_lint_report(l->fn, l->arg, "wide-step",
				"%s '*/%d' matches %s 0 only; for an interval of %d %ss write 'every %d%c'",
				name, n, name, n, name, n, name[0]);
		else if (n > 1 && cycle % n)
			schedule_lint_report(l->fn, l->arg, "uneven-step",
				"%s '*/%d' starts again at 0: the last gap is %d %ss; for even gaps write 'every %d%c'",
				name, n, (cycle - 1) % n + 1, name, n, name[0]);
	}
}

static void lint_days(const struct lint *l)
{
	const struct cron *c = &l->s->cron;
	bool marks = c->last || c->near_day || c->near_last || c->last_weekday;
	bool some_days = c->value[CRON_DAY] != ALL_DAYS, some_weekdays = c->value[CRON_WEEKDAY] != 0x7f;
	bool late_only = !(c->value[CRON_DAY] & 0x1fffffff) && c->value[CRON_DAY];

	if (!c->star[CRON_DAY] && !c->star[CRON_WEEKDAY])
		schedule_lint_report(l->fn, l->arg, "day-or-weekday",
			"day-of-month and day-of-week are both set: a day matches if either does");
	else if (some_days && some_weekdays)
		schedule_lint_report(l->fn, l->arg, "day-and-weekday",
			"one day field begins with '*': a day matches only if both fields do");
	if (late_only && !marks && c->star[CRON_WEEKDAY] && (c->value[CRON_MONTH] & (c->value[CRON_MONTH] - 1)))
		schedule_lint_report(l->fn, l->arg, "short-month",
			"months without that day are left out; 'L' is the last day of any month");
}

static void lint_times(const struct lint *l)
{
	const struct cron *c = &l->s->cron;

	if (c->value[CRON_SECOND] == (UINT64_C(1) << 60) - 1 && c->fields > 5)
		schedule_lint_report(l->fn, l->arg, "every-second",
			"second '*' matches sixty times a minute; for once a minute write 0");
	if (c->star[CRON_MINUTE] && c->value[CRON_MINUTE] == (UINT64_C(1) << 60) - 1 && !full_hours(c))
		schedule_lint_report(l->fn, l->arg, "every-minute",
			"minute '*' matches sixty times in each of those hours; for once an hour write 0");
}

/* The first matching wall time in [from, to). */
static bool match_between(const struct cron *c, int64_t from, int64_t to, int64_t *ret)
{
	return cron_wall_next(c, from, ret) && *ret < to;
}

static const char *wall_text(int64_t wall, char out[RFC3339_MAX])
{
	char *t = rfc3339_format(wall * USEC_SEC, out);

	t[16] = '\0';
	t[10] = ' ';
	return t;
}

static void lint_gap(const struct lint *l, int64_t wall)
{
	const struct schedule *s = l->s;
	char text[RFC3339_MAX];

	schedule_lint_report(l->fn, l->arg, "dst-gap", "%s does not exist in %s: %s", wall_text(wall, text), s->zone->name,
		s->cron.wild || s->policy.gap == DST_GAP_SKIP ? "there is no run for it" :
		"the run comes right after the clock's jump (--dst-gap skip: none)");
}

static void lint_fold(const struct lint *l, int64_t wall)
{
	static const char *const what[DST_FOLD_MAX] = { "it runs the first time only",
		"it runs the second time only", "it runs both times" };
	const struct schedule *s = l->s;
	char text[RFC3339_MAX];

	schedule_lint_report(l->fn, l->arg, "dst-fold", "%s comes twice in %s: %s%s", wall_text(wall, text), s->zone->name,
		what[s->cron.wild ? DST_FOLD_BOTH : s->policy.fold],
		s->cron.wild ? "" : " (--dst-fold first|last|both)");
}

/* Schedules that follow the clock through every hour are left in peace. */
static void lint_dst(const struct lint *l)
{
	const struct schedule *s = l->s;
	const struct zone *z = s->zone;
	bool gap = false, fold = false;

	if (s->cron.wild && full_hours(&s->cron))
		return;
	for (size_t i = zone_find(z, s->anchor) + 1; i < z->n && z->v[i].from < s->anchor + LOOK_AHEAD; i++) {
		const struct zone_period *p = &z->v[i];
		int64_t before = p->from + p[-1].offset, after = p->from + p->offset, wall;

		if (after > before && !gap && match_between(&s->cron, before, after, &wall)) {
			lint_gap(l, wall);
			gap = true;
		}
		if (after < before && !fold && match_between(&s->cron, after, before, &wall)) {
			lint_fold(l, wall);
			fold = true;
		}
	}
}

void schedule_lint(const struct schedule *s, schedule_finding_fn *fn, void *arg)
{
	const struct lint l = { .s = s, .fn = fn, .arg = arg };

	if (s->form != FORM_CRON)
		return;
	lint_steps(&l);
	lint_times(&l);
	lint_days(&l);
	lint_dst(&l);
}

void schedule_lint_density(usec_t slot, int64_t jobs, schedule_finding_fn *fn, void *arg)
{
	char text[RFC3339_MAX];

	if (jobs >= SCHEDULE_DENSITY_MAX)
		schedule_lint_report(fn, arg, "crowded-second",
			"at least %d other jobs are due at %s; --jitter, or H for the minute of a cron expression, "
			"spreads them",
			SCHEDULE_DENSITY_MAX, rfc3339_format(slot, text));
}
