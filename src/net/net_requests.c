/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the daemon: their start and their ends. */
#include "base/err.h"
#include "base/text.h"
#include "net/artifact/artifact_cache.h"
#include "net/aws/aws_credentials.h"
#include "net/call/call_payload.h"
#include "net/call/net_call.h"
#include "net/net_payload.h"
#include "net/net_server_private.h"
#include "net/aws/s3_request.h"
#include "net/webhook.h"
#include <string.h>

#define REQUESTS_MAX 4096 /* at a time, including unacknowledged results */

/* ---- requests ---- */

static void server_request_free(struct request *r)
{
	net_payload_done(&r->payload);
	buf_done(&r->response);
	auto_fd_close(&r->result_fd);
	auto_fd_close(&r->file_socket);
	free(r);
}

struct request *net_requests_find(const struct net_server *s, const struct net_id *id)
{
	struct request *r = map_get(&s->by_id, net_frame_id_hash(id));

	while (r && !net_frame_id_equal(&r->id, id))
		r = r->same;
	return r;
}

static void by_id_remove(struct net_server *s, struct request *r)
{
	struct request *first = map_get(&s->by_id, net_frame_id_hash(&r->id)), **at = &first;

	while (*at != r)
		at = &(*at)->same;
	*at = r->same;
	map_take(&s->by_id, net_frame_id_hash(&r->id));
	if (first)
		map_put(&s->by_id, net_frame_id_hash(&r->id), first);
}

static bool webhook_start(struct request *r, struct err *e);
static void webhook_cancel(struct request *r);
static bool artifact_start(struct request *r, struct err *e);
static void artifact_cancel(struct request *r);
static bool call_start(struct request *r, struct err *e);
static bool storage_start(struct request *r, struct err *e);

/*
 * Each kind of request: 'start' ends the request later through request_end(); 'cancel' ends its
 * work without that.
 */
static const struct {
	bool (*start)(struct request *r, struct err *e);
	void (*cancel)(struct request *r);
} kinds[NET_KIND_MAX] = {
	[NET_KIND_WEBHOOK] = {webhook_start, webhook_cancel},
	[NET_KIND_ARTIFACT] = {artifact_start, artifact_cancel},
	[NET_KIND_OTLP] = {webhook_start, webhook_cancel},
	[NET_KIND_CALL] = {call_start, net_call_drop},
	[NET_KIND_S3] = {storage_start, s3_request_drop},
};

void net_requests_drop(struct net_server *s, struct request *r)
{
	kinds[r->id.kind].cancel(r);
	by_id_remove(s, r);
	net_owed_forget(r);
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	else
		s->last = r->at;
	s->requests_n--;
	server_request_free(r);
}

/* ---- the ends of requests ---- */

static void request_finish(struct request *r, int fd)
{
	r->stage = REQUEST_ENDED;
	r->result_fd = fd;
	if (r->wanted || (r->server->conn && r->server->conn->synced))
		net_owed_add(r, OWES_RESULT);
}

void request_end(struct request *r, enum net_outcome outcome, const char *error, int fd)
{
	static const enum net_call_outcome of_call[] = {[NET_DONE] = NET_CALL_OK,
		[NET_FAILED] = NET_CALL_NOT_STARTED, [NET_BUSY] = NET_CALL_LATE};

	r->outcome = outcome;
	net_frame_text(r->error, sizeof(r->error), error);
	r->end = (struct net_call_result){
		.id = r->id, .number = r->limit, .outcome = of_call[outcome], .ended_at = clock_boot(&clock_system)};
	net_frame_text(r->end.error, sizeof(r->end.error), error);
	request_finish(r, fd);
}

void request_end_call(struct request *r, const struct net_call_result *end, struct buf *response)
{
	r->end = *end;
	r->end.id = r->id;
	r->end.number = r->limit;
	r->end.ended_at = clock_boot(&clock_system);
	r->response = *response;
	*response = (struct buf){};
	request_finish(r, -1);
}

void request_need_secret(struct request *r, int64_t index, int socket)
{
	r->file_socket = socket;
	r->secret = index;
	net_owed_add(r, OWES_SECRET);
}

