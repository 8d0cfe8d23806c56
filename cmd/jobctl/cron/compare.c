/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what cron has started with the slots of the jobs of crontabs. */
#include "jobctl/cron/compare.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

void compare_lines_done(struct compare_lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].user);
		free(l->v[i].command);
		free(l->v[i].origin);
	}
	free(l->v);
	*l = (struct compare_lines){};
}

/* One start or slot with what it is compared by. */
struct event {
	const char *user, *command, *origin;
	usec_t minute, since;
	bool by_cron;
};

static usec_t minute_of(usec_t t)
{
	return t - t % USEC_MIN;
}

static int event_compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	int r;

	if (x->minute != y->minute)
		return x->minute < y->minute ? -1 : 1;
	r = strcmp(x->user, y->user);
	return r ? r : strcmp(x->command, y->command);
}

static int by_time(const void *a, const void *b)
{
	const struct compare_difference *x = a, *y = b;

	return x->minute < y->minute ? -1 : x->minute > y->minute;
}

/* The line that a start belongs to; SIZE_MAX: none. */
static size_t line_find(const struct compare_lines *l, const struct cron_start *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].user, s->user) == 0 && strcmp(l->v[i].command, s->command) == 0)
			return i;
	return SIZE_MAX;
}

static void difference_add(struct compare_result *r, const struct event *e)
{
	r->v = xgrow(r->v, r->n, sizeof(*r->v));
	r->v[r->n++] = (struct compare_difference){e->minute, e->user, e->command, e->origin, e->by_cron};
}

/* Events of one minute, user and command: those of the two sides cancel each other out. */
static void group_settle(const struct event *v, size_t n, struct compare_result *ret)
{
	size_t cron = 0, ours = 0, same;

	for (size_t i = 0; i < n; i++)
		*(v[i].by_cron ? &cron : &ours) += 1;
	same = cron < ours ? cron : ours;
	ret->both += same;
	cron -= same;
	ours -= same;
	for (size_t i = 0; i < n && cron + ours > 0; i++) {
		size_t *left = v[i].by_cron ? &cron : &ours;

		if (*left == 0)
			continue;
		--*left;
		difference_add(ret, &v[i]);
	}
}

void compare_run(const struct compare_lines *lines, const struct compare_slot *slots, size_t n_slots,
	const struct cron_starts *starts, usec_t from, usec_t to, struct compare_result *ret)
{
	struct event *v = xcalloc(n_slots + starts->n + 1, sizeof(*v));
	size_t n = 0;

	*ret = (struct compare_result){};
	for (size_t i = 0; i < n_slots; i++) {
		const struct compare_line *l = &lines->v[slots[i].line];

		v[n++] = (struct event){l->user, l->command, l->origin, minute_of(slots[i].minute), l->since, false};
	}
	for (size_t i = 0; i < starts->n; i++) {
		size_t line = line_find(lines, &starts->v[i]);

		v[n++] = (struct event){starts->v[i].user, starts->v[i].command, line == SIZE_MAX ? NULL : lines->v[line].origin,
			minute_of(starts->v[i].at), line == SIZE_MAX ? 0 : lines->v[line].since, true};
	}
	for (size_t i = 0; i < n;) { /* what one of the sides could not know is left out */
		if (v[i].minute < from || v[i].minute + USEC_MIN > to || v[i].minute < v[i].since)
			v[i] = v[--n];
		else
			i++;
	}
	qsort(v, n, sizeof(*v), event_compare);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && event_compare(&v[i], &v[k]) == 0; k++)
			;
		group_settle(v + i, k - i, ret);
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_time);
	free(v);
}
