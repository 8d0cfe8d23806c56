/* SPDX-License-Identifier: Apache-2.0 */
/* From a claimed run and its job's spec to the plan the spawner gets. */
#include "core/plan.h"
#include "core/job.h"
#include "core/params.h"
#include "core/run.h"
#include <inttypes.h>
#include <string.h>

void plan_done(struct plan *p)
{
	strv_done(&p->argv);
	strv_done(&p->env);
	free(p->cwd);
	blob_done(&p->stdin_data);
	*p = (struct plan){};
}

static void env_text(struct plan *p, const char *name, const char *value)
{
	strv_take(&p->env, xprintf("%s=%s", name, value));
}

static void env_number(struct plan *p, const char *name, int64_t value)
{
	strv_take(&p->env, xprintf("%s=%" PRId64, name, value));
}

static void build_env(struct plan *p, const struct plan_source *from, const struct strv *params)
{
	const struct run *r = from->run;
	char slot[RFC3339_MAX];

	if (from->spec->tz)
		env_text(p, "TZ", from->spec->tz);
	env_number(p, "JOBSCHED_JOB", r->job);
	env_text(p, "JOBSCHED_NAME", r->job_name ? r->job_name : "");
	env_number(p, "JOBSCHED_RUN", r->id);
	env_text(p, "JOBSCHED_SLOT", format_rfc3339(r->slot, slot));
	env_number(p, "JOBSCHED_SLOT_MS", r->slot / USEC_MSEC);
	env_number(p, "JOBSCHED_ATTEMPT", r->attempt);
	/* the run's number is one per slot, so all attempts of a slot share the key */
	strv_take(&p->env, xprintf("JOBSCHED_KEY=%s-%" PRId64, from->store_id, r->id));
	env_number(p, "JOBSCHED_FENCE", r->fence);
	env_text(p, "JOBSCHED_NODE", from->node);
	for (size_t i = 0; i < params->n; i++)
		strv_take(&p->env, xprintf("JOBSCHED_PARAM_%s", params->v[i]));
	strv_copy(&p->env, &from->spec->env);
}

void plan_build(struct plan *p, const struct plan_source *from)
{
	const struct job_spec *s = from->spec;
	AUTO_DONE(strv) params = {};

	*p = (struct plan){
		.run = from->run->id,
		.fence = from->run->fence,
		.attempt = from->run->attempt,
		.timeout = s->timeout,
		.grace = s->grace,
		.output_limit = s->output_limit,
		.umask = s->umask,
		.cwd = xstrdup(s->cwd),
	};
	params_merge(&s->params, from->params, &params);
	if (s->script) {
		strv_add(&p->argv, "/bin/sh");
		strv_add(&p->argv, "-c");
		strv_add(&p->argv, s->script);
	} else {
		params_expand(&s->command, &params, &p->argv);
	}
	build_env(p, from, &params);
	if (s->stdin_data.data)
		p->stdin_data = (struct blob){
			xstrndup(s->stdin_data.data, s->stdin_data.len), s->stdin_data.len};
}