void request_need_file(struct request *r, int socket)
{
	r->file_socket = socket;
	net_owed_add(r, OWES_FILE);
}

/* ---- webhooks ---- */

static void on_posted(void *owner, const char *error, void *arg)
{
	(void)arg;
	request_end(owner, error ? NET_FAILED : NET_DONE, error, -1);
}

static bool webhook_start(struct request *r, struct err *e)
{
	const struct net_payload *p = &r->payload;

	if (p->n < 1)
		return err_set(e, ERR_INVALID, "a webhook without a URL");
	return webhooks_post(r->server->webhooks,
		&(struct webhook_post){.owner = r,
			.url = p->texts[0],
			.body = p->body,
			.len = p->body_len,
			.headers = p->texts + 1,
			.headers_n = p->n - 1,
			.timeout = r->timeout},
		e);
}

static void webhook_cancel(struct request *r)
{
	webhooks_cancel(r->server->webhooks, r);
}

/* ---- artifacts ---- */

static bool artifact_start(struct request *r, struct err *e)
{
	return artifact_cache_start(r, r->server->cache, e);
}

static void artifact_cancel(struct request *r)
{
	artifact_cache_drop(r, r->server->cache);
}

/* ---- calls ---- */

static bool call_start(struct request *r, struct err *e)
{
	return net_call_start(r, r->server->calls, e);
}

/* A request that the daemon sent long ago may belong to another node now. */
static bool call_is_late(const struct net_server *s, const struct request *r)
{
	struct call_payload p;
	struct err e = {};
	usec_t now = clock_boot(&clock_system);

	return r->id.kind == NET_KIND_CALL && call_payload_parse(&r->payload, &p, &e) &&
		((p.start_by && now > p.start_by) || (p.ends_with_lease && now >= s->lease_end));
}

void net_requests_lose_calls(struct net_server *s)
{
	for (struct request *r = s->requests; r; r = r->next)
		if (net_call_ends_with_lease(r))
			net_call_lose(r);
}

/* ---- storage ---- */

static bool storage_start(struct request *r, struct err *e)
{
	return s3_request_start(r, r->server->s3, e);
}

/* ---- all requests ---- */

struct request *net_requests_add(struct net_server *s, const struct net_id *id, int64_t uid)
{
	struct request *r = xcalloc(1, sizeof(*r));

	*r = (struct request){.server = s,
		.id = *id,
		.uid = uid,
		.wanted = true,
		.result_fd = -1,
		.file_socket = -1};
	r->at = s->last;
	*s->last = r;
	s->last = &r->next;
	r->same = map_take(&s->by_id, net_frame_id_hash(id));
	map_put(&s->by_id, net_frame_id_hash(id), r);
	s->requests_n++;
	return r;
}

void net_requests_start(struct request *r)
{
	const struct net_server *s = r->server;
	struct err why = {};

	if (s->requests_n > REQUESTS_MAX)
		request_end(r, NET_BUSY, "jobsched-net has too many requests", -1);
	else if (call_is_late(s, r))
		request_end(r, NET_BUSY, "the start was too late", -1);
	else if (!kinds[r->id.kind].start(r, &why))
		request_end(r, why.kind == ERR_BUSY ? NET_BUSY : NET_FAILED, why.msg, -1);
}

bool net_requests_open(struct net_server *s, struct err *e)
{
	s->last = &s->requests;
	s->owing_last = &s->owing;
	return webhooks_new(s->ev, on_posted, s, &s->webhooks, e) && aws_credentials_new(s->ev, &s->aws, e) &&
		net_calls_new(s->ev, s->aws, &s->calls, e) && s3_requests_new(s->ev, s->aws, &s->s3, e) &&
		artifact_cache_new(s->ev,
			&(struct artifact_cache_options){.dir = s->o.state_dir,
				.private_copies = s->o.private_copies,
				.aws = s->aws,
				.requests = &s->requests},
			&s->cache, e);
}

void net_requests_close(struct net_server *s)
{
	while (s->requests)
		net_requests_drop(s, s->requests);
	map_done(&s->by_id);
	webhooks_free(s->webhooks);
	net_calls_free(s->calls);
	artifact_cache_free(s->cache);
	s3_requests_free(s->s3);
	aws_credentials_free(s->aws);
}
