/* SPDX-License-Identifier: Apache-2.0 */
/* W3C trace context: checks, and the ids of the spans of a run. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TRACE_ID_LEN 32   /* hexadecimal digits */
#define SPAN_ID_LEN 16
#define TRACE_PARENT_LEN 55
#define TRACE_STATE_MAX 512
#define TRACE_BAGGAGE_MAX 2048

/* 00-TRACE-SPAN-FLAGS with lower-case digits; ids of zeros are invalid, as is the version ff. */
bool trace_parent_valid(const char *text);
/* Printable ASCII, for TRACESTATE and BAGGAGE; empty is invalid. */
bool trace_text_valid(const char *text, int64_t max);
/* Whether the spawner accepts a variable: TRACEPARENT, TRACESTATE or BAGGAGE with a valid value. */
bool trace_var_valid(const char *var);

/* The trace of one run. The ids depend on store, run and attempt only, so all nodes compute the same ones. */
struct trace {
	char id[TRACE_ID_LEN + 1];
	char run[SPAN_ID_LEN + 1];         /* empty: the trace is not sampled */
	char parent[SPAN_ID_LEN + 1];      /* of the run's span; empty: none */
	char link_id[TRACE_ID_LEN + 1];    /* the submission of a recurring job; empty: none */
	char link_span[SPAN_ID_LEN + 1];
	bool sampled;
};
/*
 * 'traceparent' is that of the trigger or of the submission; NULL: none. A run continues the trace of
 * its trigger, and of the submission of a job that runs once ('continues'). The runs of a recurring
 * job have traces of their own, which refer to the submission.
 */
void trace_of_run(struct trace *ret, const char *store_id, int64_t run, const char *traceparent, bool continues,
	bool sampled /* without a traceparent */);
void trace_attempt_span(const char *store_id, int64_t run, int64_t fence,
	char ret[SPAN_ID_LEN + 1]);
