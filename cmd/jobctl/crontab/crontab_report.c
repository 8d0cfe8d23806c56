/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the lines of a crontab. */
#include "jobctl/crontab/crontab_report.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/time/schedule.h"
#include "core/time/zone_cache.h"
#include "jobctl/crontab/crontab_check.h"
#include "jobctl/crontab/crontab_source.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/preview.h"
#include <string.h>

#define NEXT_COUNT 3
#define COMMAND_SHOWN 200 /* bytes */

static const char *const level_words[] = { "note", "warning", "error" };

static void put_indented(const char *label, struct buf *out)
{
	buf_printf(out, "  %-9s ", label);
}

static void put_cut(const char *s, struct buf *out)
{
	size_t len = strlen(s);

	text_escape(out, s, len < COMMAND_SHOWN ? len : COMMAND_SHOWN);
	buf_str(out, len > COMMAND_SHOWN ? "…" : "");
}

/* How findings are written: below their line, or each with the name of the file. */
struct put_finding {
	struct buf *out;
	const char *label; /* of the file; NULL: below the line */
	size_t line;
	size_t n;
};

static void put_finding(struct put_finding *p, const struct crontab_finding *f)
{
	p->n++;
	if (!p->label) {
		put_indented(level_words[f->level], p->out);
		buf_str(p->out, f->text);
		if (f->column)
			buf_printf(p->out, " (%s, column %zu)\n", f->code, f->column);
		else
			buf_printf(p->out, " (%s)\n", f->code);
		return;
	}
	text_escape(p->out, p->label, strlen(p->label));
	if (f->column)
		buf_printf(p->out, ":%zu:%zu: ", f->line, f->column);
	else
		buf_printf(p->out, ":%zu: ", f->line);
	buf_printf(p->out, "%s: %s (%s)\n", level_words[f->level], f->text, f->code);
}

static void on_check(const char *code, const char *text, void *arg)
{
	struct put_finding *p = arg;
	AUTO_DONE(buf) safe = {};

	text_escape(&safe, text, strlen(text));
	put_finding(p, &(struct crontab_finding){ .line = p->line, .level = CRONTAB_WARNING, .code = code, .text = safe.data });
}

static void on_schedule_finding(const char *code, const char *text, void *arg)
{
	struct put_finding *p = arg;

	/* the parser reports the others, with their columns */
	if (text_starts(code, "dst-"))
		put_finding(p, &(struct crontab_finding){ .line = p->line, .code = code, .text = (char *)text });
}

/* Opens the schedule in its zone. */
static bool open_schedule(const struct crontab_report *r, const struct crontab_entry *e, const struct zone **ret_zone,
	struct schedule **ret, struct err *err)
{
	struct schedule_context c = { .anchor = r->now, .accepted = true };
	AUTO_DONE(buf) text = {};

	crontab_schedule(e, &text);
	if (!zone_cache_get(r->zones, e->zone ? e->zone : r->zone, &c.zone, err))
		return false;
	*ret_zone = c.zone;
	return schedule_parse(text.data, &c, ret, err);
}

static void put_next(const struct crontab_report *r, const struct schedule *s, const struct zone *z, struct buf *out)
{
	usec_t at = r->now;
	char words[WORDS_MAX];

	for (int i = 0; i < NEXT_COUNT && schedule_next(s, at, &at); i++) {
		put_indented(i ? "" : "next", out);
		preview_local(at, z, out);
		if (r->relative)
			buf_printf(out, "  %s", words_relative(at, r->now, words));
		buf_char(out, '\n');
	}
}

static void put_when(const struct crontab_report *r, const struct crontab_entry *e, struct put_finding *p)
{
	AUTO(schedule) *s = NULL;
	AUTO_DONE(buf) words = {};
	const struct zone *z = NULL;
	struct err err = {};

	put_indented("runs", p->out);
	if (e->never) {
		buf_str(p->out, "never: no date and time match\n");
		return;
	}
	if (!open_schedule(r, e, &z, &s, &err)) {
		buf_printf(p->out, "%s\n", err.msg);
		on_check("bad-zone", err.msg, p);
		return;
	}
	schedule_explain(s, &words);
	buf_str(p->out, words.data);
	if (e->delay_minutes)
		buf_printf(p->out, ", up to %d minutes later", (int)e->delay_minutes);
	buf_char(p->out, '\n');
	put_next(r, s, z, p->out);
	schedule_lint(s, on_schedule_finding, p);
}

