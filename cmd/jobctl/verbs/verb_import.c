/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl import crontab'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/crontab/line_identity.h"
#include "core/job/job.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/crontab/crontab_json.h"
#include "jobctl/crontab/crontab_report.h"
#include "jobctl/crontab/crontab_source.h"
#include "jobctl/ctl.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <string.h>

/* An import in progress. */
struct import {
	struct ctl *c;
	const char *zone;
	bool paused;
	size_t added, replaced, kept, idle, failed;
	int code;              /* exit code of the first failure */
};

/* Writes the buffer to standard error line by line. */
static void say_lines(struct buf *b)
{
	for (char *line = b->data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		ctl_say("%s", line);
	}
	buf_clear(b);
}

/* cron runs nothing of this table. */
static void say_refused(const struct crontab_source *s)
{
	const struct crontab_finding *f = crontab_first_error(s->table);
	bool strict = s->table->mode == CRONTAB_STRICT;

	ctl_say("%s: %s because of line %zu, column %zu: %s (%s)", s->label,
		strict ? "strict mode refuses the whole table" : "cron refuses the whole table and runs nothing of it",
		f->line, f->column, f->text, f->cron_text);
}

/* The first word of every command is an account: probably a system table. */
static bool looks_like_system(const struct crontab_source *s, const struct crontab_sources *all)
{
	const struct crontab *t = s->table;

	for (size_t i = 0; i < t->n_entries; i++) {
		AUTO_TEXT word = xstrndup(t->entries[i].command, strcspn(t->entries[i].command, " \t"));
		const char *rest = t->entries[i].command + strlen(word);

		if (!*word || !rest[strspn(rest, " \t")] || !crontab_sources_account(all, word))
			return false;
	}
	return t->n_entries > 0 && !s->system;
}

static void say_table(const struct crontab_source *s, const struct crontab_sources *all)
{
	const struct crontab *t = s->table;

	if (!t->accepted)
		say_refused(s);
	if (t->too_long && t->accepted)
		ctl_say("%s: crontab(1) refuses tables of more than %d lines; the cron daemon runs this one", s->label,
			CRONTAB_LINES_MAX);
	if (looks_like_system(s, all))
		ctl_say("%s: the first word of each command is a user; for a system table give --table system", s->label);
}

/* ---- jobs ---- */

/* The last component of a path, or the user: what distinguishes this table from others. */
static void set_tag(const struct crontab_source *s, struct job_spec *spec)
{
	size_t len = strlen(s->label);
	const char *label = s->label + (len > 240 ? len - 240 : 0);

	strv_take(&spec->tags, xprintf("crontab=%s", label));
}

static json_t *entry_submission(const struct import *m, const struct crontab_source *s, const struct crontab_entry *e,
	const unsigned char identity[SHA256_LEN])
{
	AUTO_DONE(job_spec) spec;
	json_t *o;

	job_spec_init(&spec);
	crontab_job(s->table, e, &spec);
	crontab_job_complete(s->table, e, m->zone, &spec);
	crontab_job_mail(s->table, e, crontab_source_user(s, e), &spec.notify);
	spec.name = line_name(e->command, identity);
	set_tag(s, &spec);
	o = spec_json_write(&spec);
	json_object_set_new(o, "if_exists", json_string("replace"));
	return o;
}

static void say_job(struct import *m, const struct crontab_source *s, const struct crontab_entry *e, const json_t *job)
{
	bool replaced = json_is_true(json_object_get(job, "replaced"));
	bool kept = json_is_true(json_object_get(job, "existed")) && !replaced;

	m->replaced += replaced;
	m->kept += kept;
	m->added += !replaced && !kept;
	ctl_say("%s:%zu: %s job %" PRId64 " '%s'", s->label, e->line,
		replaced ? "replaced" : kept ? "unchanged" : "added", member_int(job, "id"), member_text(job, "name"));
}

static void import_entry(struct import *m, const struct crontab_source *s, const struct crontab_entry *e,
	struct line_identities *seen)
{
	const char *as = e->user ? e->user : s->user;
	json_auto_t *submission = NULL, *job = NULL;
	unsigned char identity[SHA256_LEN];
	AUTO_DONE(buf) path = {};
	struct err err = {};

