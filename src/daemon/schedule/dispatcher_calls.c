/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the calls of runs through jobsched-net, and records their ends. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/call_texts.h"
#include "daemon/schedule/callbacks.h"
#include "daemon/schedule/dispatcher_private.h"
#include "wire/results_json.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BUSY_DELAY (5 * USEC_SEC)  /* before a call is tried again if jobsched-net is not running */
#define BUSY_SHOWN (30 * USEC_SEC)
#define START_PATIENCE (30 * USEC_SEC) /* a request that jobsched-net reads later is not sent */

static struct net_id id_of(const struct active_run *a)
{
	return (struct net_id){NET_KIND_CALL, a->run->id, a->run->fence};
}

void dispatcher_call_note(struct active_run *a, const struct job_spec *spec)
{
	a->call = call_kind_of(spec) != CALL_NONE;
	if (!a->call || a->call_timeout)
		return;
	for (size_t i = 0; i < spec->secrets.n; i++)
		strv_add(&a->secrets, strchr(spec->secrets.v[i], '=') + 1 + strlen("file:"));
	a->asynchronous = spec->http_async;
	a->reports_results = spec->results;
	a->call_timeout = call_texts_timeout(spec->timeout, spec->http_async);
}

/* ---- start ---- */

bool dispatcher_call_start(struct dispatcher *d, struct active_run *a, const struct dispatcher_call *c, struct err *e)
{
	AUTO_DONE(call_texts) t = {};
	AUTO_DONE(strv) trace = {};
	AUTO_TEXT callback = NULL;
	struct call_source from = {.run = a->run,
		.spec = c->spec,
		.params = c->params,
		.trace = &trace,
		.store_id = store_thread_store_id(d->o.store),
		.allow = d->o.http_allow,
		.proxy = d->o.http_proxy,
		.functions = d->o.lambda_functions,
		.endpoint = d->o.lambda_endpoint,
		.start_by = clock_boot(d->o.clock) + START_PATIENCE,
		.ends_with_lease = !a->outlives_lease};
	AUTO_DONE(buf) payload = {};

	dispatcher_call_note(a, c->spec);
	dispatcher_trace_vars(d, a, c->spec, c->trigger, &trace);
	if (a->asynchronous && !d->o.callbacks)
		return err_set(e, ERR_INVALID, "asynchronous calls need http-callback-url in jobschedd.conf(5)");
	if (a->asynchronous)
		from.callback = callback = callbacks_url(d->o.callbacks, a->run->id, a->run->fence);
	if (!call_texts_build(&t, &from, e))
		return false;
	if (!net_payload_encode((const char *const *)t.texts.v, t.texts.n, t.body.data, t.body.len, &payload, e) ||
		!failpoint_ok(FP_GRANT_SEND, e))
		return false;
	active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_FETCHING);
	net_client_request_bytes(d->o.net,
		&(struct net_request){.id = id_of(a),
			.uid = owner_uid(a->run->uid),
			.limit = a->end.number,
			.timeout = call_texts_timeout(c->timeout, a->asynchronous)},
		&payload);
	return true;
}

static void on_call_sent(const struct net_id *id, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(&d->active_runs, id->id, id->attempt);

	d->call_refused_at = 0;
	if (a && a->stage == ACTIVE_RUN_FETCHING)
		dispatcher_run_started(d, a, 0, clock_now(d->o.clock));
}

/* jobsched-net is not running, and the request was not sent. */
static void on_call_refused(const struct net_result *r, int fd, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(&d->active_runs, r->id.id, r->id.attempt);

	auto_fd_close(&fd);
	if (!a || a->stage != ACTIVE_RUN_FETCHING)
		return;
	log_line(log_repeat(&d->call_busy, clock_boot(d->o.clock)),
		&(struct log_about){.job = a->run->job, .run = a->run->id, .trace = a->trace.id},
		"run %" PRId64 " waits, trying again in %d s: %s", a->run->id, (int)(BUSY_DELAY / USEC_SEC), r->error);
	net_frame_text(d->call_refused, sizeof(d->call_refused), r->error);
	d->call_refused_at = clock_boot(d->o.clock);
	dispatcher_give_back(d, a, BUSY_DELAY);
}

const char *dispatcher_calls_refused(const struct dispatcher *d)
{
	return d->call_refused_at && clock_boot(d->o.clock) - d->call_refused_at < BUSY_SHOWN ? d->call_refused : NULL;
}

/* ---- secrets ---- */

