/* SPDX-License-Identifier: Apache-2.0 */
/* Starts calls after their secrets were read, and reports their ends. */
#include "net/call/net_call.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/call.h"
#include "net/call/http_call.h"
#include "net/kafka/kafka_call.h"
#include "net/aws/lambda_call.h"
#include "net/request.h"
#include <string.h>

#define RESPONSE_SHOWN 200 /* bytes of a response that an error quotes */

static const struct net_call_type *const types[CALL_KIND_MAX] = {
	[CALL_HTTP] = &http_call_type,
	[CALL_KAFKA] = &kafka_call_type,
	[CALL_LAMBDA] = &lambda_call_type,
};

struct net_calls {
	struct sd_event *ev;         /* borrowed */
	void *shared[CALL_KIND_MAX]; /* owned by the kinds */
};

/* ---- the response ---- */

void net_call_cut(struct net_call *c)
{
	if (c->response.len <= NET_KEPT_MAX)
		return;
	memmove(c->response.data, c->response.data + c->response.len - NET_KEPT_MAX, NET_KEPT_MAX);
	c->response.len = NET_KEPT_MAX;
}

void net_call_keep(struct net_call *c, const void *data, size_t len)
{
	c->bytes += (int64_t)len;
	buf_add(&c->response, data, len);
	if (c->response.len > 2 * NET_KEPT_MAX)
		net_call_cut(c);
}

void net_call_quote(const struct net_call *c, struct buf *error)
{
	size_t n = c->response.len < RESPONSE_SHOWN ? c->response.len : RESPONSE_SHOWN;

	while (n > 0 && strchr(" \r\n", c->response.data[n - 1]))
		n--;
	if (n == 0)
		return;
	buf_str(error, ": ");
	text_escape(error, c->response.data, n);
}

/* ---- the end ---- */

static void net_call_free(struct net_call *c)
{
	c->type->done(c);
	call_secrets_done(&c->secrets);
	buf_done(&c->response);
	free(c);
}

void net_call_drop(struct request *r)
{
	if (r->call)
		net_call_free(STEAL(r->call));
}

void net_call_end(struct net_call *c, struct net_call_result *end, struct buf *error)
{
	AUTO_DONE(buf) response = {};
	struct request *r = c->request;

	call_secrets_mask(&c->secrets, error);
	call_secrets_mask(&c->secrets, &c->response);
	net_call_cut(c);
	end->bytes = c->bytes > (int64_t)c->response.len ? c->bytes : (int64_t)c->response.len;
	end->kept = (int64_t)c->response.len;
	response = c->response;
	c->response = (struct buf){};
	net_frame_text(end->error, sizeof(end->error), error->data);
	r->call = NULL;
	net_call_free(c);
	request_end_call(r, end, &response);
}

void net_call_fail(struct net_call *c, enum net_call_outcome outcome, const char *why)
{
	struct net_call_result end = {.outcome = outcome};
	AUTO_DONE(buf) error = {};

	buf_str(&error, why);
	net_call_end(c, &end, &error);
}

bool net_call_ends_with_lease(const struct request *r)
{
	return r->call && r->call->p.ends_with_lease;
}

void net_call_lose(struct request *r)
{
	net_call_fail(r->call, NET_CALL_LOST, "the lease of the node ended during the call");
}

/* ---- the start ---- */

static void net_call_send(struct net_call *c)
{
	struct err e = {};

	if (!c->type->send(c, &e))
		net_call_fail(c, e.kind == ERR_BUSY ? NET_CALL_LATE : c->refusal, e.msg);
}

static void on_secrets_ready(const struct err *why, void *arg)
{
	struct net_call *c = arg;

	if (why)
		net_call_fail(c, NET_CALL_NOT_STARTED, why->msg);
	else
		net_call_send(c);
}

bool net_call_start(struct request *r, struct net_calls *all, struct err *e)
{
	struct call_payload p;
	struct net_call *c;
	struct err why = {};

	if (!call_payload_parse(&r->payload, &p, e))
		return false;
	c = xcalloc(1, types[p.kind]->size);
	*c = (struct net_call){.type = types[p.kind],
		.ev = all->ev,
		.shared = all->shared[p.kind],
		.request = r,
		.p = p,
		.end_at = clock_boot(&clock_system) + r->timeout,
		.refusal = NET_CALL_NOT_STARTED};
	r->call = c;
	c->secrets = (struct call_secrets){.request = r, .names = c->p.secrets, .n = c->p.secrets_n, .socket = -1,
		.on_ready = on_secrets_ready, .arg = c};
	if (c->p.secrets_n == 0)
		net_call_send(c);
	else if (!call_secrets_start(&c->secrets, all->ev, &why))
		net_call_fail(c, NET_CALL_NOT_STARTED, why.msg);
	return true;
}

/* ---- all calls ---- */

bool net_calls_new(struct sd_event *ev, struct aws_credentials *aws, struct net_calls **ret, struct err *e)
{
	AUTO(net_calls) *all = xcalloc(1, sizeof(*all));

	all->ev = ev;
	for (size_t i = 0; i < CALL_KIND_MAX; i++)
		if (types[i] && !types[i]->open(ev, aws, &all->shared[i], e))
			return false;
	*ret = STEAL(all);
	return true;
}

void net_calls_free(struct net_calls *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < CALL_KIND_MAX; i++)
		if (types[i] && all->shared[i])
			types[i]->close(all->shared[i]);
	free(all);
}
