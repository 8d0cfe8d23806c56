/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a start plan from a claimed run and its definition. */
#include "core/start/start_plan.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "core/start/exec_spec_build.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/job/trace.h"
#include <string.h>

#define VAR_PREFIX "JOBSCHED_"

void start_plan_done(struct start_plan *p)
{
	exec_spec_done(&p->spec);
	strv_done(&p->vars);
	blob_done(&p->stdin_data);
	*p = (struct start_plan){};
}

const char *start_plan_path(int64_t uid)
{
	return uid == 0 ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : "/usr/local/bin:/usr/bin:/bin";
}

bool start_plan_var_valid(const char *var)
{
	size_t prefix = strlen(VAR_PREFIX), name, len = strlen(var);

	if (trace_var_valid(var))
		return true;
	if (!text_starts(var, VAR_PREFIX) || text_starts(var, VAR_PREFIX "PARAM_") || len > START_PLAN_VAR_MAX)
		return false;
	name = strspn(var + prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	if (name == 0 || var[prefix + name] != '=' || !text_utf8_valid(var, len))
		return false;
	for (const char *c = var; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

static void var_begin(struct buf *b, const char *name)
{
	buf_str(b, VAR_PREFIX);
	buf_str(b, name);
	buf_char(b, '=');
}

static void var_text(struct start_plan *p, const char *name, const char *value)
{
	struct buf b = {};

	var_begin(&b, name);
	buf_str(&b, value);
	strv_take(&p->vars, buf_steal(&b));
}

static void var_number(struct start_plan *p, const char *name, int64_t value)
{
	struct buf b = {};

	var_begin(&b, name);
	buf_json_int(&b, value);
	strv_take(&p->vars, buf_steal(&b));
}

/* All attempts of a slot have the same run number and so the same key. */
static void var_key(struct start_plan *p, const struct start_plan_source *from)
{
	struct buf b = {};

	var_begin(&b, "KEY");
	buf_str(&b, from->store_id);
	buf_char(&b, '-');
	buf_json_int(&b, from->run->id);
	strv_take(&p->vars, buf_steal(&b));
}

#define PREVIOUS_ERROR_MAX 512

/* How the last attempt ended. The error is one line of text. */
static void previous_vars(struct start_plan *p, const struct attempt *a)
{
	AUTO_TEXT error = NULL;

	if (!a)
		return;
	var_text(p, "PREVIOUS_OUTCOME", attempt_outcome_name(a->outcome));
	if (a->exit_code >= 0)
		var_number(p, "PREVIOUS_EXIT", a->exit_code);
	if (a->term_signal > 0)
		var_number(p, "PREVIOUS_SIGNAL", a->term_signal);
	if (a->node_name)
		var_text(p, "PREVIOUS_NODE", a->node_name);
	if (!a->error || !text_utf8_valid(a->error, strlen(a->error)) || strlen(a->error) > PREVIOUS_ERROR_MAX)
		return;
	error = xstrdup(a->error);
	for (char *c = error; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	var_text(p, "PREVIOUS_ERROR", error);
}

static void build_vars(struct start_plan *p, const struct start_plan_source *from)
{
	const struct run *r = from->run;
	char slot[RFC3339_MAX];

	var_number(p, "JOB", r->job);
	if (!p->spec.job.data) /* the spawner takes an approved name from the execution specification */
		var_text(p, "NAME", r->job_name ? r->job_name : "");
	var_text(p, "SLOT", rfc3339_format(r->slot, slot));
	var_number(p, "SLOT_MS", r->slot / USEC_MSEC);
	var_key(p, from);
	var_text(p, "NODE", from->node);
	previous_vars(p, r->previous);
	for (size_t i = 0; from->trace && i < from->trace->n; i++)
		strv_add(&p->vars, from->trace->v[i]);
}

void start_plan_build(struct start_plan *p, const struct start_plan_source *from)
{
	const struct job_spec *s = from->spec;

	*p = (struct start_plan){
		.run = from->run->id,
		.fence = from->run->fence,
		.attempt = from->run->attempt,
		.timeout = s->timeout,
		.grace = s->grace,
		.output_limit = s->output_limit,
	};
	exec_spec_build(&p->spec, &(struct exec_spec_source){.spec = s, .uid = owner_uid(from->run->uid),
		.owner = from->run->owner, .params = from->params});
	build_vars(p, from);
	if (s->stdin_data.data)
		p->stdin_data = (struct blob){
			xstrndup(s->stdin_data.data, s->stdin_data.len), s->stdin_data.len};
}
