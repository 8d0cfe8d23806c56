/* SPDX-License-Identifier: Apache-2.0 */
/* All schedules of one job, merged into one sequence of slots. */
#pragma once
#include "base/auto.h"
#include "core/time/schedule.h"
#include <stdbool.h>

struct buf;
struct err;
struct strv;

#define SCHEDULE_SET_MAX 64

struct schedule_set; /* immutable: may be shared between threads */

/*
 * No text at all means "now". An error's field is "schedule" or, with several texts, "schedule[2]".
 */
bool schedule_set_parse(const struct strv *texts, const struct schedule_context *c, struct schedule_set **ret,
	struct err *e);
void schedule_set_free(struct schedule_set *s);
AUTO_DEFINE(schedule_set);

size_t schedule_set_count(const struct schedule_set *s);
const struct schedule *schedule_set_at(const struct schedule_set *s, size_t i);

/*
 * Of the whole: NOW or ONCE only with a single slot in all; RECURRING with more; BOOT and MANUAL
 * when there is nothing else. A boot schedule beside others is asked for with schedule_set_boots.
 */
enum schedule_kind schedule_set_kind(const struct schedule_set *s);
bool schedule_set_boots(const struct schedule_set *s);

/* As schedule_first and schedule_next: the earliest of all. */
bool schedule_set_first(const struct schedule_set *s, usec_t *ret);
bool schedule_set_next(const struct schedule_set *s, usec_t after, usec_t *ret);

/*
 * The next slot known once a run has finished: that of "after-finish", or an earlier one of the
 * others.
 */
bool schedule_set_follows(const struct schedule_set *s);
bool schedule_set_next_after_finish(const struct schedule_set *s, usec_t after, usec_t finished, usec_t *ret);

/* The canonical texts, one per schedule. */
void schedule_set_print(const struct schedule_set *s, struct strv *out);

/* The explanations of all schedules, joined with "; and ". */
void schedule_set_explain(const struct schedule_set *s, struct buf *out);
void schedule_set_lint(const struct schedule_set *s, schedule_finding_fn *fn, void *arg);
/* Reports a jitter that can delay a start beyond the next slot. */
void schedule_set_lint_jitter(const struct schedule_set *s, usec_t jitter, schedule_finding_fn *fn, void *arg);
