/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a request from the callbacks of MHD to its response; private to the API server. */
#pragma once
#include "daemon/api/request.h"
#include <microhttpd.h>

/* ---- receiving: request.c ---- */
enum MHD_Result request_on_call(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **state);
void request_on_completed(void *arg, struct MHD_Connection *mhd, void **state,
	enum MHD_RequestTerminationCode why);
void request_drop_body(struct request *r); /* also releases its charge */

/* ---- authentication: request_auth.c ---- */
/* Over TCP: checks target, host, origin and rate; identifies the caller if it has a token. */
bool request_auth_begin(struct request *r, const char *method, struct err *e);
/* Whether the caller may use the route at all. NULL: no route; only callers with a token learn that. */
bool request_auth_admit(struct request *r, const struct route *route, struct err *e);
bool request_auth_body(struct request *r, bool has_body, struct err *e); /* may answer with 415 */

/* ---- identity and audit ---- */
/* Identifies the caller, checks the permission and calls the route. */
void request_handle(struct request *r);
void request_refused(const struct request *r, const struct err *why);

/* ---- responding: request_answer.c ---- */
enum MHD_Result request_queue(struct request *r); /* passes the response to MHD */
void request_resume(struct request *r);
void request_count(const struct request *r); /* request_metrics.c: when its status is known */
void request_abandon(struct request *r); /* the daemon stops: responds 503, or ends the stream */
/* See server_refuse_waiting(). */
void request_refuse_waiting(struct request *r, const struct err *why, bool unknown);
void request_free(struct request *r);
