/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a schedule in English. */
#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/schedule_form.h"
#include "core/time/zone.h"

#include <inttypes.h>
#include <string.h>

static void say_instant(int64_t t, struct buf *out)
{
	char text[RFC3339_MAX];

	buf_str(out, rfc3339_format(t * USEC_SEC, text));
}

static void say_zone(const struct schedule *s, struct buf *out)
{
	buf_printf(out, ", %s", s->zone->name);
}

/* "hour" rather than "1 hour", unless more follows */
static void say_step(const struct interval *v, struct buf *out)
{
	AUTO_DONE(buf) b = {};

	interval_explain(v, &b);
	buf_str(out, text_starts(b.data, "1 ") && !strchr(b.data + 2, ' ') ? b.data + 2 : b.data);
}

static void say_series(const struct schedule *s, struct buf *out)
{
	const struct interval_series *v = &s->series;
	bool nominal = v->step.months || v->step.days;

	if (v->last != INT64_MAX)
		buf_printf(out, "%" PRId64 " time%s, ", v->last - v->first + 1, v->last == v->first ? "" : "s");
	buf_str(out, "every ");
	say_step(&v->step, out);
	buf_str(out, nominal ? " on the wall clock" : "");
	buf_str(out, v->first == 0 ? ", the first at " : ", counted from ");
	say_instant(v->anchor, out);
	if (nominal)
		say_zone(s, out);
}

static void say_cron(const struct schedule *s, struct buf *out)
{
	static const char *const folds[DST_FOLD_MAX] = {
		[DST_FOLD_LAST] = "; a time that comes twice counts the second time",
		[DST_FOLD_BOTH] = "; a time that comes twice counts both times",
	};

	cron_explain(&s->cron, out);
	say_zone(s, out);
	if (s->cron.wild)
		return;
	if (s->policy.gap == DST_GAP_SKIP)
		buf_str(out, "; a time that the clock leaves out is skipped");
	if (folds[s->policy.fold])
		buf_str(out, folds[s->policy.fold]);
}

static void say_bounds(const struct schedule *s, struct buf *out)
{
	if (s->from > 0) {
		buf_str(out, ", not before ");
		say_instant(s->from, out);
	}
	if (s->until < TIME_LAST) {
		buf_str(out, ", not after ");
		say_instant(s->until, out);
	}
}

void schedule_explain(const struct schedule *s, struct buf *out)
{
	switch (s->form) {
	case FORM_NOW:
	case FORM_ONCE:
		buf_str(out, "once, at ");
		say_instant(s->once, out);
		return;
	case FORM_BOOT:
		buf_str(out, "once after every boot of the machine");
		return;
	case FORM_MANUAL:
		buf_str(out, "only when it is triggered");
		return;
	case FORM_CRON:
		say_cron(s, out);
		break;
	case FORM_SERIES:
		say_series(s, out);
		break;
	case FORM_AFTER_FINISH:
		interval_explain(&s->series.step, out);
		buf_str(out, " after the end of the last run");
		break;
	}
	say_bounds(s, out);
}
