/* SPDX-License-Identifier: Apache-2.0 */
/* A call: what its kinds have in common. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/call/call_payload.h"
#include "net/call/call_secrets.h"
#include "net/net_frame.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aws_credentials;
struct err;
struct net_calls;
struct request;
struct sd_event;

struct net_call { /* the first member of the structure of each kind */
	const struct net_call_type *type;
	struct sd_event *ev;           /* borrowed */
	void *shared;                  /* borrowed; see net_call_type */
	struct request *request;       /* borrowed */
	struct call_payload p;
	struct call_secrets secrets;
	struct buf response;           /* its end; the output of the attempt */
	int64_t bytes;                 /* of the whole response */
	usec_t end_at;                 /* boottime: the attempt has timed out */
	enum net_call_outcome refusal; /* outcome if send() returns false */
};

struct net_call_type {
	size_t size; /* of the structure of a call */
	/* what all calls of the kind share; both arguments are borrowed */
	bool (*open)(struct sd_event *ev, struct aws_credentials *aws, void **ret, struct err *e);
	void (*close)(void *shared);
	bool (*send)(struct net_call *c, struct err *e); /* the secrets were read; false: nothing was sent */
	void (*done)(struct net_call *c); /* frees what the kind added, also after a failed send() */
};

bool net_calls_new(struct sd_event *ev /* borrowed */, struct aws_credentials *aws /* borrowed */, struct net_calls **ret,
	struct err *e);
void net_calls_free(struct net_calls *all);
AUTO_DEFINE(net_calls);

/* The call ends later through request_end_call(), or now. False: the payload is not a call. */
bool net_call_start(struct request *r, struct net_calls *all, struct err *e);
void net_call_drop(struct request *r);                  /* ends the call, if there is one, without a result */
bool net_call_ends_with_lease(const struct request *r); /* an unfinished call that must not outlive the run lease */
void net_call_lose(struct request *r);                  /* ends it because the run lease is over */

/* For the kinds. */
void net_call_keep(struct net_call *c, const void *data, size_t len); /* appends to the response, keeps its end */
void net_call_cut(struct net_call *c);                                /* reduces the response to NET_KEPT_MAX bytes */
void net_call_quote(const struct net_call *c, struct buf *error);     /* appends ": " and the start of the response */
/* Both free the call. Secrets are masked. */
void net_call_end(struct net_call *c, struct net_call_result *end, struct buf *error);
void net_call_fail(struct net_call *c, enum net_call_outcome outcome, const char *why);
