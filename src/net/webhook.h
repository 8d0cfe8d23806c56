/* SPDX-License-Identifier: Apache-2.0 */
/* Sends webhooks to web servers, several at a time, without blocking the event loop. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct sd_event;
struct webhooks;

#define WEBHOOK_RESPONSE_MAX 65536 /* bytes; a longer response is an error */

/*
 * Called when a post has ended, from the loop and never from inside webhooks_post(). 'error' is
 * NULL if the server accepted it.
 */
typedef void webhook_done_fn(void *owner, const char *error, void *arg);

bool webhooks_new(struct sd_event *ev /* borrowed */, webhook_done_fn *fn, void *arg,
	struct webhooks **ret, struct err *e);
void webhooks_free(struct webhooks *w); /* aborts unfinished posts without calling fn */
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
/* aborts it without calling fn; an unknown owner is ignored */
void webhooks_cancel(struct webhooks *w, const void *owner);
