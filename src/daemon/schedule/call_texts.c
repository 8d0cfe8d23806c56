/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a call, and its other texts. */
#include "daemon/schedule/call_texts.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/target/kafka.h"
#include "core/target/lambda.h"
#include "core/job/params.h"
#include "core/job/run.h"
#include <inttypes.h>
#include <string.h>

#define TIMEOUT_DEFAULT (5 * USEC_MIN)
#define TIMEOUT_ASYNC USEC_DAY

usec_t call_texts_timeout(usec_t timeout, bool asynchronous)
{
	return timeout ? timeout : asynchronous ? TIMEOUT_ASYNC : TIMEOUT_DEFAULT;
}

void call_texts_done(struct call_texts *t)
{
	strv_done(&t->texts);
	blob_done(&t->body);
	*t = (struct call_texts){};
}

/* Does not use printf(), which would take most of the CPU time of building a call. */
static void put_joined(struct call_texts *t, const char *before, const char *between, const char *after)
{
	size_t a = strlen(before), b = strlen(between), c = strlen(after);
	char *text = xcalloc(1, a + b + c + 1);

	memcpy(text, before, a);
	memcpy(text + a, between, b);
	memcpy(text + a + b, after, c);
	strv_take(&t->texts, text);
}

static void put(struct call_texts *t, const char *key, const char *value)
{
	if (value)
		put_joined(t, key, "=", value);
}

static void put_number(struct call_texts *t, const char *key, int64_t value)
{
	char digits[TEXT_INT];

	if (value)
		put(t, key, text_from_int(digits, value));
}

/* ---- headers that the scheduler sets ---- */

static void put_trace(struct call_texts *t, const struct strv *trace)
{
	static const struct {
		const char *variable, *header;
	} names[] = {{"TRACEPARENT=", "header=traceparent"}, {"TRACESTATE=", "header=tracestate"}, {"BAGGAGE=", "header=baggage"}};

	for (size_t i = 0; trace && i < trace->n; i++)
		for (size_t k = 0; k < ELEMENTS(names); k++)
			if (text_starts(trace->v[i], names[k].variable))
				put_joined(t, names[k].header, ": ", trace->v[i] + strlen(names[k].variable));
}

static void put_own_headers(struct call_texts *t, const struct call_source *from, const char *key)
{
	const struct run *r = from->run;
	char slot[RFC3339_MAX], digits[24];

	put_joined(t, "header=Idempotency-Key: ", key, "");
	if (from->spec->http)
		put_joined(t, "header=webhook-id: ", key, "");
	if (r->job_name)
		strv_take(&t->texts, xprintf("header=Jobsched-Job: %s %" PRId64, r->job_name, r->job));
	else
		put_joined(t, "header=Jobsched-Job: ", text_from_int(digits, r->job), "");
	put_joined(t, "header=Jobsched-Run: ", text_from_int(digits, r->id), "");
	put_joined(t, "header=Jobsched-Attempt: ", text_from_int(digits, r->attempt), "");
	put_joined(t, "header=Jobsched-Slot: ", rfc3339_format(r->slot, slot), "");
	if (from->callback)
		put_joined(t, "header=Jobsched-Callback: ", from->callback, "");
	put_number(t, "async", from->callback != NULL);
	put_trace(t, from->trace);
}

/* ---- texts of the job, with its parameters ---- */

static bool put_url(struct call_texts *t, const struct job_spec *s, const struct strv *params,
	struct err *e)
{
	const struct strv url = {.v = (char *[]){s->url}, .n = 1};
	AUTO_DONE(strv) expanded = {};

	params_expand(&url, params, &expanded);
	if (!call_url_check(expanded.v[0], e))
		return err_wrap(e, "with the parameters of the run");
	put(t, "url", expanded.v[0]);
	return true;
}

static bool put_headers(struct call_texts *t, const struct job_spec *s, const struct strv *params,
	struct err *e)
{
	AUTO_DONE(strv) expanded = {};

	params_expand(&s->headers, params, &expanded);
	for (size_t i = 0; i < expanded.n; i++) {
		if (!call_header_check(expanded.v[i], e))
			return err_wrap(e, "with the parameters of the run");
		put(t, "header", expanded.v[i]);
	}
	return true;
}