static void on_call_secret(const struct net_id *id, int64_t index, int socket, void *arg)
{
	struct dispatcher *d = arg;
	const struct active_run *a = active_runs_get(&d->active_runs, id->id, id->attempt);
	/* if it is closed unused, jobsched-net reports that the secret could not be read */
	AUTO_FD to = socket;
	struct err e = {};

	if (!a || !a->call || (size_t)index >= a->secrets.n || !spawner_link_id(d->o.spawner))
		return;
	if (!spawner_link_open_file(d->o.spawner,
		    &(struct spawn_file){.run = id->id,
			    .fence = id->attempt,
			    .uid = owner_uid(a->run->uid),
			    .owner = a->run->owner,
			    .path = a->secrets.v[index],
			    .socket = to},
		    &e))
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = id->id, .trace = a->trace.id},
			"%s", e.msg);
}

/* ---- end ---- */

static const enum attempt_outcome outcomes[NET_CALL_OUTCOME_MAX] = {
	[NET_CALL_OK] = ATTEMPT_SUCCEEDED,
	[NET_CALL_RETRY] = ATTEMPT_FAILED,
	[NET_CALL_FAILED] = ATTEMPT_FAILED,
	[NET_CALL_GONE] = ATTEMPT_FAILED,
	[NET_CALL_TIMED_OUT] = ATTEMPT_TIMED_OUT,
	[NET_CALL_LOST] = ATTEMPT_LOST,
	[NET_CALL_NOT_STARTED] = ATTEMPT_NOT_STARTED,
	[NET_CALL_LATE] = ATTEMPT_LOST,
};

/* The results of a call that has succeeded. The start of a response that is longer than what is kept is not known. */
static void results_read(struct active_run *a, const struct net_call_result *r, const char *response, size_t len)
{
	if (!a->reports_results || r->outcome != NET_CALL_OK)
		return;
	strv_done(&a->results);
	if (r->bytes > r->kept)
		a->end.error = xprintf("its response has more than %d bytes and gives no results", NET_KEPT_MAX);
	else if (len > 0)
		results_json_from_response(response, len, &a->results, &a->end.error);
}

static void response_read(struct active_run *a, const struct net_call_result *r, const char *response, size_t len)
{
	AUTO_DONE(buf) text = {};

	a->response = NULL;
	if (len == 0)
		return;
	buf_base64(&text, response, len);
	a->response = buf_steal(&text);
	results_read(a, r, response, len);
}

static void call_end_copy(const struct dispatcher *d, struct active_run *a, const struct net_call_result *r,
	const char *response, size_t len)
{
	struct attempt *end = &a->end;
	usec_t age = clock_boot(d->o.clock) - r->ended_at;

	response_read(a, r, response, len);
	end->outcome = outcomes[r->outcome];
	end->exit_code = r->outcome == NET_CALL_OK ? 0 : -1;
	end->ended_at = clock_now(d->o.clock) - (age > 0 ? age : 0);
	if (!end->started_at || end->started_at > end->ended_at)
		end->started_at = a->run->started_at ? a->run->started_at : end->ended_at;
	end->output_bytes = r->bytes;
	end->output_dropped = r->bytes - (a->response ? r->kept : 0);
	end->io_read = end->io_written = -1;
	if (r->outcome != NET_CALL_OK)
		end->error = xstrdup(r->error);
	a->failure = (struct call_failure){.status = r->status,
		.final = r->outcome == NET_CALL_FAILED || r->outcome == NET_CALL_GONE,
		.gone = r->outcome == NET_CALL_GONE,
		.retry_after = r->retry_after};
	a->stopped = r->outcome == NET_CALL_LATE; /* nothing was sent, so nothing was lost */
}

static void on_call_result(const struct net_call_result *r, const char *response, size_t len, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(&d->active_runs, r->id.id, r->id.attempt);

	if (a && a->stage == ACTIVE_RUN_ENDED)
		return;
	if (a && r->outcome == NET_CALL_LATE && !a->start_recorded && !a->run->cancel_asked) {
		net_client_ack(d->o.net, &r->id);
		dispatcher_give_back(d, a, 0);
		return;
	}
	if (a) {
		call_end_copy(d, a, r, response, len);
		dispatcher_end_run(d, a);
		dispatcher_count_end(d);
	} else { /* the store decides by run and fence, as for the end of a command */
		struct run *run = xcalloc(1, sizeof(*run));

		*run = (struct run){.id = r->id.id, .fence = r->id.attempt, .attempt = r->number};
		a = active_run_new(run, ACTIVE_RUN_ENDED);
		a->call = true;
		call_end_copy(d, a, r, response, len);
		dispatcher_end_unknown_run(d, a);
	}
	d->o.on_change(d->o.arg);
}

