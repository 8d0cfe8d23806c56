/* SPDX-License-Identifier: Apache-2.0 */
/* Queues spans, sends them in batches, and repeats a batch that was not accepted. */
#include "daemon/trace/spans.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/trace.h"
#include "daemon/loop/net_client.h"
#include "daemon/metrics/metrics.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define BATCH_MAX 512             /* spans of one request */
#define TRIES 6                   /* of one batch, over about a minute */
#define RETRY_FIRST USEC_SEC      /* doubles with every try */
#define TIMEOUT (10 * USEC_SEC)   /* of one request */
#define STATUS_OK 1               /* of OTLP */
#define STATUS_ERROR 2
#define KIND_INTERNAL 1
#define KIND_CONSUMER 5           /* work that another party has submitted */

struct spans {
	struct spans_options o;
	char *url;             /* owned */
	struct strv waiting;   /* each is JSON */
	char *batch;           /* owned: the request under way or to be repeated; NULL: none */
	size_t batch_n;        /* its spans */
	struct net_id id;
	bool sent;             /* a result is expected */
	int64_t tries;
	sd_event_source *timer;
	struct log_repeat failed;
};

/* ---- spans as JSON ---- */

static json_t *attribute(const char *key, json_t *value /* moved */)
{
	return json_pack("{s:s, s:o}", "key", key, "value", value);
}

static void add_text(json_t *list, const char *key, const char *text)
{
	if (text && text[0])
		json_array_append_new(list, attribute(key, json_pack("{s:s}", "stringValue", text)));
}

/* 64-bit numbers are strings in the JSON of protocol buffers. */
static void add_number(json_t *list, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	json_array_append_new(list, attribute(key, json_pack("{s:s}", "intValue", text)));
}

static json_t *nanoseconds(usec_t t)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64 "000", t);
	return json_string(text);
}

static json_t *run_attributes(const struct run *r)
{
	json_t *list = json_array();

	add_number(list, "jobsched.job", r->job);
	add_text(list, "jobsched.job.name", r->job_name);
	add_text(list, "jobsched.owner", r->owner);
	add_number(list, "jobsched.run", r->id);
	add_text(list, "jobsched.kind", run_kind_name(r->kind));
	add_text(list, "jobsched.queue", r->queue);
	return list;
}

struct span {
	const struct trace *trace;
	const char *name, *id, *parent; /* parent "": none */
	int kind;
	usec_t from, to;
	bool failed;
	const char *why;
	json_t *attributes;             /* moved */
};

static void queue_span(struct spans *s, const struct span *p)
{
	json_auto_t *o = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:{s:i}}", "traceId", p->trace->id, "spanId", p->id, "name",
		p->name, "kind", p->kind, "startTimeUnixNano", nanoseconds(p->from), "endTimeUnixNano",
		nanoseconds(p->to < p->from ? p->from : p->to), "attributes", p->attributes, "status", "code",
		p->failed ? STATUS_ERROR : STATUS_OK);
	char *text;

	if (!o || s->waiting.n >= s->o.queue) {
		metrics_add(s->o.metrics, METRIC_SPANS, METRIC_SPAN_DROPPED, 0, 1);
		return;
	}
	if (p->parent[0])
		json_object_set_new(o, "parentSpanId", json_string(p->parent));
	if (p->failed && p->why && p->why[0])
		json_object_set_new(json_object_get(o, "status"), "message", json_string(p->why));
	if (p->trace->link_id[0] && strcmp(p->id, p->trace->run) == 0)
		json_object_set_new(o, "links", json_pack("[{s:s, s:s}]", "traceId", p->trace->link_id, "spanId", p->trace->link_span));
	text = json_dumps(o, JSON_COMPACT);
	if (text)
		strv_take(&s->waiting, text);
}

void spans_add_attempt(struct spans *s, const struct run *r, const struct trace *t, const char *span, const struct attempt *a)
{
	json_t *list = run_attributes(r);

	add_number(list, "jobsched.attempt", a->number);
	add_text(list, "jobsched.outcome", attempt_outcome_name(a->outcome));
	add_text(list, "jobsched.node", s->o.node_name);
	if (a->exit_code >= 0)
		add_number(list, "process.exit.code", a->exit_code);
	if (a->term_signal > 0)
		add_number(list, "jobsched.signal", a->term_signal);
	if (a->pid > 0)
		add_number(list, "process.pid", a->pid);
	queue_span(s, &(struct span){.trace = t, .name = "attempt", .id = span, .parent = t->run, .kind = KIND_INTERNAL,
		.from = a->started_at ? a->started_at : a->ended_at, .to = a->ended_at,
		.failed = a->outcome != ATTEMPT_SUCCEEDED, .why = a->error ? a->error : attempt_outcome_name(a->outcome),
		.attributes = list});
}

void spans_add_run(struct spans *s, const struct run *r, const struct trace *t, enum run_state state, const char *reason,
	const struct attempt *last)
{
	AUTO_TEXT name = xprintf("run %s", r->job_name ? r->job_name : "job");
	json_t *list = run_attributes(r);

	add_text(list, "jobsched.state", run_state_name(state));
	add_number(list, "jobsched.attempts", last->number);
	queue_span(s, &(struct span){.trace = t, .name = name, .id = t->run, .parent = t->parent, .kind = KIND_CONSUMER,
		.from = r->slot ? r->slot : last->started_at, .to = last->ended_at, .failed = state != RUN_SUCCEEDED,
		.why = reason && reason[0] ? reason : run_state_name(state), .attributes = list});
}

size_t spans_waiting(const struct spans *s)
{
	return s ? s->waiting.n + (s->batch ? s->batch_n : 0) : 0;
}

