/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's connection to jobsched-net. Keeps each request until it has a result, also when
 * jobsched-net restarts.
 */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "net/net_frame.h"
#include "net/net_payload.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct net_client;
struct sd_event;

/* Callbacks for one kind of request. All are called from the loop. */
struct net_client_kind {
	/*
	 * The result of a request, or NET_BUSY because jobsched-net is not running. The descriptor
	 * is moved; -1: none.
	 */
	void (*result)(const struct net_result *r, int fd, void *arg);
	/* jobsched-net works on a request of an earlier daemon; or NULL. */
	void (*has)(const struct net_id *id, void *arg);
	/* The descriptor is moved; or NULL. */
	void (*need_file)(const struct net_id *id, int fd, void *arg);
	/*
	 * For calls. 'sent': the request has left; it is not repeated to another process of jobsched-net. 'lost': that
	 * process is gone or does not answer. 'need_secret' as need_file, for the secret with this index.
	 */
	void (*call_result)(const struct net_call_result *r, const char *response, size_t len, void *arg);
	void (*sent)(const struct net_id *id, void *arg);
	void (*lost)(const struct net_id *id, const char *why, void *arg);
	void (*need_secret)(const struct net_id *id, int64_t index, int fd /* moved */, void *arg);
	/* Must call net_client_hold() for each artifact in use; or NULL. */
	void (*hold)(struct net_client *c, void *arg);
	void *arg;
};

struct net_client_options {
	const struct clock *clock;
	const char *node;        /* borrowed, as are the next four */
	const char *socket;
	const char *program;     /* user mode: started when it is needed; NULL: systemd starts it */
	const char *runtime_dir; /* of jobsched-net */
	const char *state_dir;
	int64_t budget;          /* bytes of all artifacts on disk */
	/* All requests of an earlier daemon have been reported, or the connection is closed. */
	void (*synced)(void *arg);
	void *arg;
};
bool net_client_new(struct sd_event *ev /* borrowed */, const struct net_client_options *o,
	struct net_client **ret, struct err *e);
void net_client_free(struct net_client *c); /* jobsched-net continues its requests */
AUTO_DEFINE(net_client);

void net_client_kind(struct net_client *c, enum net_kind kind,
	const struct net_client_kind *how /* copied */);
/* Call it when all kinds and holds are known. Does not start jobsched-net. */
void net_client_connect(struct net_client *c);
bool net_client_connected(const struct net_client *c);
bool net_client_syncing(const struct net_client *c); /* 'synced' has not been called yet */
/* Why it is not connected, with the command to type; NULL: it is. */
const char *net_client_down(const struct net_client *c);
void net_client_set_budget(struct net_client *c, int64_t bytes);
/* The end of the node's run lease (boottime); USEC_NEVER: none. */
void net_client_set_deadline(struct net_client *c, usec_t end_at);

/* A repeated request is ignored. The payload is a descriptor of net_payload_memfd(), moved. */
void net_client_request(struct net_client *c, const struct net_request *r, int payload);
/* The same with the bytes of net_payload_encode(), moved. They are sent without a descriptor if they are few. */
void net_client_request_bytes(struct net_client *c, const struct net_request *r, struct buf *payload);
/* A call that the connected process reported with 'has': it is reported as lost if that process ends. */
void net_client_adopt(struct net_client *c, const struct net_id *id, usec_t timeout);
void net_client_cancel(struct net_client *c, const struct net_id *id); /* without a result */
/* Call it after the result has been recorded. */
void net_client_ack(struct net_client *c, const struct net_id *id);
void net_client_hold(struct net_client *c, const struct net_hold *h);
