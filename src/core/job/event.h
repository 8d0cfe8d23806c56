/* SPDX-License-Identifier: Apache-2.0 */
/* Audit events: actor, action, object, origin and result. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of events; their names are in event.c. */
enum event_what {
	EVENT_NONE,
	EVENT_JOB_ADD,
	EVENT_JOB_CANCEL,
	EVENT_JOB_REMOVE,
	EVENT_JOB_CHANGE,
	EVENT_JOB_UNDO,
	EVENT_JOB_PAUSE,
	EVENT_JOB_RESUME,
	EVENT_JOB_SUSPEND,
	EVENT_RUN_TRIGGER,
	EVENT_RUN_CANCEL,
	EVENT_RUN_DEAD,
	EVENT_RUN_START,    /* not stored, only sent to clients that follow /v1/stream */
	EVENT_RUN_END,      /* not stored, only sent to clients that follow events */
	EVENT_DEAD_RETRY,
	EVENT_DEAD_PURGE,
	EVENT_PAUSE,
	EVENT_RESUME,
	EVENT_FREEZE,
	EVENT_THAW,
	EVENT_QUEUE_SET,
	EVENT_QUEUE_REMOVE,
	EVENT_LIMIT_SET,
	EVENT_LIMIT_REMOVE,
	EVENT_TEMPLATE_PUT,
	EVENT_TEMPLATE_REMOVE,
	EVENT_TOKEN_ADD,
	EVENT_TOKEN_REMOVE,
	EVENT_SESSION_OPEN,
	EVENT_SESSION_CLOSE,
	EVENT_NOTICE_TEST,
	EVENT_NOTICE_FAILED,
	EVENT_NODE_OPEN,
	EVENT_NODE_CLOSE,
	EVENT_NODE_SET,
	EVENT_NODE_LEADS,
	EVENT_NODE_LOST,
	EVENT_NODE_ALARM,   /* a node does not do work that others rely on */
	EVENT_DB_PRUNE,
	EVENT_DB_BACKUP,
	EVENT_DB_RESTORE,
	EVENT_REFUSED_MORE, /* summary of refused requests that are not recorded one by one */
	EVENT_RUN_PROGRESS, /* a command reported progress, at most once for each ten percent */
	EVENT_WHAT_MAX
};
const char *event_what_name(enum event_what w);
bool event_what_parse(const char *name, enum event_what *ret);
/* A name, or the part before the dot for all names with it, as bits 1 << enum event_what. */
bool event_what_bits(const char *word, uint64_t *ret);

/* The user who acts, or the system. */
struct actor {
	int64_t uid;     /* -1: the system */
	int64_t number;  /* owner number (core/job/owner.h), which may see events without a job; 0: the uid */
	char who[48];    /* user name; empty: unknown */
	char origin[96]; /* 'unix pid 1234' or 'tcp ADDRESS token NAME' */
};
#define ACTOR_SYSTEM ((struct actor){.uid = -1})

/* The part of an operation that is recorded in the audit trail. */
struct act {
	struct actor by;
	enum event_what what;
	char object[80]; /* as named in the request; empty: none */
};

/* An event to be written. Texts are borrowed. */
struct event_new {
	usec_t at;
	const struct actor *by; /* NULL: the system */
	enum event_what what;
	const char *object;     /* name of a job, queue …; NULL: identified by 'job' and 'run' */
	int64_t job, run;       /* 0: none */
	int64_t owner;          /* with a job: its owner, who may see the event */
	const char *node;       /* NULL: none */
	const char *result;     /* error code; NULL: ok */
	const char *detail;     /* one line, without secrets and values of variables; NULL: none */
};

struct event {
	int64_t id;     /* ascending; 0: unknown */
	usec_t at;
	int64_t uid;    /* -1: the system */
	int64_t owner;  /* may see it, besides administrators */
	char *who, *origin, *object, *node, *detail; /* NULL: none */
	enum event_what what;
	int64_t job, run;
	char *result;
	bool packed;    /* the strings are part of the allocation of the event */
};
void event_free(struct event *ev);
AUTO_DEFINE(event);

struct event_list {
	struct event **v; /* owned */
	size_t n;
	int64_t next;     /* cursor of the next page; 0: this was the last one. A short page may have a next one */
	bool held;        /* an ascending page ended before events that must wait for a transaction in progress */
};
void event_list_done(struct event_list *l);
void event_list_add(struct event_list *l, struct event *ev /* moved */);
void event_list_cut(struct event_list *l, size_t n); /* frees the events from index n on */
struct event *event_make(const struct event_new *n);
