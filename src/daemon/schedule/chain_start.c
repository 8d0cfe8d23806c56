/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the run of a parent to the job that runs after it. */
#include "daemon/schedule/chain_start.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/decide/judge.h"
#include "core/job/job.h"
#include "core/job/policy.h"
#include "core/start/start_plan.h"
#include "daemon/schedule/active_run.h"
#include "store/ops/run/chains.h"
#include "store/ops/run/runs.h"
#include "wire/params_json.h"
#include "wire/spec_json.h"
#include <ctype.h>
#include <string.h>

#define VAR_PREFIX "JOBSCHED_PARENT_"

/* PREFIX_NAME=value, with the name in upper case; a value of several lines is left out. */
static void pair_line(struct buf *out, const char *prefix, const char *pair)
{
	size_t name = strcspn(pair, "=");

	if (strchr(pair, '\n'))
		return;
	buf_str(out, prefix);
	for (size_t i = 0; i < name; i++)
		buf_char(out, (char)toupper((unsigned char)pair[i]));
	buf_printf(out, "%s\n", pair + name);
}

static void number_line(struct buf *out, const char *name, int64_t value)
{
	buf_str(out, name);
	buf_json_int(out, value);
	buf_char(out, '\n');
}

static void text_line(struct buf *out, const char *name, const char *value)
{
	buf_str(out, name);
	buf_str(out, value);
	buf_char(out, '\n');
}

/* Called for every end of a run, so it does not use printf(). */
char *chain_start_parent(const struct active_run *a, const struct judge_verdict *v)
{
	const struct run *r = a->run;
	AUTO_DONE(buf) out = {};
	char slot[RFC3339_MAX];

	if (v->state == RUN_QUEUED)
		return NULL;
	number_line(&out, "JOB=", r->job);
	number_line(&out, "RUN=", r->id);
	text_line(&out, "SLOT=", rfc3339_format(r->slot, slot));
	text_line(&out, "STATE=", run_state_name(v->state));
	number_line(&out, "ATTEMPT=", a->end.number);
	if (r->job_name)
		text_line(&out, "NAME=", r->job_name);
	if (a->end.exit_code >= 0)
		number_line(&out, "EXIT_CODE=", a->end.exit_code);
	for (size_t i = 0; i < a->results.n; i++)
		pair_line(&out, "RESULT_", a->results.v[i]);
	for (size_t i = 0; i < a->params.n; i++)
		pair_line(&out, "PARAM_", a->params.v[i]);
	return buf_steal(&out);
}

bool chain_start_child(const struct op_ended *parent, const char *text, usec_t now, struct chain_start *ret)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	ret->params = parent->parent ? params_json_of_parent(parent->parent) : NULL;
	job_spec_init(&spec);
	if (!spec_json_from_text(text, &spec, &e))
		return true; /* the dispatcher reports the error */
	if (now < spec.from || (spec.until && now > spec.until))
		return false;
	policy_start_of(&spec, &ret->policy);
	ret->due_at = now + io_random_upto(spec.jitter);
	return true;
}

void chain_start_vars(const char *params, struct start_plan *plan)
{
	AUTO_TEXT lines = params_json_parent(params);

	for (char *line = lines, *next; line && *line; line = next) {
		AUTO_TEXT var = NULL;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		var = xprintf(VAR_PREFIX "%s", line);
		if (plan->vars.n < START_PLAN_VARS_MAX && start_plan_var_valid(var))
			strv_take(&plan->vars, STEAL(var));
	}
}
