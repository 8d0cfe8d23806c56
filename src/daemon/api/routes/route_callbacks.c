/* SPDX-License-Identifier: Apache-2.0 */
/* Route by which the target of an asynchronous call reports its state. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/loop/run_watch.h"
#include "daemon/schedule/callbacks.h"
#include "daemon/schedule/dispatcher.h"
#include "wire/json_read.h"
#include <string.h>

static const char *const states[] = {
	[DISPATCHER_CALL_RUNNING] = "running",
	[DISPATCHER_CALL_SUCCEEDED] = "succeeded",
	[DISPATCHER_CALL_FAILED] = "failed",
	[DISPATCHER_CALL_RETRY] = "retry",
};

/* A response that waits until the end is recorded. */
struct callback_wait {
	struct ticket *ticket;
	struct run_watch *watch;
};

static void on_end_stored(int64_t job, int64_t run, enum run_state state, void *arg)
{
	struct callback_wait *w = arg;
	struct request *r;

	(void)job;
	(void)run;
	if (state == RUN_CLAIMED || state == RUN_RUNNING)
		return; /* the record of the start */
	r = request_ticket_redeem(w->ticket);
	if (r)
		request_answer_json(r, 200, json_pack("{s:s}", "status", "recorded"));
	run_watch_free(w->watch);
	free(w);
}

static bool state_find(const char *text, enum dispatcher_call_state *ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(states); i++)
		if (strcmp(states[i], text) == 0) {
			*ret = (enum dispatcher_call_state)i;
			return true;
		}
	return err_field(e, "state", "'%.40s' is not running, succeeded, failed or retry", text);
}

static bool report_read(struct request *r, const json_t *body, struct dispatcher_call_report *ret, struct err *e)
{
	const char *state = NULL, *error = NULL, *output = NULL;
	json_t *results = NULL;
	json_error_t why;

	if (json_unpack_ex((json_t *)body, &why, JSON_STRICT, "{s:s, s?s, s?s, s?o}", "state", &state, "error", &error,
		    "output", &output, "results", &results) < 0)
		return err_set(e, ERR_INVALID, "the body needs 'state' and can have 'error', 'output' and 'results': %s", why.text);
	if (results && !json_is_object(results))
		return err_field(e, "results", "'results' must be an object");
	*ret = (struct dispatcher_call_report){.error = error, .output = output, .results = results};
	if (!state_find(state, &ret->state, e))
		return false;
	return (r->context->callbacks && callbacks_parse(r->context->callbacks, r->params[0], &ret->run, &ret->fence)) ||
	       err_set(e, ERR_NOT_FOUND, "there is no such callback");
}

void route_callback(struct request *r)
{
	struct err e = {};
	json_auto_t *body = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, &e);
	struct dispatcher_call_report report;
	struct callback_wait *w;
	int64_t job;

	if (!body || !report_read(r, body, &report, &e) ||
		!dispatcher_call_find(r->context->dispatcher, report.run, report.fence, &job, &e)) {
		request_answer_err(r, &e);
		return;
	}
	if (report.state == DISPATCHER_CALL_RUNNING) {
		request_answer_json(r, 200, json_pack("{s:s}", "status", "running"));
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->ticket = request_ticket(r, true);
	w->watch = run_watch_new(r->context->run_watch_set, job, report.run, on_end_stored, w);
	dispatcher_call_report(r->context->dispatcher, &report);
}
