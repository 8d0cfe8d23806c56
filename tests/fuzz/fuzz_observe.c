/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the Accept header of a scrape and the trace context of a submission: what is accepted is well-formed. */
#include "base/auto.h"
#include "base/text.h"
#include "core/start/start_plan.h"
#include "core/job/trace.h"
#include "daemon/metrics/metrics_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT text = xstrndup((const char *)data, size);
	AUTO_TEXT shown = NULL;
	struct trace t;

	if (metrics_text_negotiate(text) == METRICS_OPENMETRICS && !strcasestr(text, "openmetrics-text"))
		abort();
	if (trace_var_valid(text) && (!start_plan_var_valid(text) || strpbrk(text, "\n\r\t") || strlen(text) > START_PLAN_VAR_MAX))
		abort();
	trace_of_run(&t, "store", 1, text, true, true);
	if (trace_parent_valid(text) != (t.parent[0] != '\0'))
		abort();
	shown = xprintf("00-%s-%s-01", t.id, t.parent[0] ? t.parent : t.run);
	if (!trace_parent_valid(shown))
		abort();
	return 0;
}