static void put_mail(const struct crontab_source *s, const struct crontab_entry *e, struct buf *out)
{
	AUTO_DONE(strv) to = {};
	enum crontab_mail mail = crontab_job_mail(s->table, e, crontab_source_user(s, e), &to);

	if (mail == CRONTAB_MAIL_NONE || mail == CRONTAB_MAIL_BAD)
		return;
	put_indented("mail", out);
	buf_str(out, mail == CRONTAB_MAIL_ALL ? "output of each run to " : "first failure and recovery to ");
	for (size_t i = 0; i < to.n; i++)
		buf_printf(out, "%s%s", i ? "," : "", strchr(to.v[i], ':') + 1);
	buf_char(out, '\n');
}

static void put_findings_of_line(const struct crontab *t, size_t line, struct put_finding *p)
{
	for (size_t i = 0; i < t->n_findings; i++)
		if (t->findings[i].line == line)
			put_finding(p, &t->findings[i]);
}

static void put_entry(const struct crontab_report *r, const struct crontab_source *s, const struct crontab_entry *e,
	struct buf *out)
{
	struct put_finding p = { .out = out, .line = e->line };

	buf_printf(out, "line %zu: ", e->line);
	text_escape(out, e->schedule, strlen(e->schedule));
	buf_char(out, '\n');
	put_indented("command", out);
	put_cut(e->command, out);
	buf_char(out, '\n');
	if (e->user) {
		put_indented("user", out);
		text_escape(out, e->user, strlen(e->user));
		buf_char(out, '\n');
	}
	if (e->input) {
		put_indented("input", out);
		put_cut(e->input, out);
		buf_char(out, '\n');
	}
	put_when(r, e, &p);
	put_mail(s, e, out);
	put_findings_of_line(s->table, e->line, &p);
	crontab_check_program(s->table, e, on_check, &p);
	crontab_check_environment(s->table, e, on_check, &p);
}

static void put_setting(const struct crontab_source *s, const struct crontab_setting *v, struct buf *out)
{
	struct put_finding p = { .out = out, .line = v->line };

	buf_printf(out, "line %zu: sets ", v->line);
	text_escape(out, v->name, strlen(v->name));
	buf_str(out, " to '");
	put_cut(v->value, out);
	buf_str(out, "' for the entries below\n");
	put_findings_of_line(s->table, v->line, &p);
}

static void put_refused(const struct crontab_source *s, size_t line, struct buf *out)
{
	struct put_finding p = { .out = out, .line = line };

	buf_printf(out, "line %zu: refused\n", line);
	put_findings_of_line(s->table, line, &p);
}

void crontab_report_lines(const struct crontab_report *r, const struct crontab_source *s, struct buf *out)
{
	const struct crontab *t = s->table;
	size_t e = 0, v = 0;

	for (size_t line = 1; line <= t->n_lines; line++) {
		size_t before = e + v;

		for (; v < t->n_settings && t->settings[v].line == line; v++)
			put_setting(s, &t->settings[v], out);
		for (; e < t->n_entries && t->entries[e].line == line; e++)
			put_entry(r, s, &t->entries[e], out);
		if (t->lines[line - 1] == CRONTAB_LINE_REFUSED && e + v == before)
			put_refused(s, line, out);
	}
}

void crontab_report_counts(const struct crontab_source *s, struct buf *out)
{
	static const struct {
		enum crontab_line kind;
		const char *one, *many;
	} kinds[] = {
		{ CRONTAB_LINE_ENTRY, "entry", "entries" },
		{ CRONTAB_LINE_SETTING, "setting", "settings" },
		{ CRONTAB_LINE_COMMENT, "comment", "comments" },
		{ CRONTAB_LINE_BLANK, "blank", "blank" },
		{ CRONTAB_LINE_REFUSED, "refused", "refused" },
	};
	const struct crontab *t = s->table;
	const char *comma = ": ";

	buf_printf(out, "%zu %s", t->n_lines, t->n_lines == 1 ? "line" : "lines");
	for (size_t i = 0; i < ELEMENTS(kinds); i++) {
		size_t n = t->count[kinds[i].kind];

		if (n == 0)
			continue;
		buf_printf(out, "%s%zu %s", comma, n, n == 1 ? kinds[i].one : kinds[i].many);
		comma = ", ";
	}
}

size_t crontab_report_findings(const struct crontab_report *r, const struct crontab_source *s, struct buf *out)
{
	struct put_finding p = { .out = out, .label = s->label };
	const struct crontab *t = s->table;

	for (size_t i = 0; i < t->n_findings; i++)
		put_finding(&p, &t->findings[i]);
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct crontab_entry *e = &t->entries[i];
		AUTO(schedule) *schedule = NULL;
		const struct zone *z;

		p.line = e->line;
		if (!e->never && open_schedule(r, e, &z, &schedule, NULL))
			schedule_lint(schedule, on_schedule_finding, &p);
		crontab_check_program(t, e, on_check, &p);
		crontab_check_environment(t, e, on_check, &p);
	}
	return p.n;
}
