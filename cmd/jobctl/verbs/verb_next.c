/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl next' and 'jobctl explain'. */
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/moment.h"
#include "jobctl/render/dry_run.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/preview.h"
#include "jobctl/spec/when_args.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT_DEFAULT 10

static bool read_word(const char *flag, const char *text, const char *const *names, size_t n,
	int *ret, struct err *e)
{
	AUTO_DONE(buf) list = {};

	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (int)i;
			return true;
		}
		buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	return err_set(e, ERR_INVALID, "--%s: '%s' is not one of %s", flag, text, list.data);
}

static bool read_policies(const struct args *a, struct preview *p, struct err *e)
{
	const char *gap = args_last(a, "dst-gap"), *fold = args_last(a, "dst-fold");
	int n = 0;

	if (gap) {
		if (!read_word("dst-gap", gap, dst_gap_names, DST_GAP_MAX, &n, e))
			return false;
		p->gap = (enum dst_gap)n;
	}
	if (fold) {
		if (!read_word("dst-fold", fold, dst_fold_names, DST_FOLD_MAX, &n, e))
			return false;
		p->fold = (enum dst_fold)n;
	}
	return true;
}

/* Reads the options that 'next' and 'explain' share. */
static bool read_common(const struct ctl *c, const struct args *a, struct preview *p, struct err *e)
{
	const char *tz = args_last(a, "tz"), *from = args_last(a, "from"), *id = args_last(a, "id");

	p->tz = tz ? xstrdup(tz) : local_zone();
	p->id = xstrdup(id);
	p->from = c->now;
	if (from &&
		!moment_parse(from, &(struct moment_how){.now = c->now, .tz = p->tz}, &p->from, e))
		return err_wrap(e, "--from");
	return read_policies(a, p, e) && when_args_read(a, &p->schedules, e);
}

/* Joins the words of a schedule that was typed without quotes. */
static void read_schedule_words(char *const *words, size_t n, struct preview *p)
{
	AUTO_DONE(buf) b = {};

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", words[i]);
	strv_add(&p->schedules, b.data ? b.data : "");
}

/* The word contains a character that job names cannot have. */
static bool cannot_be_job_name(const char *word)
{
	return word[strspn(word,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-#")] !=
	       '\0';
}

static void swap_text(char **a, char **b)
{
	char *t = *a;

	*a = *b;
	*b = t;
}

/* Reads the schedule of a job from the daemon. Options override it. */
static bool read_schedule_of_job(struct ctl *c, const char *word, const struct args *a,
	struct preview *p, struct err *e)
{
	AUTO_DONE(preview) typed = *p;
	json_auto_t *job = NULL;
	struct ref ref;

	*p = (struct preview){.from = typed.from, .count = typed.count};
	if (!ref_parse(word, &ref, e) || !api_job(c, &ref, &job, e) || !preview_of_job(job, p, e))
		return false;
	if (text_equal(member_text(job, "state"), "paused"))
		ctl_say("job %s is paused; its slots are skipped until 'jobctl resume %s'", word,
			word);
	if (args_has(a, "tz"))
		swap_text(&p->tz, &typed.tz);
	if (args_has(a, "id"))
		swap_text(&p->id, &typed.id);
	if (args_has(a, "dst-gap"))
		p->gap = typed.gap;
	if (args_has(a, "dst-fold"))
		p->fold = typed.fold;
	return true;
}

static bool read_next(struct ctl *c, const struct args *a, struct preview *p, struct err *e)
{
	const char *count = args_last(a, "count");
	char *const *words;
	size_t n = args_operands(a, &words);

	p->count = COUNT_DEFAULT;
	if (count && !text_parse_int(count, 1, PREVIEW_MAX, &p->count))
		return err_set(e, ERR_INVALID, "--count: '%s' is not a number from 1 to %d", count,
			PREVIEW_MAX);
	if (!read_common(c, a, p, e))
		return false;
	if (n && p->schedules.n)
		return err_set(e, ERR_INVALID, "give either a schedule option or '%s', not both",
			words[0]);
	if (!n && !p->schedules.n)
		return err_set(e, ERR_INVALID,
			"give a job, or a schedule after '--'; see 'jobctl help next'");
	if (n && (args_dashed(a) || n > 1 || cannot_be_job_name(words[0])))
		read_schedule_words(words, n, p);
	else if (n)
		return read_schedule_of_job(c, words[0], a, p, e);
	return true;
}

/* ---- rows ---- */

static void cell_slot_utc(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, member_text(row, "at"));
}

static void cell_local(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, member_text(row, "local"));
}

static void cell_clock(const json_t *row, const struct cell_style *style, struct buf *out)
{
	int64_t jump = member_int(row, "clock_change");
	char text[RFC3339_MAX];

	(void)style;
	if (jump)
		buf_printf(out, "%s %s", jump > 0 ? "forward" : "back",
			duration_format((jump < 0 ? -jump : jump) * USEC_SEC, text));
}

static void slot_name(const json_t *row, struct buf *out)
{
	buf_str(out, member_text(row, "at"));
}

static const struct column columns[] = {
	{{"AT", false, false}, "at", false, cell_slot_utc},
	{{"LOCAL", false, false}, "local", false, cell_local},
	{{"CLOCK", false, false}, "clock_change", false, cell_clock},
};
static const struct row_kind kind = {columns, ELEMENTS(columns), slot_name};

