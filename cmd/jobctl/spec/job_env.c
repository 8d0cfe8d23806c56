/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the environment in the daemon's order; masks secrets. */
#include "jobctl/spec/job_env.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/start/start_plan.h"
#include "jobctl/member.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

bool job_env_secret(const char *pair)
{
	static const char *const patterns[] = {
		"*_TOKEN", "TOKEN", "*PASSWORD", "*_PASS", "*_KEY", "*SECRET*"};
	AUTO_TEXT name = xstrndup(pair, strcspn(pair, "="));

	for (size_t i = 0; i < ELEMENTS(patterns); i++)
		if (fnmatch(patterns[i], name, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

char *job_env_masked(const char *pair, bool reveal)
{
	if (reveal || !job_env_secret(pair))
		return xstrdup(pair);
	return xprintf("%.*s=***", (int)strcspn(pair, "="), pair);
}

/* Replaces an earlier variable of the same name. */
static void env_set(struct strv *env, char *pair)
{
	size_t name = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], pair, name) == 0) {
			free(env->v[i]);
			env->v[i] = pair;
			return;
		}
	strv_take(env, pair);
}

/* The variables that the spawner sets for the user of the job. */
static void env_set_user(struct strv *env, const json_t *job)
{
	const struct passwd *pw = getpwuid((uid_t)member_int(job, "uid"));
	const char *owner = member_text(job, "owner");
	const char *name = pw ? pw->pw_name : owner ? owner : "";

	env_set(env, xprintf("HOME=%s", pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/"));
	env_set(env, xprintf("LOGNAME=%s", name));
	env_set(env, xprintf("USER=%s", name));
	env_set(env, xprintf("SHELL=%s", pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh"));
	env_set(env, xprintf("PATH=%s", start_plan_path(member_int(job, "uid"))));
	env_set(env, xstrdup("LANG=<LANG of the daemon, else C.UTF-8>"));
}

static void env_set_number(struct strv *env, const char *name, int64_t n, const char *unknown)
{
	env_set(env, n ? xprintf("%s=%" PRId64, name, n) : xprintf("%s=%s", name, unknown));
}

static void env_set_jobsched(struct strv *env, const json_t *job, const json_t *run,
	const struct job_spec *s)
{
	const char *slot = member_text(run, "slot");

	if (s->tz)
		env_set(env, xprintf("TZ=%s", s->tz));
	env_set_number(env, "JOBSCHED_JOB", member_int(job, "id"), "");
	env_set(env, xprintf("JOBSCHED_NAME=%s", s->name ? s->name : ""));
	env_set_number(env, "JOBSCHED_RUN", member_int(run, "id"), "<number of the run>");
	env_set(env, xprintf("JOBSCHED_SLOT=%s", slot ? slot : "<time of the slot, RFC 3339>"));
	env_set_number(env, "JOBSCHED_SLOT_MS", member_time(run, "slot") / USEC_MSEC,
		"<time of the slot, milliseconds since 1970>");
	env_set_number(env, "JOBSCHED_ATTEMPT", member_int(run, "attempt"),
		"<number of the attempt>");
	env_set(env, xstrdup("JOBSCHED_KEY=<equal for all attempts of a slot>"));
	env_set(env, xstrdup("JOBSCHED_FENCE=<grows with every start of the run>"));
	env_set(env, xstrdup("JOBSCHED_NODE=<name of the node>"));
	env_set(env, xstrdup("TRACEPARENT=<trace context of the run>"));
	for (size_t i = 0; i < s->params.n; i++)
		env_set(env, xprintf("JOBSCHED_PARAM_%s", s->params.v[i]));
	for (size_t i = 0; i < s->secrets.n; i++)
		env_set(env, xprintf("JOBSCHED_SECRET_%.*s=/dev/fd/%zu",
				     (int)strcspn(s->secrets.v[i], "="), s->secrets.v[i], 3 + i));
	if (s->artifact)
		env_set(env, xstrdup("JOBSCHED_ARTIFACT=<directory of the artifact>"));
	if (s->results)
		env_set(env, xstrdup("JOBSCHED_RESULT=<file for results>"));
	if (s->checkpoint)
		env_set(env, xstrdup("JOBSCHED_STATE=<directory that the attempts share>"));
	for (size_t i = 0; i < s->env.n; i++)
		env_set(env, xstrdup(s->env.v[i]));
	env_set(env, xstrdup("JOBSCHED_SPAWNER=<id of the spawner>"));
}

/* A job of a crontab has the variables of cron. */
static void env_set_cron(struct strv *env, const json_t *job, const struct job_spec *s)
{
	const struct passwd *pw = getpwuid((uid_t)member_int(job, "uid"));
	const char *owner = member_text(job, "owner");

	env_set(env, xprintf("HOME=%s", pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/"));
	env_set(env, xstrdup("SHELL=/bin/sh"));
	env_set(env, xstrdup("PATH=/usr/bin:/bin"));
	for (size_t i = 0; i < s->env.n; i++)
		env_set(env, xstrdup(s->env.v[i]));
	env_set(env, xprintf("LOGNAME=%s", pw ? pw->pw_name : owner ? owner : ""));
}

void job_env_list(const json_t *job, const json_t *run, const struct job_spec *s, struct strv *ret)
{
	if (s->origin) {
		env_set_cron(ret, job, s);
		return;
	}
	env_set_user(ret, job);
	env_set_jobsched(ret, job, run, s);
}

bool job_env_known(const char *pair)
{
	const char *value = strchr(pair, '=');

	return value && !(value[1] == '<' && pair[strlen(pair) - 1] == '>');
}

void job_env_put(const json_t *job, const json_t *run, const struct job_spec *s, bool reveal,
	bool escape, struct buf *out)
{
	AUTO_DONE(strv) env = {};

	job_env_list(job, run, s, &env);
	for (size_t i = 0; i < env.n; i++) {
		AUTO_TEXT shown = NULL;

		/* JOBSCHED_KEY is an idempotency key, not a secret. */
		shown = job_env_masked(env.v[i], reveal || text_starts(env.v[i], "JOBSCHED_"));
		if (escape)
			text_escape(out, shown, strlen(shown));
		else
			buf_str(out, shown);
		buf_char(out, '\n');
	}
}