static void set_body(struct call_texts *t, const struct blob *from, const struct strv *params)
{
	const struct strv body = {.v = (char *[]){from->data}, .n = 1};
	AUTO_DONE(strv) expanded = {};

	if (!from->data)
		return;
	if (params->n == 0 || strlen(from->data) != from->len) { /* or it is not a text */
		t->body = (struct blob){xstrndup(from->data, from->len), from->len};
		return;
	}
	params_expand(&body, params, &expanded);
	t->body.data = STEAL(expanded.v[0]);
	t->body.len = strlen(t->body.data);
}

static void put_names(struct call_texts *t, const struct job_spec *s)
{
	for (size_t i = 0; i < s->secrets.n; i++)
		strv_take(&t->texts, xprintf("secret=%.*s", (int)strcspn(s->secrets.v[i], "="), s->secrets.v[i]));
	for (size_t i = 0; i < s->sign.n; i++)
		put(t, "sign", s->sign.v[i]);
	put(t, "tls-ca", s->tls_ca);
	put(t, "tls-cert", s->tls_cert);
	put(t, "tls-key", s->tls_key);
}

/* ---- the kinds ---- */

static bool put_http(struct call_texts *t, const struct call_source *from, const struct strv *params, struct err *e)
{
	const struct job_spec *s = from->spec;

	put(t, "method", s->http);
	put(t, "expect-status", s->expect_status);
	put(t, "expect-body", s->expect_body);
	put_number(t, "expect-size", s->expect_size);
	put(t, "proxy", from->proxy);
	put_number(t, "suspend-on-410", s->on_410 == ON_410_SUSPEND);
	set_body(t, &s->body, params);
	return put_url(t, s, params, e);
}

static bool put_kafka(struct call_texts *t, const struct call_source *from, const struct strv *params, struct err *e)
{
	const struct job_spec *s = from->spec;
	const struct strv key = {.v = (char *[]){s->message_key}, .n = 1};
	AUTO_DONE(strv) expanded = {};
	size_t brokers;
	const char *topic = kafka_target_topic(s->kafka, &brokers);

	(void)e;
	strv_take(&t->texts, xprintf("brokers=%.*s", (int)brokers, s->kafka));
	put(t, "topic", topic);
	if (s->message_key) {
		params_expand(&key, params, &expanded);
		put(t, "message-key", expanded.v[0]);
	}
	put_number(t, "tls", s->kafka_tls || s->tls_ca || s->tls_cert);
	put(t, "sasl", s->sasl);
	put(t, "sasl-user", s->sasl_user);
	put(t, "sasl-password", s->sasl_password);
	set_body(t, &s->message, params);
	return true;
}

static bool put_lambda(struct call_texts *t, const struct call_source *from, const struct strv *params, struct err *e)
{
	const struct job_spec *s = from->spec;

	if (!lambda_functions_allow(from->functions, from->run->owner, s->lambda))
		return err_set(e, ERR_DENIED, "the function '%.100s' is not listed in lambda-functions in jobschedd.conf(5)", s->lambda);
	put(t, "lambda", s->lambda);
	put(t, "region", s->region);
	put(t, "endpoint", from->endpoint);
	put(t, "proxy", from->proxy);
	put_number(t, "event", s->lambda_event);
	set_body(t, &s->body, params);
	return true;
}

static bool (*const put_kind[CALL_KIND_MAX])(struct call_texts *t, const struct call_source *from, const struct strv *params,
	struct err *e) = {[CALL_HTTP] = put_http, [CALL_KAFKA] = put_kafka, [CALL_LAMBDA] = put_lambda};

bool call_texts_build(struct call_texts *ret, const struct call_source *from, struct err *e)
{
	const struct job_spec *s = from->spec;
	AUTO_TEXT key = xprintf("%s-%" PRId64, from->store_id, from->run->id);
	AUTO_DONE(call_texts) t = {};
	AUTO_DONE(strv) params = {};

	params_merge(&s->params, from->params, &params);
	put(&t, "key", key);
	if (!put_kind[call_kind_of(s)](&t, from, &params, e))
		return false;
	put_own_headers(&t, from, key);
	if (!put_headers(&t, s, &params, e))
		return false;
	put_names(&t, s);
	put(&t, "allow", from->allow);
	put_number(&t, "start-by", from->start_by);
	put_number(&t, "ends-with-lease", from->ends_with_lease);
	*ret = t;
	t = (struct call_texts){};
	return true;
}
