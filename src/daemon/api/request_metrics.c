/* SPDX-License-Identifier: Apache-2.0 */
/* Counts requests by route and status; reads their trace context. */
#include "base/clock.h"
#include "base/text.h"
#include "core/job/trace.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server.h"
#include "daemon/metrics/metrics.h"

static enum metric_submission submission_result(const struct request *r)
{
	const struct query_value *dry = request_query(r, "dry_run");

	switch (r->status) {
	case MHD_HTTP_UNAUTHORIZED:
	case MHD_HTTP_FORBIDDEN:
		return METRIC_DENIED;
	case MHD_HTTP_CONFLICT:
		return METRIC_CONFLICT;
	case MHD_HTTP_TOO_MANY_REQUESTS:
	case MHD_HTTP_INSUFFICIENT_STORAGE:
		return METRIC_LIMITED;
	default:
		break;
	}
	if (r->status < 300)
		return dry && dry->number ? METRIC_CHECKED : METRIC_ACCEPTED;
	return r->status < 500 ? METRIC_INVALID : METRIC_UNAVAILABLE;
}

static char *valid_copy(const char *text /* NULL: none */, int64_t max)
{
	return text && trace_text_valid(text, max) ? xstrdup(text) : NULL;
}

/* As the specification demands, an invalid header is ignored. */
void request_trace(const struct request *r, char **ret_parent, char **ret_state, char **ret_baggage)
{
	const char *parent = request_header(r, "traceparent");

	*ret_parent = parent && trace_parent_valid(parent) ? xstrdup(parent) : NULL;
	*ret_state = *ret_parent ? valid_copy(request_header(r, "tracestate"), TRACE_STATE_MAX) : NULL;
	*ret_baggage = *ret_parent ? valid_copy(request_header(r, "baggage"), TRACE_BAGGAGE_MAX) : NULL;
}

void request_count(const struct request *r)
{
	struct metrics *m = r->context->metrics;
	/* the label after the last route is for requests without one */
	size_t route = r->route ? (size_t)(r->route - routes) : routes_count;

	metrics_add(m, METRIC_API_REQUESTS, route, (size_t)(r->status / 100 - 2), 1);
	metrics_observe(m, METRIC_API_SECONDS, route, clock_boot(r->context->clock) - r->begun);
	if (r->route && r->route->what == EVENT_JOB_ADD)
		metrics_add(m, METRIC_SUBMISSIONS, submission_result(r), 0, 1);
}
