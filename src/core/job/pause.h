/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody ordered not to start, and which jobs that covers. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct strv;

enum pause_scope {
	PAUSE_JOB,    /* one job, by its state */
	PAUSE_ALL,
	PAUSE_QUEUE,
	PAUSE_OWNER,
	PAUSE_TAG,
	PAUSE_FREEZE, /* everything but what has the spared tag; nobody but an administrator gets past it */
	PAUSE_SCOPE_MAX
};
const char *pause_scope_name(enum pause_scope s);
bool pause_scope_parse(const char *name, enum pause_scope *ret);

struct pause_order {
	enum pause_scope scope;
	char *key;      /* of a queue its name, of an owner the uid, of a tag KEY=VALUE; else empty */
	int64_t uid;    /* whose jobs; -1: everybody's */
	int64_t by_uid; /* who ordered it; -1: the daemon itself */
	char *by_name;
	char *reason;   /* NULL: none was given */
	usec_t at;      /* its beginning */
	usec_t until;   /* 0: until somebody ends it */
	bool later;     /* ordered before its beginning: it is in force from 'at' on */
	char *spared;   /* of a freeze: KEY=VALUE, or empty */
};
struct pause_list {
	struct pause_order *v; /* their texts are owned */
	size_t n;
};
void pause_order_done(struct pause_order *p);
void pause_list_done(struct pause_list *l);
struct pause_order *pause_list_add(struct pause_list *l); /* an empty one */

/* What a pause is asked about. */
struct pause_target {
	int64_t uid;
	const char *queue;
	const struct strv *tags; /* KEY=VALUE; NULL: none */
};
/* An administrator set the pause, not 'owner' (core/job/owner.h). The owner may not end or change it. */
bool pause_is_imposed(const struct pause_order *p, int64_t owner);
/* A pause in force is in force from the order on, also where the clock of another node is behind. */
bool pause_begun(const struct pause_order *p, usec_t now);
/* Not of one job: its state says that. A pause whose time is over or is still to come covers nothing. */
bool pause_covers(const struct pause_order *p, const struct pause_target *t, usec_t now);
/* The one that weighs most, a freeze before any other; NULL: none covers it. */
const struct pause_order *pause_find(const struct pause_list *l, const struct pause_target *t, usec_t now);

/* "paused by ann since 2026-11-16T09:00:00Z until …: reason" */
void pause_words(const struct pause_order *p, struct buf *out);
/* What ends it: "jobctl resume --tag k=v"; 'job' is how to call the job where it is about one. */
void pause_remedy(const struct pause_order *p, const char *job, struct buf *out);
