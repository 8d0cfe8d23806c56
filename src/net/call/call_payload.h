/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a call: lines KEY=VALUE in the payload of its request. */
#pragma once
#include "base/clock.h"
#include "core/job/call.h"
#include "net/net_frame.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct net_payload;

#define CALL_PAYLOAD_HEADERS_MAX 48
#define CALL_PAYLOAD_SIGN_MAX 4

struct call_payload { /* texts are borrowed from the net_payload; NULL: none */
	enum call_kind kind;
	const char *method, *url;                      /* of an HTTP request */
	const char *brokers, *topic, *message_key;     /* of a Kafka message */
	const char *lambda, *region, *endpoint;        /* of a function; the endpoint of the configuration */
	const char *sasl, *sasl_user, *sasl_password;  /* mechanism; names of secrets */
	const char *headers[CALL_PAYLOAD_HEADERS_MAX]; /* Name: value */
	size_t headers_n;
	const char *secrets[NET_SECRETS_MAX];          /* names; the daemon knows the paths */
	size_t secrets_n;
	const char *sign[CALL_PAYLOAD_SIGN_MAX];       /* names of secrets */
	size_t sign_n;
	const char *key;                               /* of the slot */
	const char *tls_ca, *tls_cert, *tls_key;       /* names of secrets */
	const char *expect_status, *expect_body;
	const char *allow;                             /* http-allow */
	const char *proxy;                             /* http-proxy */
	int64_t expect_size;                           /* bytes; 0: no limit */
	int64_t start_by;                              /* boottime: the call must not start later */
	int64_t tls;                                   /* 1: connections to brokers use TLS */
	int64_t event;                                 /* 1: Lambda queues the invocation */
	int64_t async, suspend_on_410, ends_with_lease;       /* 0 or 1 */
};
bool call_payload_parse(const struct net_payload *p, struct call_payload *ret, struct err *e);
