/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the daemon: their start, their results, and the frames that report them. */
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "net/artifact/artifact_cache.h"
#include "net/aws/aws_credentials.h"
#include "net/call/call_payload.h"
#include "net/call/net_call.h"
#include "net/net_payload.h"
#include "net/net_server_private.h"
#include "net/aws/s3_request.h"
#include "net/webhook.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define REQUESTS_MAX 4096 /* at a time, including unacknowledged results */

/* ---- requests ---- */

static void server_request_free(struct request *r)
{
	net_payload_done(&r->payload);
	auto_fd_close(&r->result_fd);
	auto_fd_close(&r->file_socket);
	free(r);
}

struct request *net_requests_find(const struct net_server *s, const struct net_id *id)
{
	struct request *r = s->requests;

	while (r && !net_frame_id_equal(&r->id, id))
		r = r->next;
	return r;
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
	for (struct request **at = &s->requests; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			s->requests_n--;
			break;
		}
	server_request_free(r);
}

/* ---- frames to the daemon ---- */

bool net_requests_send(struct conn *c, const struct net_frame *f, int fd)
{
	int r = net_frame_send(c->fd, f, fd);

	if (r == -EAGAIN || r == -ETOOMANYREFS)
		sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
	else if (r < 0)
		shutdown(c->fd, SHUT_RDWR); /* the loop sees the end of the connection */
	return r == 0;
}

static bool owed_frame_send(struct conn *c, struct request *r, enum request_owes what)
{
	static const enum net_frame_type types[] = {
		[OWES_RESULT] = NET_RESULT, [OWES_HAS] = NET_HAS, [OWES_FILE] = NET_NEED_FILE,
		[OWES_SECRET] = NET_NEED_SECRET};
	bool call = what == OWES_RESULT && r->id.kind == NET_KIND_CALL;
	struct net_frame f;
	int fd = -1;

	if (!(r->owes & what) || (r->id.kind == NET_KIND_CALL && c->version < NET_FRAME_VERSION_CALLS))
		return true;
	net_frame_init(&f, call ? NET_CALL_RESULT : types[what], c->version);
	if (call) {
		failpoint_pass(FP_CALL_TELL);
		f.call = r->end;
		fd = r->result_fd;
	} else if (what == OWES_SECRET) {
		f.need_secret = (struct net_need_secret){.id = r->id, .index = r->secret};
		fd = r->file_socket;
	} else if (what == OWES_RESULT) {
		f.result = (struct net_result){.id = r->id, .outcome = r->outcome};
		net_frame_text(f.result.error, sizeof(f.result.error), r->error);
		fd = r->result_fd;
	} else {
		f.id = r->id;
		fd = what == OWES_FILE ? r->file_socket : -1;
	}
	if (!net_requests_send(c, &f, fd))
		return false;
	r->owes &= ~(unsigned)what;
	if (what == OWES_FILE || what == OWES_SECRET) {
		auto_fd_close(&r->file_socket);
		r->file_socket = -1;
	}
	return true;
}

void net_requests_flush(struct conn *c)
{
	struct net_frame f;

	if (!c || !c->version)
		return;
	for (struct request *r = c->server->requests; r; r = r->next)
		if (!owed_frame_send(c, r, OWES_HAS) || !owed_frame_send(c, r, OWES_FILE) ||
			!owed_frame_send(c, r, OWES_SECRET) || !owed_frame_send(c, r, OWES_RESULT))
			return;
	if (!c->owes_synced)
		return;
	net_frame_init(&f, NET_SYNCED, c->version);
	c->owes_synced = !net_requests_send(c, &f, -1);
}

static void request_finish(struct request *r, int fd)
{
	r->stage = REQUEST_ENDED;
	r->result_fd = fd;
	if (r->wanted || (r->server->conn && r->server->conn->synced)) {
		r->owes |= OWES_RESULT;
		net_requests_flush(r->server->conn);
	}
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

void request_end_call(struct request *r, const struct net_call_result *end, int fd)
{
	r->end = *end;
	r->end.id = r->id;
	r->end.number = r->limit;
	r->end.ended_at = clock_boot(&clock_system);
	request_finish(r, fd);
}

void request_need_secret(struct request *r, int64_t index, int socket)
{
	r->file_socket = socket;
	r->secret = index;
	r->owes |= OWES_SECRET;
	net_requests_flush(r->server->conn);
}

void request_need_file(struct request *r, int socket)
{
	r->file_socket = socket;
	r->owes |= OWES_FILE;
	net_requests_flush(r->server->conn);
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
	struct request *r = xcalloc(1, sizeof(*r)), **last = &s->requests;

	*r = (struct request){.server = s,
		.id = *id,
		.uid = uid,
		.wanted = true,
		.result_fd = -1,
		.file_socket = -1};
	while (*last) /* in the order of arrival */
		last = &(*last)->next;
	*last = r;
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
	webhooks_free(s->webhooks);
	net_calls_free(s->calls);
	artifact_cache_free(s->cache);
	s3_requests_free(s->s3);
	aws_credentials_free(s->aws);
}
