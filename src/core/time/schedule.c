/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the slots of a compiled schedule. */
#include "core/time/schedule.h"

#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/schedule_form.h"

#include <assert.h>
#include <inttypes.h>

static_assert(TIME_LAST * USEC_SEC == USEC_LAST, "one end of time");

const char *const dst_gap_names[DST_GAP_MAX] = { "after", "skip" };
const char *const dst_fold_names[DST_FOLD_MAX] = { "first", "last", "both" };

void schedule_free(struct schedule *s)
{
	free(s);
}

enum schedule_kind schedule_kind(const struct schedule *s)
{
	switch (s->form) {
	case FORM_NOW:
		return SCHEDULE_NOW;
	case FORM_ONCE:
		return SCHEDULE_ONCE;
	case FORM_BOOT:
		return SCHEDULE_BOOT;
	case FORM_MANUAL:
		return SCHEDULE_MANUAL;
	case FORM_SERIES:
	case FORM_AFTER_FINISH:
	case FORM_CRON:
		break;
	}
	return SCHEDULE_RECURRING;
}

/* The first slot at or after t, in seconds, without the bounds. */
static bool form_next(const struct schedule *s, int64_t t, int64_t *ret)
{
	switch (s->form) {
	case FORM_NOW:
	case FORM_ONCE:
		*ret = s->once;
		return s->once >= t;
	case FORM_CRON:
		return cron_next(&s->cron, &s->policy, t, ret);
	case FORM_SERIES:
		return interval_next(&s->series, s->zone, t - 1, ret);
	case FORM_AFTER_FINISH:
		*ret = interval_add(&s->series.step, s->zone, s->series.anchor, 1);
		return *ret >= t && *ret <= TIME_LAST;
	case FORM_BOOT:
	case FORM_MANUAL:
		break;
	}
	return false;
}

static bool bounded_next(const struct schedule *s, int64_t t, usec_t *ret)
{
	int64_t slot;

	if (t < s->from)
		t = s->from;
	if (t > s->until || !form_next(s, t, &slot) || slot > s->until)
		return false;
	*ret = slot * USEC_SEC;
	return true;
}

bool schedule_next(const struct schedule *s, usec_t after, usec_t *ret)
{
	if (after >= USEC_LAST)
		return false;
	return bounded_next(s, after < 0 ? 0 : after / USEC_SEC + 1, ret);
}

static bool is_once(const struct schedule *s)
{
	return s->form == FORM_NOW || s->form == FORM_ONCE;
}

bool schedule_first(const struct schedule *s, usec_t *ret)
{
	return bounded_next(s, is_once(s) ? 0 : s->start, ret);
}

bool schedule_hashed(const struct schedule *s)
{
	bool any = false;

	for (int f = 0; s->form == FORM_CRON && f < CRON_YEAR; f++)
		any |= s->cron.hashed[f];
	return any;
}

bool schedule_follows(const struct schedule *s)
{
	return s->form == FORM_AFTER_FINISH;
}

bool schedule_next_after_finish(const struct schedule *s, usec_t finished, usec_t *ret)
{
	int64_t from = finished / USEC_SEC + (finished % USEC_SEC != 0);
	int64_t slot;

	if (s->form != FORM_AFTER_FINISH || finished < 0 || finished >= USEC_LAST)
		return false;
	slot = interval_add(&s->series.step, s->zone, from, 1);
	if (slot < s->from)
		slot = s->from;
	if (slot > s->until)
		return false;
	*ret = slot * USEC_SEC;
	return true;
}

static void print_instant(int64_t t, struct buf *out)
{
	char text[RFC3339_MAX];

	buf_str(out, rfc3339_format(t * USEC_SEC, text));
}

static void print_series(const struct interval_series *v, struct buf *out)
{
	if (v->first == 0) {
		buf_char(out, 'R');
		if (v->last != INT64_MAX)
			buf_printf(out, "%" PRId64, v->last + 1);
		buf_char(out, '/');
		print_instant(v->anchor, out);
		buf_char(out, '/');
		interval_print(&v->step, out);
		return;
	}
	if (v->last != INT64_MAX)
		buf_printf(out, "R%" PRId64 "/", v->last);
	interval_print(&v->step, out);
	buf_str(out, " since ");
	print_instant(v->anchor, out);
}

void schedule_print(const struct schedule *s, struct buf *out)
{
	switch (s->form) {
	case FORM_NOW:
	case FORM_ONCE:
		print_instant(s->once, out);
		break;
	case FORM_CRON:
		cron_print(&s->cron, out);
		break;
	case FORM_SERIES:
		print_series(&s->series, out);
		break;
	case FORM_AFTER_FINISH:
		buf_str(out, "after-finish ");
		interval_print(&s->series.step, out);
		buf_str(out, " since ");
		print_instant(s->series.anchor, out);
		break;
	case FORM_BOOT:
		buf_str(out, "@reboot");
		break;
	case FORM_MANUAL:
		buf_str(out, "manual");
		break;
	}
}
