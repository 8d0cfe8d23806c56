/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of a call, read from files that the spawner opens as the owner of the job. */
#pragma once
#include "base/buf.h"
#include "net/net_frame.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct request;
struct sd_event;
struct sd_event_source;

#define CALL_SECRET_MAX (64 << 10) /* bytes of one secret */

struct call_secrets {
	struct request *request;         /* borrowed */
	const char *const *names;        /* borrowed */
	size_t n, read;
	struct buf values[NET_SECRETS_MAX];
	int socket;                      /* owned; where the next file arrives; -1: none */
	struct sd_event_source *source, *timer;
	/* All were read, or 'why' has the reason. Not called from inside call_secrets_start(). */
	void (*on_ready)(const struct err *why, void *arg);
	void *arg;
};
bool call_secrets_start(struct call_secrets *s, struct sd_event *ev, struct err *e);
void call_secrets_done(struct call_secrets *s); /* overwrites the values */

const struct buf *call_secrets_get(const struct call_secrets *s, const char *name, size_t len);
/* The text with each {secret:NAME} replaced; caller frees. NULL: *e says which is missing or unsuitable. */
char *call_secrets_expand(const struct call_secrets *s, const char *text, struct err *e);
/* Replaces each value in the text by '***'. */
void call_secrets_mask(const struct call_secrets *s, struct buf *text);
