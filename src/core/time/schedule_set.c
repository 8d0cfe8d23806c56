/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the schedules of a job and removes duplicate slots. */
#include "core/time/schedule_set.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define GAPS_LOOKED_AT 32 /* a day of hours and some */

struct schedule_set {
	size_t n;
	struct schedule *v[SCHEDULE_SET_MAX]; /* owned */
};

void schedule_set_free(struct schedule_set *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		schedule_free(s->v[i]);
	free(s);
}

bool schedule_set_parse(const struct strv *texts, const struct schedule_context *c, struct schedule_set **ret,
	struct err *e)
{
	AUTO(schedule_set) *s = xcalloc(1, sizeof *s);

	if (texts->n > SCHEDULE_SET_MAX)
		return err_field(e, "schedule", "a job has at most %d schedules", SCHEDULE_SET_MAX);
	if (texts->n == 0 && !schedule_parse("now", c, &s->v[s->n++], e))
		return false;
	for (size_t i = 0; i < texts->n; i++) {
		if (!schedule_parse(texts->v[i], c, &s->v[i], e)) {
			if (e && texts->n > 1)
				snprintf(e->field, sizeof e->field, "schedule[%zu]", i);
			return false;
		}
		s->n++;
	}
	*ret = STEAL(s);
	return true;
}

size_t schedule_set_count(const struct schedule_set *s)
{
	return s->n;
}

const struct schedule *schedule_set_at(const struct schedule_set *s, size_t i)
{
	return s->v[i];
}

static bool any_of(const struct schedule_set *s, enum schedule_kind kind)
{
	for (size_t i = 0; i < s->n; i++)
		if (schedule_kind(s->v[i]) == kind)
			return true;
	return false;
}

enum schedule_kind schedule_set_kind(const struct schedule_set *s)
{
	usec_t first, second;

	if (any_of(s, SCHEDULE_RECURRING))
		return SCHEDULE_RECURRING;
	if (any_of(s, SCHEDULE_NOW) || any_of(s, SCHEDULE_ONCE)) {
		if (schedule_set_first(s, &first) && schedule_set_next(s, first, &second))
			return SCHEDULE_RECURRING;
		return any_of(s, SCHEDULE_NOW) ? SCHEDULE_NOW : SCHEDULE_ONCE;
	}
	return any_of(s, SCHEDULE_BOOT) ? SCHEDULE_BOOT : SCHEDULE_MANUAL;
}

bool schedule_set_boots(const struct schedule_set *s)
{
	return any_of(s, SCHEDULE_BOOT);
}

/* The earliest slot found so far. */
struct best {
	bool found;
	usec_t t;
};

static void best_add(struct best *b, usec_t t)
{
	if (!b->found || t < b->t)
		b->t = t;
	b->found = true;
}

static bool best_give(const struct best *b, usec_t *ret)
{
	if (b->found)
		*ret = b->t;
	return b->found;
}

bool schedule_set_first(const struct schedule_set *s, usec_t *ret)
{
	struct best b = {};
	usec_t t;

	for (size_t i = 0; i < s->n; i++)
		if (schedule_first(s->v[i], &t))
			best_add(&b, t);
	return best_give(&b, ret);
}

bool schedule_set_next(const struct schedule_set *s, usec_t after, usec_t *ret)
{
	struct best b = {};
	usec_t t;

	for (size_t i = 0; i < s->n; i++)
		if (schedule_next(s->v[i], after, &t))
			best_add(&b, t);
	return best_give(&b, ret);
}

bool schedule_set_follows(const struct schedule_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (schedule_follows(s->v[i]))
			return true;
	return false;
}

bool schedule_set_next_after_finish(const struct schedule_set *s, usec_t after, usec_t finished, usec_t *ret)
{
	struct best b = {};
	usec_t t;

	for (size_t i = 0; i < s->n; i++) {
		if (schedule_follows(s->v[i]) ?
			    schedule_next_after_finish(s->v[i], finished, &t) && t > after :
			    schedule_next(s->v[i], after, &t))
			best_add(&b, t);
	}
	return best_give(&b, ret);
}

void schedule_set_print(const struct schedule_set *s, struct strv *out)
{
	for (size_t i = 0; i < s->n; i++) {
		AUTO_DONE(buf) b = {};

		schedule_print(s->v[i], &b);
		strv_take(out, buf_steal(&b));
	}
}

void schedule_set_explain(const struct schedule_set *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++) {
		if (i)
			buf_str(out, "; and ");
		schedule_explain(s->v[i], out);
	}
}

static bool seen_before(const struct strv *texts, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(texts->v[k], texts->v[i]))
			return true;
	return false;
}

void schedule_set_lint(const struct schedule_set *s, schedule_finding_fn *fn, void *arg)
{
	AUTO_DONE(strv) texts = {};

	schedule_set_print(s, &texts);
	for (size_t i = 0; i < s->n; i++) {
		if (!seen_before(&texts, i))
			schedule_lint(s->v[i], fn, arg);
		else
			fn("same-schedule", "two schedules of the job mean the same; one is enough", arg);
	}
}

void schedule_set_lint_jitter(const struct schedule_set *s, usec_t jitter, schedule_finding_fn *fn, void *arg)
{
	char text[320], given[RFC3339_MAX], between[RFC3339_MAX];
	usec_t slot, next, gap = USEC_NEVER;

	if (jitter == 0 || !schedule_set_first(s, &slot))
		return;
	for (int i = 0; i < GAPS_LOOKED_AT && schedule_set_next(s, slot, &next); i++, slot = next)
		if (next - slot < gap)
			gap = next - slot;
	if (jitter <= gap)
		return;
	snprintf(text, sizeof text, "a jitter of %s is longer than the %s between two slots: their runs may overtake "
		"each other", duration_format(jitter, given), duration_format(gap, between));
	fn("wide-jitter", text, arg);
}
