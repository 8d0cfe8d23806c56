/* SPDX-License-Identifier: Apache-2.0 */
/* Turns entries of a crontab into job definitions. */
#include "core/crontab/crontab_job.h"

#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/crontab/line_identity.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/policy.h"
#include <stdlib.h>
#include <string.h>

#define MAIL_CHANNELS_MAX 8 /* the field 'notify' has no more */

static void set_text(char **to, const char *value)
{
	free(*to);
	*to = xstrdup(value);
}

bool crontab_job_runs(const struct crontab_entry *e)
{
	return e->command[strspn(e->command, " \t\n\v\f\r")] != '\0';
}

static int name_compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t n = strcspn(x, "="), m = strcspn(y, "=");
	int r = strncmp(x, y, n < m ? n : m);

	return r ? r : (int)n - (int)m;
}

static void set_variable(struct strv *env, const char *pair, size_t max)
{
	for (size_t i = 0; i < env->n; i++)
		if (name_compare(&env->v[i], &pair) == 0) {
			set_text(&env->v[i], pair);
			return;
		}
	if (env->n < max)
		strv_add(env, pair);
}

void crontab_job_variables(const struct strv *from, struct job_spec *out)
{
	const struct job_field *f = job_field_find("env");

	for (size_t i = 0; i < from->n; i++)
		if (!text_starts(from->v[i], "LOGNAME=") && f->check(from->v[i], NULL))
			set_variable(&out->env, from->v[i], (size_t)f->max);
	if (out->env.n)
		qsort(out->env.v, out->env.n, sizeof(*out->env.v), name_compare);
}

void crontab_job_policies(struct job_spec *out)
{
	out->umask = 022;
	set_text(&out->sandbox, "compat");
	set_text(&out->overlap, "allow");
	out->on_lost = LOST_FAIL;
}

void crontab_job(const struct crontab *t, const struct crontab_entry *e, struct job_spec *out)
{
	const char *shell = crontab_get(t, e, "SHELL"), *home = crontab_get(t, e, "HOME");
	AUTO_DONE(buf) schedule = {};
	AUTO_DONE(strv) env = {};

	crontab_schedule(e, &schedule);
	strv_take(&out->schedule, buf_steal(&schedule));
	strv_add(&out->command, shell && *shell ? shell : CRONTAB_SHELL);
	strv_add(&out->command, "-c");
	strv_add(&out->command, e->command);
	crontab_env(t, e, &env);
	crontab_job_variables(&env, out);
	if (home && home[0] == '/')
		set_text(&out->cwd, home);
	if (e->input)
		out->stdin_data = (struct blob){ xstrdup(e->input), strlen(e->input) };
	out->jitter = e->delay_minutes * USEC_MIN;
	crontab_job_policies(out);
	set_text(&out->catchup, "none");
}

void crontab_job_complete(const struct crontab *t, const struct crontab_entry *e, const char *zone, struct job_spec *out)
{
	AUTO_DONE(strv) presets = {};

	set_text(&out->tz, e->zone ? e->zone : zone);
	if (!crontab_get(t, e, "SHELL"))
		strv_add(&presets, "SHELL=" CRONTAB_SHELL);
	if (!crontab_get(t, e, "PATH"))
		strv_add(&presets, "PATH=" CRONTAB_PATH);
	crontab_job_variables(&presets, out);
	if (strcmp(out->command.v[0], CRONTAB_SHELL) == 0 && crontab_job_runs(e) && !text_starts(e->command, "#!")) {
		set_text(&out->script, e->command);
		strv_done(&out->command);
	}
}

void crontab_job_identity(struct line_identities *l, const struct crontab_entry *e, const char *table, const char *user,
	unsigned char ret[SHA256_LEN])
{
	const char *const parts[] = { table ? table : "", user ? user : "", e->command, e->input ? e->input : "" };

	line_identity(l, parts, ELEMENTS(parts), ret);
}

/* ---- mail ---- */

static void add_addresses(const char *to, struct strv *out)
{
	while (*to && out->n < MAIL_CHANNELS_MAX) {
		size_t len = strcspn(to, ",");
		AUTO_TEXT channel = xprintf("mail:%.*s", (int)len, to);
		enum notify_channel kind;
		const char *target;

		if (policy_notify_parse(channel, &kind, &target, NULL))
			strv_add(out, channel);
		to += len + (to[len] == ',');
	}
}

enum crontab_mail crontab_job_mail_to(const char *mailto, const char *user, bool failures, struct strv *out)
{
	const char *to = mailto ? mailto : user;
	size_t before = out->n;

	if (!to || !*to)
		return CRONTAB_MAIL_NONE;
	if (!policy_output_target(to))
		return CRONTAB_MAIL_BAD;
	if (!failures) {
		strv_take(out, xprintf("output:%s", to));
		return CRONTAB_MAIL_ALL;
	}
	add_addresses(to, out);
	return out->n > before ? CRONTAB_MAIL_FAILURES : CRONTAB_MAIL_BAD;
}

enum crontab_mail crontab_job_mail(const struct crontab *t, const struct crontab_entry *e, const char *user, struct strv *out)
{
	return crontab_job_mail_to(crontab_get(t, e, "MAILTO"), user, e->mail_on_error, out);
}
