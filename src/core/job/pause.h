/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses and the jobs each scope covers. */
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
	PAUSE_FREEZE, /* all jobs except those with the tag 'spared'; only administrators can override it */
	PAUSE_SCOPE_MAX
};
const char *pause_scope_name(enum pause_scope s);
bool pause_scope_parse(const char *name, enum pause_scope *ret);

struct pause_order {
	enum pause_scope scope;
	char *key;      /* queue name, uid of the owner, or tag KEY=VALUE; else empty */
	int64_t uid;    /* owner of the jobs; -1: all */
	int64_t by_uid; /* the user who set it; -1: the daemon */
	char *by_name;
	char *reason;   /* NULL: none was given */
	usec_t at;      /* start */
	usec_t until;   /* 0: until it is ended by a user */
	bool later;     /* set in advance: in force from 'at' on */
	char *spared;   /* of a freeze: KEY=VALUE, or empty */
};
struct pause_list {
	struct pause_order *v; /* owned */
	size_t n;
};
void pause_order_done(struct pause_order *p);
void pause_list_done(struct pause_list *l);
struct pause_order *pause_list_add(struct pause_list *l); /* appends an empty pause */

/* A job as seen by a pause. */
struct pause_target {
	int64_t uid;
	const char *queue;
	const struct strv *tags; /* KEY=VALUE; NULL: none */
};
/*
 * Whether an administrator set the pause, not 'owner' (core/job/owner.h). Then the owner may not
 * end or change it.
 */
bool pause_is_imposed(const struct pause_order *p, int64_t owner);
/* A pause without 'later' is in force at once, even if the clock of this node is behind. */
bool pause_begun(const struct pause_order *p, usec_t now);
/*
 * Not for PAUSE_JOB, which is a state of the job. A pause that is over or in the future covers
 * nothing.
 */
bool pause_covers(const struct pause_order *p, const struct pause_target *t, usec_t now);
/* Whether 'a' ends after 'b'. */
bool pause_lasts_longer(const struct pause_order *a, const struct pause_order *b);
/* Of the pauses that cover the job, the one that ends last; no slot of the job starts before that. NULL: none. */
const struct pause_order *pause_longest(const struct pause_list *l, const struct pause_target *t, usec_t now);
/* A pause that covers the job, a freeze before any other; NULL: none. */
const struct pause_order *pause_find(const struct pause_list *l, const struct pause_target *t, usec_t now);

/* "paused by ann since 2026-11-16T09:00:00Z until …: reason" */
void pause_words(const struct pause_order *p, struct buf *out);
/* The command that ends it: "jobctl resume --tag k=v"; 'job' is the reference to a single job. */
void pause_remedy(const struct pause_order *p, const char *job, struct buf *out);
