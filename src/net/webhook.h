/* SPDX-License-Identifier: Apache-2.0 */
/* Posts webhooks to web servers, many at a time, without blocking the event loop. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct sd_event;
struct webhooks;

#define WEBHOOK_ANSWER_MAX 65536 /* bytes read of an answer */

/* The end of a post; 'error' is NULL when the server accepted it. Called from the loop, never from inside webhooks_post(). */
typedef void webhook_done_fn(void *owner, const char *error, void *arg);

bool webhooks_new(struct sd_event *ev /* borrowed */, webhook_done_fn *fn, void *arg, struct webhooks **ret, struct err *e);
void webhooks_free(struct webhooks *w); /* posts under way are given up without a call */
AUTO_DEFINE(webhooks);

struct webhook_post {
	void *owner;                /* passed to webhook_done_fn; identifies the post */
	const char *url;
	const char *body;           /* borrowed until the post ends or is cancelled */
	size_t len;
	const char *const *headers; /* "Name: value"; copied */
	size_t headers_n;
	usec_t timeout;
};
bool webhooks_post(struct webhooks *w, const struct webhook_post *p, struct err *e);
void webhooks_cancel(struct webhooks *w, const void *owner); /* ends it without a call; an unknown owner is fine */
