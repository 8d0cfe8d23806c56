/* SPDX-License-Identifier: Apache-2.0 */
/* Posts notices to web servers, many at a time, and never holds up the loop. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct sd_event;
struct webhooks;

#define WEBHOOK_TIMEOUT_MS 10000
#define WEBHOOK_ANSWER_MAX 65536 /* bytes read of an answer */

/* How a post ended; 'error' is NULL when the server accepted it. On the loop, never from inside webhooks_post(). */
typedef void webhook_done_fn(int64_t notice, int64_t try, const char *error, void *arg);

bool webhooks_new(struct sd_event *ev /* borrowed */, webhook_done_fn *fn, void *arg, struct webhooks **ret, struct err *e);
void webhooks_free(struct webhooks *w); /* what is under way is given up without a word */
AUTO_DEFINE(webhooks);

struct webhook_post {
	int64_t notice, try;
	const char *url;
	const char *body;           /* copied, as are the headers */
	size_t len;
	const struct strv *headers; /* "Name: value" */
};
bool webhooks_post(struct webhooks *w, const struct webhook_post *p, struct err *e);
