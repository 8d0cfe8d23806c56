/* SPDX-License-Identifier: Apache-2.0 */
/* The trace context of runs: variables of the worker, spans of runs and attempts. */
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/trace.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/trace/spans.h"
#include "store/ops/op.h"
#include "store/ops/run/runs.h"
#include <string.h>

/* The value of NAME in lines NAME=VALUE; caller frees; NULL: none. */
static char *line_value(const char *lines, const char *name)
{
	size_t len = strlen(name);

	while (lines && *lines) {
		size_t end = strcspn(lines, "\n");

		if (strncmp(lines, name, len) == 0 && lines[len] == '=')
			return xstrndup(lines + len + 1, end - len - 1);
		lines += end + (lines[end] == '\n');
	}
	return NULL;
}

/* "2026-11-18T07:00:00Z", or no text, which means at once. */
static bool runs_once(const struct job_spec *spec)
{
	const char *text = spec->schedule.n == 1 ? spec->schedule.v[0] : "";

	return spec->schedule.n == 0 || strcmp(text, "now") == 0 || (strlen(text) > 10 && text[4] == '-' && text[10] == 'T');
}

void dispatcher_trace_run(const struct dispatcher *d, struct active_run *a, const struct job_spec *spec, const char *trigger)
{
	AUTO_TEXT parent = line_value(trigger, "TRACEPARENT");

	trace_of_run(&a->trace, store_thread_store_id(d->o.store), a->run->id, parent ? parent : spec->traceparent,
		parent || runs_once(spec), d->o.spans != NULL);
}

static void add_var(struct strv *ret, const char *name, const char *trigger, bool own, const char *of_job)
{
	AUTO_TEXT given = line_value(trigger, name);
	AUTO_TEXT pair = NULL;

	if (!given && (own || !of_job))
		return;
	pair = xprintf("%s=%s", name, given ? given : of_job);
	if (trace_var_valid(pair))
		strv_take(ret, STEAL(pair));
}

void dispatcher_trace_vars(const struct dispatcher *d, const struct active_run *a, const struct job_spec *spec,
	const char *trigger, struct strv *ret)
{
	AUTO_TEXT parent = line_value(trigger, "TRACEPARENT");
	char span[SPAN_ID_LEN + 1];
	struct buf context = {};

	trace_attempt_span(store_thread_store_id(d->o.store), a->run->id, a->run->fence, span);
	buf_str(&context, "TRACEPARENT=00-");
	buf_str(&context, a->trace.id);
	buf_char(&context, '-');
	buf_str(&context, span);
	buf_str(&context, a->trace.sampled ? "-01" : "-00");
	strv_take(ret, buf_steal(&context));
	/* a trigger with a trace of its own replaces all of the job's context */
	if (a->trace.parent[0])
		add_var(ret, "TRACESTATE", trigger, parent != NULL, spec->tracestate);
	add_var(ret, "BAGGAGE", trigger, parent != NULL, spec->baggage);
}

void dispatcher_trace_end(const struct dispatcher *d, const struct active_run *a, const struct op *op)
{
	const struct op_ended *o = run_ended_op(op);
	char span[SPAN_ID_LEN + 1];

	if (!op->ok || o->stale || !d->o.spans || !a->trace.id[0] || !a->trace.sampled)
		return;
	trace_attempt_span(store_thread_store_id(d->o.store), a->run->id, o->attempt.fence, span);
	spans_add_attempt(d->o.spans, a->run, &a->trace, span, &o->attempt);
	if (o->became != RUN_QUEUED)
		spans_add_run(d->o.spans, a->run, &a->trace, o->became, o->reason, &o->attempt);
}