static void call_lost(struct dispatcher *d, struct active_run *a, const char *why)
{
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = a->run->id, .trace = a->trace.id},
		"run %" PRId64 " was lost: %s", a->run->id, why);
	a->end.outcome = a->run->cancel_asked ? ATTEMPT_CANCELLED : ATTEMPT_LOST;
	a->end.ended_at = clock_now(d->o.clock);
	a->end.error = xstrdup(why);
	dispatcher_end_run(d, a);
}

static void on_call_lost(const struct net_id *id, const char *why, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(&d->active_runs, id->id, id->attempt);

	if (a && a->stage != ACTIVE_RUN_ENDED)
		call_lost(d, a, why);
	d->o.on_change(d->o.arg);
}

/* ---- reports of the target ---- */

bool dispatcher_call_find(const struct dispatcher *d, int64_t run, int64_t fence, int64_t *ret_job, struct err *e)
{
	const struct active_run *a = active_runs_get(&d->active_runs, run, fence);

	if (!a || !a->asynchronous || a->stage == ACTIVE_RUN_ENDED)
		return err_set(e, ERR_NOT_FOUND, "the call has ended, was cancelled, or runs on another node");
	*ret_job = a->run->job;
	return true;
}

void dispatcher_call_report(struct dispatcher *d, const struct dispatcher_call_report *r)
{
	struct active_run *a = active_runs_get(&d->active_runs, r->run, r->fence);
	bool ok = r->state == DISPATCHER_CALL_SUCCEEDED;
	size_t len = r->output ? strlen(r->output) : 0, kept = len < NET_KEPT_MAX ? len : NET_KEPT_MAX;
	AUTO_DONE(buf) text = {};

	dispatcher_call_cancel(d, a);
	strv_done(&a->results);
	if (ok && a->reports_results && r->results)
		results_json_take(r->results, &a->results, &a->end.error);
	a->end.outcome = ok ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED;
	a->end.exit_code = ok ? 0 : -1;
	a->end.ended_at = clock_now(d->o.clock);
	a->end.output_bytes = (int64_t)len;
	a->end.output_dropped = (int64_t)(len - kept);
	a->end.io_read = a->end.io_written = -1;
	if (!ok)
		a->end.error = xprintf("the target reported a failure%s%.400s", r->error ? ": " : "", r->error ? r->error : "");
	if (kept > 0) {
		buf_base64(&text, r->output + len - kept, kept);
		a->response = buf_steal(&text);
	}
	a->failure = (struct call_failure){.final = r->state == DISPATCHER_CALL_FAILED};
	dispatcher_end_run(d, a);
	dispatcher_count_end(d);
	d->o.on_change(d->o.arg);
}

void dispatcher_call_cancel(struct dispatcher *d, const struct active_run *a)
{
	struct net_id id = id_of(a);

	net_client_cancel(d->o.net, &id);
}

void dispatcher_call_ack(struct dispatcher *d, int64_t run, int64_t fence)
{
	if (d->o.net)
		net_client_ack(d->o.net, &(struct net_id){NET_KIND_CALL, run, fence});
}

/* ---- calls of an earlier daemon ---- */

static void on_call_running(const struct net_id *id, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(&d->active_runs, id->id, id->attempt);

	if (a && a->stage == ACTIVE_RUN_ADOPTED) {
		net_client_adopt(d->o.net, id, a->call_timeout);
		dispatcher_run_started(d, a, 0, a->run->started_at ? a->run->started_at : clock_now(d->o.clock));
		if (a->run->cancel_asked)
			dispatcher_cancel(d, id->id, id->attempt);
	} else if (!a && (int64_t)(intptr_t)map_get(&d->disowned, id->id) != id->attempt) {
		log_warning("ending run %" PRId64 ": in the store it does not belong to this node", id->id);
		net_client_cancel(d->o.net, id);
	}
}

void dispatcher_net_synced(struct dispatcher *d)
{
	struct active_run *a;

	/*
	 * A run that was claimed but not recorded as started may have been sent to a process of jobsched-net that
	 * is gone, so it is lost, too.
	 */
	for (size_t i = 0; d->was_ready && (a = map_next(&d->active_runs.by_run, &i));)
		if (a->call && a->stage == ACTIVE_RUN_ADOPTED)
			call_lost(d, a, "the jobsched-net process that held it is gone");
}

void dispatcher_calls_watch(struct dispatcher *d)
{
	if (d->o.net)
		net_client_kind(d->o.net, NET_KIND_CALL,
			&(struct net_client_kind){.result = on_call_refused,
				.call_result = on_call_result,
				.sent = on_call_sent,
				.lost = on_call_lost,
				.has = on_call_running,
				.need_secret = on_call_secret,
				.arg = d});
}