/* ---- sending ---- */

static char *resource_json(const struct spans *s)
{
	json_auto_t *o = json_object();
	json_t *list = json_array();

	add_text(list, "service.name", "jobsched");
	add_text(list, "service.version", PACKAGE_VERSION);
	add_text(list, "service.instance.id", s->o.node_name);
	json_object_set_new(o, "attributes", list);
	return json_dumps(o, JSON_COMPACT);
}

static void batch_make(struct spans *s)
{
	size_t n = s->waiting.n < BATCH_MAX ? s->waiting.n : BATCH_MAX;
	AUTO_TEXT resource = resource_json(s);
	struct buf out = {};

	buf_printf(&out, "{\"resourceSpans\":[{\"resource\":%s,\"scopeSpans\":[{\"scope\":{\"name\":\"jobsched\",\"version\":\"%s\"},"
		"\"spans\":[", resource, PACKAGE_VERSION);
	for (size_t i = 0; i < n; i++) {
		buf_printf(&out, "%s%s", i ? "," : "", s->waiting.v[i]);
		free(s->waiting.v[i]);
	}
	buf_str(&out, "]}]}]}");
	s->waiting.n -= n;
	memmove(s->waiting.v, s->waiting.v + n, s->waiting.n * sizeof(*s->waiting.v));
	s->batch = buf_steal(&out);
	s->batch_n = n;
	s->tries = 0;
}

static void timer_set(struct spans *s, usec_t delay)
{
	sd_event_source_set_time_relative(s->timer, (uint64_t)delay);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void batch_end(struct spans *s, enum metric_span result)
{
	metrics_add(s->o.metrics, METRIC_SPANS, result, 0, (int64_t)s->batch_n);
	free(STEAL(s->batch));
	s->batch_n = 0;
	timer_set(s, s->waiting.n >= BATCH_MAX ? 1 : s->o.interval);
}

static void batch_failed(struct spans *s, const char *why)
{
	metrics_add(s->o.metrics, METRIC_OTLP_REQUESTS, METRIC_FAILED, 0, 1);
	log_line(log_repeat(&s->failed, clock_boot(s->o.clock)), NULL, "could not export spans to '%s', try %" PRId64 " of %d: %s",
		s->url, s->tries, TRIES, why);
	if (s->tries >= TRIES)
		batch_end(s, METRIC_SPAN_DROPPED);
	else
		timer_set(s, RETRY_FIRST << (s->tries - 1));
}

static void batch_send(struct spans *s)
{
	const char *const texts[] = {s->url, "Content-Type: application/json"};
	struct err e = {};
	int payload;

	s->tries++;
	payload = net_payload_memfd(texts, ELEMENTS(texts), s->batch, strlen(s->batch), &e);
	if (payload < 0) {
		batch_failed(s, e.msg);
		return;
	}
	/* the time makes it unique, also after a restart */
	s->id = (struct net_id){NET_KIND_OTLP, clock_now(s->o.clock), s->tries};
	s->sent = true;
	net_client_request(s->o.net, &(struct net_request){.id = s->id, .timeout = TIMEOUT}, payload);
}

static void on_net_result(const struct net_result *r, int fd, void *arg)
{
	struct spans *s = arg;

	if (fd >= 0)
		close(fd);
	if (r->outcome != NET_BUSY)
		net_client_ack(s->o.net, &r->id);
	if (!s->sent || !net_frame_id_equal(&r->id, &s->id))
		return; /* of an earlier daemon */
	s->sent = false;
	if (r->outcome == NET_DONE) {
		metrics_add(s->o.metrics, METRIC_OTLP_REQUESTS, METRIC_OK, 0, 1);
		s->failed = (struct log_repeat){};
		batch_end(s, METRIC_SPAN_EXPORTED);
	} else {
		batch_failed(s, r->error);
	}
}

static int on_spans_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct spans *s = arg;

	(void)source;
	(void)usec;
	if (s->sent)
		return 0;
	if (!s->batch && s->waiting.n > 0)
		batch_make(s);
	if (s->batch)
		batch_send(s);
	else
		timer_set(s, s->o.interval);
	return 0;
}

/* ---- start and end ---- */

static bool url_complete(const char *url, char **ret, struct err *e)
{
	const char *host = text_starts(url, "http://") ? url + 7 : text_starts(url, "https://") ? url + 8 : NULL;
	const char *path = host ? strchr(host, '/') : NULL;

	if (!host || !host[0] || host[0] == '/' || strlen(url) > 1000 || strpbrk(url, " \t\r\n\"<>"))
		return err_set(e, ERR_INVALID, "'otlp' is '%.100s', not a URL such as http://localhost:4318", url);
	*ret = !path ? xprintf("%s/v1/traces", url) : !path[1] ? xprintf("%sv1/traces", url) : xstrdup(url);
	return true;
}

bool spans_new(struct sd_event *ev, const struct spans_options *o, struct spans **ret, struct err *e)
{
	AUTO(spans) *s = xcalloc(1, sizeof(*s));
	int r;

	s->o = *o;
	if (!url_complete(o->url, &s->url, e))
		return false;
	r = sd_event_add_time_relative(ev, &s->timer, CLOCK_MONOTONIC, (uint64_t)o->interval, 1, on_spans_timer, s);
	if (r < 0)
		return err_errno(e, -r, "could not set up the export of spans");
	net_client_kind(o->net, NET_KIND_OTLP, &(struct net_client_kind){.result = on_net_result, .arg = s});
	*ret = STEAL(s);
	return true;
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->timer);
	strv_done(&s->waiting);
	free(s->batch);
	free(s->url);
	free(s);
}
