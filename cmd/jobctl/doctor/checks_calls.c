/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what jobs need that are requests: HTTP calls, Kafka messages, Lambda functions. */
#include "base/auto.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/doctor/doctor.h"
#include "jobctl/member.h"
#include <inttypes.h>
#include <string.h>

#define SEARCHED_JOBS 1000

struct calls_seen {
	bool any, lambda, async;
};

static bool note_call(const json_t *row, void *arg)
{
	struct calls_seen *seen = arg;

	seen->lambda |= member_text(row, "lambda") != NULL;
	seen->async |= member_text(row, "http") && text_equal(member_text(row, "http_async"), "yes");
	seen->any |= seen->lambda || member_text(row, "http") || member_text(row, "kafka");
	return !seen->lambda || !seen->async;
}

static bool lacks_credentials(struct doctor *d, int64_t id)
{
	AUTO_TEXT path = xprintf("/v1/runs/%" PRId64, id);
	json_auto_t *run = NULL;
	const json_t *attempt;
	size_t i;

	if (!api_call(d->c, "GET", path, NULL, &run, NULL))
		return false;
	json_array_foreach(json_object_get(run, "attempts"), i, attempt) {
		const char *error = member_text(attempt, "error");

		if (!error || !strstr(error, "no AWS credentials"))
			continue;
		doctor_find(d, DOCTOR_WARNING, "man jobsched-net", "run %" PRId64 " failed: %s", id, error);
		return true;
	}
	return false;
}

/* jobsched-net does not show its credentials. A failed attempt names what it lacks. */
static void check_lambda(struct doctor *d)
{
	AUTO_TEXT functions = doctor_config(d, "lambda-functions");
	json_auto_t *answer = NULL;
	const json_t *run;
	size_t i;

	if (d->system && !functions)
		doctor_find(d, DOCTOR_ERROR, "man jobschedd.conf",
			"jobs invoke Lambda functions, and 'lambda-functions' in jobschedd.conf allows none");
	if (!api_call(d->c, "GET", "/v1/runs?state=failed&limit=5", NULL, &answer, NULL))
		return;
	json_array_foreach(json_object_get(answer, "runs"), i, run)
		if (lacks_credentials(d, member_int(run, "id")))
			return;
}

void doctor_check_calls(struct doctor *d)
{
	struct calls_seen seen = {};
	struct pages pages = {.path = "/v1/jobs?state=active,paused", .member = "jobs", .row = note_call,
		.arg = &seen, .limit = SEARCHED_JOBS};
	const json_t *net = json_object_get(d->status, "net");
	AUTO_TEXT callback = doctor_config(d, "http-callback-url");

	api_pages(d->c, &pages, NULL);
	free(pages.next_cursor);
	if (!seen.any) {
		doctor_skip(d, "no job is a call");
		return;
	}
	if (member_text(net, "why") && !json_is_true(json_object_get(net, "up")))
		doctor_find(d, DOCTOR_WARNING, d->system ? "systemctl start jobsched-net" : "jobctl status",
			"calls wait, because jobsched-net is not connected: %s", member_text(net, "why"));
	if (seen.async && !callback)
		doctor_find(d, DOCTOR_ERROR, "man jobschedd.conf",
			"jobs with 'http_async' need 'http-callback-url' in jobschedd.conf");
	if (seen.lambda)
		check_lambda(d);
}
