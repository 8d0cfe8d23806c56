/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled schedules: parse, print, explain, lint and next slot. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct buf;
struct err;
struct strv;
struct zone;

enum schedule_kind {
	SCHEDULE_NOW,      /* once, at submission */
	SCHEDULE_ONCE,     /* once, at an instant */
	SCHEDULE_RECURRING,
	SCHEDULE_BOOT,     /* once per kernel boot and node */
	SCHEDULE_MANUAL,   /* only when triggered */
	SCHEDULE_KIND_MAX
};

/* The treatment of fixed wall times that a DST change skips (gap) or repeats (fold). */
enum dst_gap { DST_GAP_AFTER, DST_GAP_SKIP, DST_GAP_MAX };
enum dst_fold { DST_FOLD_FIRST, DST_FOLD_LAST, DST_FOLD_BOTH, DST_FOLD_MAX };
extern const char *const dst_gap_names[DST_GAP_MAX];
extern const char *const dst_fold_names[DST_FOLD_MAX];

/* The context of a schedule text. Relative phrases and intervals count from 'anchor'. */
struct schedule_context {
	const struct zone *zone; /* borrowed by the schedule; NULL: UTC */
	usec_t anchor;           /* time of the submission */
	const char *id;          /* seed of H: the name of the job, else its number; NULL: empty */
	enum dst_gap gap;
	enum dst_fold fold;
	usec_t from, until;      /* no slot before or after these; 0: no bound */
	bool accepted;           /* the text was accepted earlier: slots in the past are no error */
};

/*
 * The forms of a schedule text. The start of the text selects the form; the rest may still be
 * invalid.
 */
enum schedule_syntax {
	SYNTAX_MOMENT,       /* tomorrow 9am, 2026-11-16T09:00:00Z, @1700000000 */
	SYNTAX_EVERY,        /* every 15m */
	SYNTAX_AFTER_FINISH, /* after-finish 10m */
	SYNTAX_MANUAL,       /* manual */
	SYNTAX_NICKNAME,     /* @daily, @every 15m */
	SYNTAX_ISO,          /* PT3H, R5/2026-01-31T09:00:00Z/P1M */
	SYNTAX_CRON,         /* a cron expression, or an invalid schedule */
	SYNTAX_MAX
};
enum schedule_syntax schedule_syntax(const char *text);

struct schedule; /* compiled and immutable: may be shared between threads */

/* Compiles a schedule text: "now", "every 15m", "2026-11-16T09:00:00Z", "@1700000000" … */
bool schedule_parse(const char *text, const struct schedule_context *c, struct schedule **ret,
	struct err *e);
void schedule_free(struct schedule *s);
AUTO_DEFINE(schedule);

enum schedule_kind schedule_kind(const struct schedule *s);

/*
 * The first slot; of a one-shot schedule it may be the submission itself. False: boot, manual, or
 * no slot left.
 */
bool schedule_first(const struct schedule *s, usec_t *ret);

/* The first slot strictly after 'after'; false: none until the end of 2199. */
bool schedule_next(const struct schedule *s, usec_t after, usec_t *ret);

/*
 * Whether H was used, so that the slots depend on the id of the context. The canonical text has its
 * values.
 */
bool schedule_hashed(const struct schedule *s);

/*
 * Whether it counts from the end of the last run ("after-finish 10m"). Then schedule_next() knows
 * only the first slot.
 */
bool schedule_follows(const struct schedule *s);
bool schedule_next_after_finish(const struct schedule *s, usec_t finished, usec_t *ret);

/*
 * The canonical text: parsing it at any time gives the same slots. Relative phrases become
 * instants.
 */
void schedule_print(const struct schedule *s, struct buf *out);

/*
 * In plain English, without a full stop: "at 02:30 on the last Friday of every month,
 * Europe/Berlin".
 */
void schedule_explain(const struct schedule *s, struct buf *out);

/* Reports probable mistakes. Codes are stable words like "uneven-step"; the text is one line. */
typedef void schedule_finding_fn(const char *code, const char *text, void *arg);
/* Formats the text of a finding and reports it. */
void schedule_lint_report(schedule_finding_fn *fn, void *arg, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void schedule_lint(const struct schedule *s, schedule_finding_fn *fn, void *arg);
/* The same for a slot at which 'jobs' other jobs are due, counted up to SCHEDULE_DENSITY_MAX. */
#define SCHEDULE_DENSITY_MAX 1000
void schedule_lint_density(usec_t slot, int64_t jobs, schedule_finding_fn *fn, void *arg);