static void cell_when(const json_t *row, const struct cell_style *style, struct buf *out)
{
	char text[WORDS_MAX];

	buf_str(out, words_relative(member_time(row, "at"), style->now, text));
}

/* On a terminal, the time in the zone of the schedule comes first. */
static const struct column person_columns[] = {
	{{"LOCAL", false, false}, "local", false, cell_local},
	{{"WHEN", false, false}, "when", false, cell_when},
	{{"UTC", false, false}, "at", false, cell_slot_utc},
	{{"CLOCK", false, false}, "clock_change", false, cell_clock},
};
static const struct row_kind person_kind = {person_columns, ELEMENTS(person_columns), slot_name};

/* The collected slots. */
struct listing {
	usec_t *v; /* owned */
	size_t n;
	const struct zone *zone; /* of the schedule */
};

static void listing_done(struct listing *l)
{
	free(l->v);
}

static void collect_slot(usec_t slot, const struct zone *z, void *arg)
{
	struct listing *l = arg;

	if (!(l->n & (l->n + 1)))
		l->v = xrealloc(l->v, (2 * l->n + 2) * sizeof *l->v);
	l->v[l->n++] = slot;
	l->zone = z;
}

static int show_plain(const struct listing *l)
{
	AUTO_DONE(buf) out = {};
	char text[RFC3339_MAX];

	for (size_t i = 0; i < l->n; i++)
		buf_printf(&out, "%s\n", rfc3339_format(l->v[i], text));
	return render_text(&out);
}

static int show_rows(const struct ctl *c, const struct listing *l, const struct row_kind *how)
{
	struct rows rows;
	char text[RFC3339_MAX];

	rows_begin(&rows, c, how);
	for (size_t i = 0; i < l->n; i++) {
		AUTO_DONE(buf) local = {};
		json_auto_t *row = NULL;

		preview_local(l->v[i], l->zone, &local);
		row = json_pack("{s:s, s:s, s:I}", "at", rfc3339_format(l->v[i], text), "local",
			local.data, "clock_change",
			(json_int_t)preview_clock_change(l->v[i], l->zone));
		rows_add(&rows, row);
	}
	rows_end(&rows);
	return EXIT_SUCCESS;
}

static int batch(struct zone_cache *zones)
{
	AUTO_DONE(buf) out = {};
	AUTO_TEXT line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		preview_batch_row(zones, line, &out);
		buf_char(&out, '\n');
		if (out.len > 64 * 1024)
			render_flush(&out);
	}
	return render_text(&out);
}

/* Reports that there are no slots, with the meaning of the schedule. */
static void say_none(struct zone_cache *zones, const struct preview *p)
{
	AUTO(schedule_set) *set = NULL;
	AUTO_DONE(buf) words = {};
	const struct zone *z;

	if (p->after) {
		ctl_say("no upcoming slots; the job runs %s", p->after);
		return;
	}
	if (!preview_open(zones, p, &z, &set, NULL))
		return;
	schedule_set_explain(set, &words);
	ctl_say("no upcoming slots; the schedule is: %s", words.data);
}

int verb_next(struct ctl *c, const struct args *a)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_DONE(preview) p = {};
	AUTO_DONE(listing) l = {};
	struct err e = {};

	if (args_has(a, "batch"))
		return batch(zones);
	if (!read_next(c, a, &p, &e) || !preview_each(zones, &p, collect_slot, &l, &e))
		return ctl_fail(&e);
	if (l.n == 0 && render_is_text(c))
		say_none(zones, &p);
	if (c->format == FORMAT_TABLE && c->terminal)
		return l.n ? show_rows(c, &l, &person_kind) : EXIT_SUCCESS;
	return c->format == FORMAT_TABLE || c->format == FORMAT_NAME ? show_plain(&l)
								     : show_rows(c, &l, &kind);
}

/* ---- explain ---- */

static void append_finding(const char *code, const char *text, void *arg)
{
	json_t *findings = arg;

	json_array_append_new(findings, json_pack("{s:s, s:s}", "code", code, "message", text));
}

static int show_explained(const struct ctl *c, const struct schedule_set *set)
{
	AUTO_DONE(buf) words = {};
	AUTO_DONE(strv) texts = {};
	json_auto_t *findings = json_array(), *canonical = json_array(), *all = NULL;

	schedule_set_explain(set, &words);
	schedule_set_lint(set, append_finding, findings);
	schedule_set_print(set, &texts);
	if (render_wants_json(c)) {
		for (size_t i = 0; i < texts.n; i++)
			json_array_append_new(canonical, json_string(texts.v[i]));
		all = json_pack("{s:s, s:O, s:O}", "explanation", words.data, "canonical",
			canonical, "findings", findings);
		return render_object(c, all);
	}
	dry_run_say_findings(findings);
	buf_char(&words, '\n');
	return render_text(&words);
}

int verb_explain(struct ctl *c, const struct args *a)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO(schedule_set) *set = NULL;
	AUTO_DONE(preview) p = {};
	const struct zone *z;
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words);

	if (!read_common(c, a, &p, &e))
		return ctl_fail(&e);
	if (n)
		read_schedule_words(words, n, &p);
	if (!p.schedules.n)
		err_set(&e, ERR_INVALID, "give a schedule; see 'jobctl help explain'");
	if (!p.schedules.n || !preview_open(zones, &p, &z, &set, &e))
		return ctl_fail(&e);
	return show_explained(c, set);
}
