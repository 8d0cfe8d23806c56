/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the message of a call and judges its delivery report. */
#include "net/kafka/kafka_call.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "net/kafka/kafka_producer.h"
#include "net/call/net_call.h"
#include "net/request.h"
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

/* Between the delivery timeout and the end of the attempt: a tenth of the time limit, within these bounds. */
#define MARGIN_MIN (2 * USEC_SEC)
#define MARGIN_MAX (10 * USEC_SEC)

struct kafka_call {
	struct net_call call;          /* the first member */
	struct kafka_message *message; /* owned by the producer; NULL: none */
	sd_event_source *timer;        /* the end of the attempt */
	char *headers[CALL_PAYLOAD_HEADERS_MAX]; /* owned; with their secrets */
	size_t headers_n;
};

/* ---- the end ---- */

/* Errors that a later attempt would meet, too. */
static bool code_is_final(int code)
{
	static const int final[] = {
		RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
		RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
		RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
		RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION,
		RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, RD_KAFKA_RESP_ERR__AUTHENTICATION,
		RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED};

	for (size_t i = 0; i < ELEMENTS(final); i++)
		if (final[i] == code)
			return true;
	return false;
}

static enum net_call_outcome outcome_of(const struct kafka_report *r)
{
	if (r->code == RD_KAFKA_RESP_ERR_NO_ERROR)
		return NET_CALL_OK;
	if (r->refused || code_is_final(r->code))
		return NET_CALL_FAILED;
	return r->code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT ? NET_CALL_TIMED_OUT : NET_CALL_RETRY;
}

static bool kafka_call_produce(struct kafka_call *c, struct err *e);

/* The message was purged with that of another call. */
static void send_again(struct kafka_call *c)
{
	struct err e = {};

	if (!kafka_call_produce(c, &e))
		net_call_fail(&c->call, c->call.refusal == NET_CALL_FAILED ? NET_CALL_FAILED : NET_CALL_RETRY, e.msg);
}

static void on_message_ended(void *owner, const struct kafka_report *r)
{
	struct kafka_call *c = owner;
	struct net_call_result end = {.outcome = outcome_of(r)};
	AUTO_DONE(buf) error = {};
	AUTO_TEXT where = NULL;

	c->message = NULL;
	if (r->code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || r->code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
		send_again(c);
		return;
	}
	failpoint_pass(FP_CALL_ANSWERED);
	if (end.outcome == NET_CALL_OK) {
		where = xprintf("topic %s, partition %" PRId32 ", offset %" PRId64 "\n", c->call.p.topic, r->partition, r->offset);
		net_call_keep(&c->call, where, strlen(where));
	} else {
		buf_str(&error, r->error);
	}
	net_call_end(&c->call, &end, &error);
}

/* librdkafka reports a timeout up to a second late. */
static int on_attempt_end(sd_event_source *source, uint64_t usec, void *arg)
{
	struct kafka_call *c = arg;
	struct kafka_report r;

	(void)source;
	(void)usec;
	kafka_message_explain(c->message, &r);
	net_call_fail(&c->call, outcome_of(&r), r.error);
	return 0;
}

static void kafka_call_done(struct net_call *call)
{
	struct kafka_call *c = (struct kafka_call *)call;

	if (c->message)
		kafka_message_drop(c->message);
	sd_event_source_disable_unref(c->timer);
	for (size_t i = 0; i < c->headers_n; i++) {
		explicit_bzero(c->headers[i], strlen(c->headers[i]));
		free(c->headers[i]);
	}
}

/* ---- the start ---- */

static bool headers_set(struct kafka_call *c, struct err *e)
{
	for (size_t i = 0; i < c->call.p.headers_n; i++) {
		char *text = call_secrets_expand(&c->call.secrets, c->call.p.headers[i], e);

		if (!text)
			return false;
		c->headers[c->headers_n++] = text;
	}
	return true;
}

static const struct buf *secret_of(const struct kafka_call *c, const char *name)
{
	return name ? call_secrets_get(&c->call.secrets, name, strlen(name)) : NULL;
}

static usec_t delivery_timeout(usec_t timeout)
{
	usec_t margin = timeout / 10;

	if (margin < MARGIN_MIN)
		margin = MARGIN_MIN < timeout / 2 ? MARGIN_MIN : timeout / 2;
	return timeout - (margin < MARGIN_MAX ? margin : MARGIN_MAX);
}

static bool kafka_call_produce(struct kafka_call *c, struct err *e)
{
	const struct call_payload *p = &c->call.p;
	const struct net_payload *body = &c->call.request->payload;
	const struct kafka_target target = {.brokers = p->brokers,
		.allow = p->allow,
		.sasl = p->sasl,
		.user = secret_of(c, p->sasl_user),
		.password = secret_of(c, p->sasl_password),
		.tls = p->tls,
		.ca = secret_of(c, p->tls_ca),
		.cert = secret_of(c, p->tls_cert),
		.key = secret_of(c, p->tls_key),
		.timeout = delivery_timeout(c->call.request->timeout)};
	const struct kafka_record record = {.topic = p->topic,
		.key = p->message_key,
		.value = body->body,
		.value_len = body->body_len,
		.headers = c->headers,
		.headers_n = c->headers_n};
	int code;

	if (kafka_producers_send(c->call.shared, &target, &record, c, &c->message, &code, e))
		return true;
	if (code)
		c->call.refusal = code_is_final(code) ? NET_CALL_FAILED : NET_CALL_RETRY;
	return false;
}

static bool kafka_call_send(struct net_call *call, struct err *e)
{
	struct kafka_call *c = (struct kafka_call *)call;

	return headers_set(c, e) &&
		(sd_event_add_time(call->ev, &c->timer, CLOCK_BOOTTIME, (uint64_t)call->end_at, 1, on_attempt_end, c) >= 0 ||
			err_set(e, ERR_INTERNAL, "could not make a timer")) &&
		failpoint_ok(FP_CALL_SEND, e) && kafka_call_produce(c, e);
}

static bool kafka_calls_open(struct sd_event *ev, struct aws_credentials *aws, void **ret, struct err *e)
{
	struct kafka_producers *all = NULL;

	(void)aws;
	if (!kafka_producers_new(ev, on_message_ended, &all, e))
		return false;
	*ret = all;
	return true;
}

static void kafka_calls_close(void *shared)
{
	kafka_producers_free(shared);
}

const struct net_call_type kafka_call_type = {.size = sizeof(struct kafka_call),
	.open = kafka_calls_open,
	.close = kafka_calls_close,
	.send = kafka_call_send,
	.done = kafka_call_done};
