/* SPDX-License-Identifier: Apache-2.0 */
/* An event: who did what to which object, from where, with what result. Together they are the audit trail. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can be done; the words are in the table of event.c. Requests come first, then what the system does by itself. */
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
	EVENT_RUN_END,      /* is in no store: those who follow hear of it */
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
	EVENT_NOTICE_TEST,
	EVENT_NOTICE_FAILED,
	EVENT_NODE_OPEN,
	EVENT_NODE_CLOSE,
	EVENT_NODE_SET,
	EVENT_NODE_LEADS,
	EVENT_NODE_LOST,
	EVENT_NODE_ALARM,   /* one that others rely on does not do its part */
	EVENT_DB_PRUNE,
	EVENT_DB_BACKUP,
	EVENT_DB_RESTORE,
	EVENT_REFUSED_MORE, /* requests refused beyond what is written one by one */
	EVENT_WHAT_MAX
};
const char *event_what_name(enum event_what w);
bool event_what_parse(const char *name, enum event_what *ret);
/* A word, or the part before the dot for all of its kind, as bits 1 << enum event_what. */
bool event_what_bits(const char *word, uint64_t *ret);

/* Who acts. By itself the system does. */
struct actor {
	int64_t uid;     /* -1: the system */
	int64_t number;  /* as an owner (core/job/owner.h), whose trail it is in where there is no job; 0: the uid */
	char who[48];    /* its name; empty: unknown */
	char origin[32]; /* 'unix pid 1234' */
};
#define ACTOR_SYSTEM ((struct actor){.uid = -1})

/* Who asks, for what, and of what: what an operation carries for the audit trail. */
struct act {
	struct actor by;
	enum event_what what;
	char object[80]; /* as it was named; empty: not at all */
};

/* An event to be written. Texts are borrowed. */
struct event_new {
	usec_t at;
	const struct actor *by; /* NULL: the system */
	enum event_what what;
	const char *object;     /* a job's name, a queue … as people name it; NULL: the numbers say it */
	int64_t job, run;       /* 0: none */
	int64_t owner;          /* with a job: its owner's uid, who may see this */
	const char *node;       /* NULL: none */
	const char *result;     /* NULL: ok; else the error's code */
	const char *detail;     /* one line; never a secret or the value of a variable. NULL: nothing to add */
};

struct event {
	int64_t id;     /* grows; 0: not known here */
	usec_t at;
	int64_t uid;    /* -1: the system */
	int64_t owner;  /* who may see it beside administrators */
	char *who, *origin, *object, *node, *detail; /* NULL: none */
	enum event_what what;
	int64_t job, run;
	char *result;
};
void event_free(struct event *ev);
AUTO_DEFINE(event);

struct event_list {
	struct event **v; /* owned */
	size_t n;
	int64_t next;     /* of a page: the cursor of the next; 0: this was the last. A page may be short and have one */
};
void event_list_done(struct event_list *l);
void event_list_add(struct event_list *l, struct event *ev /* moved */);
void event_list_cut(struct event_list *l, size_t n); /* frees those from the n-th on */
struct event *event_make(const struct event_new *n);