	crontab_job_identity(seen, e, s->system ? s->label : NULL, e->user, identity);
	if (e->never || !crontab_job_runs(e)) {
		m->idle++;
		ctl_say("%s:%zu: not added: %s", s->label, e->line, e->never ? "it never runs" : "there is no command");
		return;
	}
	submission = entry_submission(m, s, e, identity);
	buf_str(&path, "/v1/jobs");
	if (as)
		api_query_add(&path, "as", as);
	if (m->paused)
		api_query_add(&path, "paused", "true");
	if (api_call(m->c, "POST", path.data, submission, &job, &err)) {
		say_job(m, s, e, job);
		return;
	}
	m->failed++;
	err_wrap(&err, "%s:%zu", s->label, e->line);
	err.kind = err.kind ? err.kind : ERR_INTERNAL;
	if (m->code == 0)
		m->code = ctl_fail(&err);
	else
		ctl_fail(&err);
}

static void say_summary(const struct import *m, const struct crontab_sources *all)
{
	for (size_t i = 0; i < all->n; i++) {
		AUTO_DONE(buf) counts = {};

		crontab_report_counts(&all->v[i], &counts);
		ctl_say("%s: %s", all->v[i].label, counts.data);
	}
	ctl_say("%zu added, %zu replaced, %zu unchanged, %zu not added, %zu failed", m->added, m->replaced, m->kept, m->idle,
		m->failed);
	if (m->added + m->replaced > 0 && !m->paused)
		ctl_say("cron still runs these entries too; remove them from cron, for a user table with 'crontab -r'");
}

static int import_tables(struct import *m, const struct crontab_report *r, const struct crontab_sources *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->v[i].table->accepted) {
			ctl_say("jobctl: nothing was added; correct the table, or use --mode cronie, which skips only bad lines");
			return EXIT_USAGE;
		}
	for (size_t i = 0; i < all->n; i++) {
		const struct crontab_source *s = &all->v[i];
		AUTO_DONE(line_identities) seen = {};
		AUTO_DONE(buf) findings = {};

		crontab_report_findings(r, s, &findings);
		say_lines(&findings);
		for (size_t k = 0; k < s->table->n_entries; k++) {
			import_entry(m, s, &s->table->entries[k], &seen);
			if (m->code == EXIT_UNREACHABLE)
				return m->code;
		}
	}
	say_summary(m, all);
	return m->code;
}

/* ---- reports ---- */

static int show_json(const struct crontab_sources *all)
{
	AUTO_DONE(buf) out = {};
	int code = EXIT_SUCCESS;

	for (size_t i = 0; i < all->n; i++) {
		crontab_json_write(all->v[i].table, &out);
		if (!all->v[i].table->accepted)
			code = EXIT_USAGE;
	}
	if (out.len)
		render_flush(&out);
	return code;
}

static int show_report(const struct crontab_report *r, const struct crontab_sources *all)
{
	int code = EXIT_SUCCESS;

	for (size_t i = 0; i < all->n; i++) {
		const struct crontab_source *s = &all->v[i];
		AUTO_DONE(buf) out = {};

		buf_str(&out, i ? "\n" : "");
		text_escape(&out, s->label, strlen(s->label));
		buf_printf(&out, ": %s table, mode %s%s\n", s->system ? "system" : "user", crontab_mode_names[all->mode],
			s->table->accepted ? "" : s->table->mode == CRONTAB_STRICT ? ", REFUSED" : ", REFUSED: cron runs nothing of it");
		crontab_report_lines(r, s, &out);
		crontab_report_counts(s, &out);
		buf_char(&out, '\n');
		render_flush(&out);
		if (!s->table->accepted)
			code = EXIT_USAGE;
	}
	ctl_say("nothing was added (--dry-run)");
	return code;
}

static bool wants_json(const struct ctl *c, const struct args *a, bool *ret, struct err *e)
{
	const char *format = args_last(a, "format");

	*ret = render_wants_json(c) || (format && strcmp(format, "json") == 0);
	if (format && !*ret && strcmp(format, "text") != 0)
		return err_set(e, ERR_INVALID, "--format: '%s' is not text or json", format);
	return true;
}

int verb_import_crontab(struct ctl *c, const struct args *a)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_TEXT zone = local_zone();
	AUTO_DONE(crontab_sources) all = {};
	const struct crontab_report report = { .zones = zones, .zone = zone, .now = c->now, .relative = c->terminal };
	struct import m = { .c = c, .zone = zone, .paused = args_has(a, "paused") };
	struct err e = {};
	bool json;

	c->yes = args_has(a, "yes");
	if (!wants_json(c, a, &json, &e) || !crontab_sources_read(&all, a, &e))
		return ctl_fail(&e);
	if (json)
		return show_json(&all);
	for (size_t i = 0; i < all.n; i++)
		say_table(&all.v[i], &all);
	return args_has(a, "dry-run") ? show_report(&report, &all) : import_tables(&m, &report, &all);
}
