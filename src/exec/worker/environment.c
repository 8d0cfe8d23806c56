/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the environment of a worker. */
#include "exec/worker/environment.h"
#include "core/start/start_plan.h"
#include "exec/child/user.h"
#include "exec/proto/frame.h"
#include "exec/child/child.h"
#include <inttypes.h>
#include <string.h>

#define OWN_MAX 24 /* variables that do not come from the session or the payload */

static void variable_set(struct environment *v, char *var)
{
	size_t name = strcspn(var, "=") + 1;

	for (size_t i = 0; i < v->n; i++)
		if (strncmp(v->envp[i], var, name) == 0) {
			v->envp[i] = var;
			return;
		}
	v->envp[v->n++] = var;
}

static void variable_set_owned(struct environment *v, char *var /* moved */)
{
	strv_take(&v->owned, var);
	variable_set(v, var);
}

static void user_variables_set(struct environment *v, const struct environment_source *from)
{
	const struct user *u = from->user;

	variable_set_owned(v, xprintf("HOME=%s", u->home));
	variable_set_owned(v, xprintf("LOGNAME=%s", u->name));
	variable_set_owned(v, xprintf("USER=%s", u->name));
	variable_set_owned(v, xprintf("SHELL=%s", u->shell));
	variable_set_owned(v, xprintf("PATH=%s", start_plan_path(u->uid)));
	variable_set_owned(
		v, xprintf("LANG=%s", from->lang && from->lang[0] ? from->lang : "C.UTF-8"));
}

/* The channels to the spawner. NOTIFY_SOCKET and WATCHDOG_USEC are those of sd_notify(3). */
static void channel_variables_set(struct environment *v, const struct environment_source *from)
{
	if (from->start->part != 0)
		return;
	if (from->notify_fd >= 0)
		variable_set_owned(v, xprintf("JOBSCHED_NOTIFY_FD=%d", from->notify_fd));
	if (from->notify_socket)
		variable_set_owned(v, xprintf("NOTIFY_SOCKET=%s", from->notify_socket));
	if (from->results_fd >= 0)
		variable_set_owned(v, xprintf("JOBSCHED_RESULT=/dev/fd/%d", from->results_fd));
	if (from->state_fd >= 0)
		variable_set_owned(v, xprintf("JOBSCHED_STATE=/dev/fd/%d", from->state_fd));
	if (from->gate_fd >= 0)
		variable_set_owned(v, xprintf("JOBSCHED_GATE=/dev/fd/%d", from->gate_fd));
	if (from->payload->spec.heartbeat)
		variable_set_owned(v, xprintf("WATCHDOG_USEC=%" PRId64, from->payload->spec.heartbeat));
}

/* The variables that cron sets. */
static void cron_variables_set(struct environment *v, const struct user *u)
{
	variable_set_owned(v, xprintf("HOME=%s", u->home));
	variable_set_owned(v, xstrdup("SHELL=/bin/sh"));
	variable_set_owned(v, xstrdup("PATH=/usr/bin:/bin"));
}

/* The command of a crontab: the session, cron's own variables, those of the table, and LOGNAME. */
static void cron_environment_build(struct environment *v, const struct environment_source *from)
{
	const struct strv *env = &from->payload->spec.env;

	for (size_t i = 0; from->session && i < from->session->n; i++)
		variable_set(v, from->session->v[i]);
	cron_variables_set(v, from->user);
	for (size_t i = 0; i < env->n; i++)
		variable_set(v, env->v[i]);
	variable_set_owned(v, xprintf("LOGNAME=%s", from->user->name));
}

void environment_build(struct environment *v, const struct environment_source *from)
{
	const struct payload *p = from->payload;
	const struct exec_spec *o = &p->spec;
	const struct frame_start *s = from->start;

	*v = (struct environment){
		.envp = xcalloc(OWN_MAX + (from->session ? from->session->n : 0) + p->vars_n +
				o->secrets.n + o->params.n + o->env.n + 1,
			sizeof(*v->envp))};
	if (o->cron && s->part == 0) {
		cron_environment_build(v, from);
		return;
	}
	user_variables_set(v, from);
	for (size_t i = 0; from->session && i < from->session->n; i++)
		variable_set(v, from->session->v[i]);
	if (o->tz && s->part == 0)
		variable_set_owned(v, xprintf("TZ=%s", o->tz));
	for (size_t i = 0; i < p->vars_n; i++)
		variable_set(v, p->vars[i]);
	/* an approved job has its approved name, not the one that the daemon sends */
	if (o->job.data)
		variable_set_owned(v, xprintf("JOBSCHED_NAME=%s", o->name ? o->name : ""));
	variable_set_owned(v, xprintf("JOBSCHED_ATTEMPT=%" PRId64, s->attempt));
	for (size_t i = 0; s->part == 0 && i < o->params.n; i++)
		variable_set_owned(v, xprintf("JOBSCHED_PARAM_%s", o->params.v[i]));
	for (size_t i = 0; s->part == 0 && i < o->secrets.n; i++)
		variable_set_owned(v,
			xprintf("JOBSCHED_SECRET_%.*s=/dev/fd/%zu",
				(int)strcspn(o->secrets.v[i], "="), o->secrets.v[i], 3 + i));
	if (from->artifact)
		variable_set_owned(v, xprintf("JOBSCHED_ARTIFACT=%s", from->artifact));
	channel_variables_set(v, from);
	for (size_t i = 0; s->part == 0 && i < o->env.n; i++)
		variable_set(v, o->env.v[i]);
	variable_set_owned(v, xprintf(CHILD_VAR_RUN "=%" PRId64, s->run));
	variable_set_owned(v, xprintf(CHILD_VAR_FENCE "=%" PRId64, s->fence));
	variable_set_owned(v, xprintf(CHILD_VAR_SPAWNER "=%s", from->spawner));
}

void environment_done(struct environment *v)
{
	strv_done(&v->owned);
	free(v->envp);
	v->envp = NULL;
}

const char *environment_get(const struct environment *v, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < v->n; i++)
		if (strncmp(v->envp[i], name, len) == 0 && v->envp[i][len] == '=')
			return v->envp[i] + len + 1;
	return NULL;
}
