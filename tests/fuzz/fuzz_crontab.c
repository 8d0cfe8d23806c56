/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes crontabs in all modes: every line is accounted for, every entry has a schedule that this
 * program accepts, and its slots match cron's rule.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/crontab/line_identity.h"
#include "core/job/job.h"
#include "core/time/civil.h"
#include "core/time/schedule.h"

#include <stdlib.h>
#include <string.h>

#define FROM INT64_C(1774000000000000)
#define ENTRIES 8 /* of each table; more would only repeat them */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool matches(const struct crontab_time *t, int64_t at)
{
	int of_day;
	int64_t day = civil_split(at, &of_day);
	struct civil c = civil_from_days(day);
	bool dom = t->dom >> c.day & 1, dow = t->dow >> civil_weekday(day) & 1;

	return of_day % 60 == 0 && (t->minute >> (of_day / 60 % 60) & 1) && (t->hour >> (of_day / 3600) & 1) &&
	       (t->month >> c.month & 1) && (t->dom_star || t->dow_star ? dom && dow : dom || dow);
}

static void check_slots(const struct crontab_entry *e)
{
	AUTO(schedule) *s = NULL;
	AUTO_DONE(buf) text = {};
	usec_t at = FROM;

	crontab_schedule(e, &text);
	require(schedule_parse(text.data, &(struct schedule_context){ .anchor = FROM, .accepted = true }, &s, NULL));
	require(e->never == (strcmp(text.data, "manual") == 0));
	if (e->reboot)
		return;
	for (int i = 0; i < 3 && schedule_next(s, at, &at); i++)
		require(matches(&e->time, at / USEC_SEC));
	require(e->never || at > FROM);
}

static void check_job(const struct crontab *t, const struct crontab_entry *e)
{
	AUTO_DONE(line_identities) seen = {};
	unsigned char identity[SHA256_LEN];
	AUTO_TEXT name = NULL;
	AUTO_DONE(job_spec) spec;

	crontab_job_identity(&seen, e, "table", "ann", identity);
	name = line_name(e->command, identity);
	job_spec_init(&spec);
	crontab_job(t, e, &spec);
	crontab_job_complete(t, e, "UTC", &spec);
	crontab_job_mail(t, e, "ann", &spec.notify);
	require(job_name_check(name, NULL));
	require(job_spec_check(&spec, NULL));
	require(spec.schedule.n == 1 && (spec.script || spec.command.n == 3));
}

static void check_entry(const struct crontab *t, const struct crontab_entry *e)
{
	AUTO_DONE(strv) env = {};

	require(e->line >= 1 && e->line <= t->n_lines && e->schedule && e->command && e->text);
	require(t->system == (e->user != NULL) && e->settings <= t->n_settings);
	require(t->mode == CRONTAB_CRONIE || strlen(e->text) <= CRONTAB_COMMAND_MAX);
	crontab_env(t, e, &env);
	for (size_t i = 0; i < env.n; i++)
		require(strchr(env.v[i], '=') != NULL);
	check_slots(e);
	check_job(t, e);
}

static void check_table(const struct crontab *t)
{
	size_t lines = 0, errors = 0;

	for (int i = 0; i < CRONTAB_LINE_MAX; i++)
		lines += t->count[i];
	require(lines == t->n_lines);
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct crontab_finding *f = &t->findings[i];

		require(f->line >= 1 && *f->code && *f->text && text_utf8_valid(f->text, strlen(f->text)));
		require(i == 0 || f->line >= t->findings[i - 1].line);
		require((f->level == CRONTAB_ERROR) == (f->cron_text != NULL));
		errors += f->level == CRONTAB_ERROR;
	}
	require(t->accepted ? errors == 0 || t->mode == CRONTAB_CRONIE : errors > 0);
	for (size_t i = 0; i < t->n_entries && i < ENTRIES; i++)
		check_entry(t, &t->entries[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65536)
		return 0;
	for (int mode = 0; mode < CRONTAB_MODE_MAX; mode++)
		for (int system = 0; system < 2; system++) {
			const struct crontab_options o = { .mode = (enum crontab_mode)mode, .system = system, .seed = "seed" };
			AUTO(crontab) *t = NULL;

			crontab_parse((const char *)data, size, &o, &t);
			check_table(t);
		}
	return 0;
}
