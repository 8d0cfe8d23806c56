/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the request of a call from a claimed run and its definition. */
#pragma once
#include "base/clock.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job_spec;
struct run;

struct call_source {
	const struct run *run;
	const struct job_spec *spec;
	const struct strv *params;   /* NAME=value of a triggered run; NULL: none */
	const struct strv *trace;    /* TRACEPARENT=… and others */
	const char *store_id;        /* makes the key of the slot unique between stores */
	const char *allow, *proxy;   /* http-allow, http-proxy; NULL: none */
	const char *functions, *endpoint; /* lambda-functions, lambda-endpoint; NULL: none */
	const char *callback;        /* URL of an asynchronous call; NULL: it is not one */
	usec_t start_by;             /* boottime */
	bool ends_with_lease;
};

struct call_texts {
	struct strv texts;           /* KEY=VALUE, see net/call/call_payload.h */
	struct blob body;
};
/* False: a value of a parameter makes a header or the URL invalid. */
bool call_texts_build(struct call_texts *ret, const struct call_source *from, struct err *e);
void call_texts_done(struct call_texts *t);

/* Time limit of an attempt: that of the job, or a default. */
usec_t call_texts_timeout(usec_t timeout, bool asynchronous);
