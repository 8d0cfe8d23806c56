/* SPDX-License-Identifier: Apache-2.0 */
/* The store: jobs, runs and attempts as rows, the same over SQLite and PostgreSQL. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/job.h"
#include "core/job/notice.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct event_list;
struct store;

struct store_options {
	const char *where;    /* a path, or postgresql://… */
	bool read_only;       /* the reader's connection: never creates, migrates or checkpoints */
	bool no_checkpoint;   /* another process of this file checkpoints */
	const char *machine;  /* who we are: a file that belongs to another machine is refused; NULL: not asked */
	bool takeover;        /* it becomes ours */
	const struct clock *clock; /* borrowed; of leases and records; NULL: the system's. Timeouts of I/O always use the system's clock */
	usec_t lease;         /* kept through it: it knows within that time that a renewal has failed; 0: the usual waits */
};

/*
 * Opened after any fork; used by one thread. Creates or migrates the schema unless read_only.
 * ERR_REFUSED: corrupt, foreign, unreadable or newer, nothing was changed (the daemon exits 78).
 */
bool store_open(const struct store_options *o, struct store **ret, struct err *e);
void store_free(struct store *s);
AUTO_DEFINE(store);

const char *store_id(const struct store *s); /* random, made with the schema, kept for ever */

/* These three may be called by any thread. */
usec_t store_waits_since(const struct store *s); /* boottime: for a server's answer, another process's lock, the disk; 0: it does not */
void store_leave(struct store *s);               /* we are ending: it waits no longer to learn of an unknown commit */
void store_expect_term(struct store *s, int64_t term); /* a server with a lower one has lost commits: nothing is written there */

/* ---- reading: each call is one short transaction; nothing is held open between calls ---- */

/* By id; with a range of creation by time, then by id. Times are from 'since' to before 'until'. */
struct job_filter {
	int64_t uid;          /* -1: every owner */
	unsigned states;      /* bits 1 << enum job_state; 0: all but removed */
	const char *owner, *name_glob, *tag_key, *tag_value; /* NULL: any */
	usec_t created_since, created_until; /* 0: open */
	int64_t after;        /* cursor: ids beyond it */
	size_t limit;
	size_t bytes;         /* the page ends with the job whose definition reaches this; 0: no such bound */
};
/* Newest first: by slot, then by id. */
#define RUN_JOBS_MAX 32
struct run_filter {
	int64_t uid;          /* -1: every owner */
	int64_t job;          /* 0: any, or those of 'jobs' */
	const int64_t *jobs;  /* borrowed; several jobs, up to RUN_JOBS_MAX */
	size_t jobs_n;
	const char *owner;    /* name of the owner; NULL: any */
	const char *tag_key, *tag_value; /* of the job; NULL: any */
	usec_t due_by;        /* queued runs with a later slot are left out; 0: none is */
	unsigned states;      /* bits 1 << enum run_state; 0: all */
	bool dead;            /* dead letters only, the last that died first; the times are when they died */
	usec_t slot_since, slot_until;
	int64_t before;       /* cursor: a run's id; older ones follow. 0: from the newest */
	size_t limit;
};
struct job_list {
	struct job **v; /* owned */
	size_t n;
	int64_t next;   /* cursor of the next page, 0: this was the last. A page may be short and have a next one */
};
struct run_list {
	struct run **v; /* owned */
	size_t n;
	int64_t next;
};
struct attempt_list {
	struct attempt **v;
	size_t n;
};
void job_list_done(struct job_list *l);
void run_list_done(struct run_list *l);
void attempt_list_done(struct attempt_list *l);

/* 'uid' limits what is seen, -1 sees all; a foreign job is ERR_NOT_FOUND like a missing one. */
bool store_job_get(struct store *s, int64_t uid, int64_t id, struct job **ret, struct err *e);
/*
 * A name belongs to one live job of its owner. Finished and cancelled jobs keep theirs but do not
 * stand in the way: the name means the newest that is not removed. Several owners: ERR_CONFLICT
 * tells to use the number.
 */
bool store_job_find(struct store *s, int64_t uid, const char *name, struct job **ret, struct err *e);
bool store_job_names(struct store *s, int64_t uid, size_t limit, struct strv *ret, struct err *e); /* for "did you mean" */
bool list_jobs_page(struct store *s, const struct job_filter *f, struct job_list *ret, struct err *e);
bool store_run_get(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e);
bool list_runs_page(struct store *s, const struct run_filter *f, struct run_list *ret, struct err *e);
bool store_attempts(struct store *s, int64_t run, struct attempt_list *ret, struct err *e);

/* The end of what an attempt wrote, as base64; *ret NULL: the store has none. */
bool store_output_tail(struct store *s, int64_t run, int64_t fence, char **ret, struct err *e);

/* What a job was: newest first, those before 'before' (0: all). */
struct revision {
	int64_t number;
	int64_t uid;        /* who made it */
	char *who;          /* by name; NULL: unknown */
	usec_t at;
	char *what;         /* in words */
	int64_t origin;     /* the revision it took up again; 0: none */
	char *spec;         /* JSON */
};
struct revision_list {
	struct revision *v; /* owned */
	size_t n;
	bool more;          /* the page was ended by its size: further ones follow the last */
};
void revision_list_done(struct revision_list *l);
#define PAGE_BYTES (4 * 1024 * 1024) /* a page of revisions or templates ends with the one that reaches this */
/*
 * The current one is among them even when the job was never changed. A foreign job is
 * ERR_NOT_FOUND.
 */
bool revisions_page(struct store *s, const struct job *j, int64_t before, size_t limit, struct revision_list *ret,
	struct err *e);
#define REVISIONS_KEPT 100 /* of a job */

struct template {
	int64_t uid;
	char *name, *owner;
	int64_t revision;
	char *params;       /* JSON: NAME to its default, or null where a value must be given */
	char *spec;         /* JSON */
	usec_t created_at, updated_at;
};
struct template_list {
	struct template *v; /* owned */
	size_t n;
	bool more;          /* as of a revision_list */
};
void template_done(struct template *t);
void template_list_done(struct template_list *l);
/*
 * The owner's own, else the one that root shares with everybody. ERR_NOT_FOUND with field
 * "template".
 */
bool list_templates_get(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e);
/* Of one owner, by name. */
bool list_templates_page(struct store *s, int64_t uid, const char *after, size_t limit, struct template_list *ret,
	struct err *e);
#define TEMPLATES_MAX 1000 /* of one owner */

/* The audit trail, by number; newest first unless 'ascending'. */
struct event_filter {
	int64_t uid;          /* -1: all; else what this uid may see */
	const int64_t *jobs;  /* borrowed; none: any */
	size_t n_jobs;
	int64_t run;          /* 0: any */
	uint64_t whats;       /* bits 1 << enum event_what; 0: all */
	usec_t since, until;  /* 0: open */
	bool ascending;
	int64_t from;         /* cursor: an event's id, those beyond it follow; 0: from the end that comes first */
	size_t limit;
};
bool list_events_page(struct store *s, const struct event_filter *f, struct event_list *ret, struct err *e);
bool list_events_newest(struct store *s, int64_t *ret /* 0: none */, struct err *e);

/* A notice as stored: one for each channel. */
struct notice {
	int64_t id, job, run; /* run 0: of the job as such */
	int64_t uid;
	char *job_name, *owner; /* NULL: none, or its job is gone */
	enum notice_kind kind;
	char *channel;        /* see policy_notify_parse */
	enum notice_state state;
	int64_t tries;
	usec_t created_at, due_at, done_at;
	char *detail;         /* JSON: "last_success", "typical" */
	char *error;          /* of the last try; NULL: none */
};
struct notice_list {
	struct notice **v;    /* owned */
	size_t n;
	int64_t next;
};
void notice_free(struct notice *n);
AUTO_DEFINE(notice);
void notice_list_done(struct notice_list *l);

/* Newest first. */
struct notice_filter {
	int64_t uid;          /* -1: every owner */
	int64_t job;          /* 0: any */
	unsigned states;      /* bits 1 << enum notice_state; 0: all */
	int64_t before;       /* cursor: older ones follow. 0: from the newest */
	size_t limit;
};
bool list_notices_page(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e);
/* The name of the node that an engine belongs to; *ret NULL: not known any more. */
bool store_node_name(struct store *s, const char *engine, char **ret, struct err *e);
/* The definition of a job as it was; *ret NULL: not kept. */
bool store_revision_spec(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e);

struct store_counts {
	int64_t jobs[JOB_STATE_MAX];
	int64_t runs[RUN_STATE_MAX];
	int64_t notices[NOTICE_STATE_MAX];
};
bool store_counts(struct store *s, struct store_counts *ret, struct err *e); /* from 'counters', no scan */

/* ---- nodes ---- */
struct node_view {
	char *id, *name, *host; /* owned */
	usec_t opened_at;
	usec_t lease_remains;   /* 0 or less: its lease is over */
	usec_t runs_remain;     /* ... and its runs are given up */
	bool guarded;           /* its spawner has a deadline */
	usec_t skew;            /* of its clock against the store's */
	bool draining, leads;
	int64_t segments;       /* how many it plans */
	int64_t active;         /* runs it has claimed or running */
	char *labels;           /* owned: as op_claim has them; empty: none */
	bool barred;            /* it never leads */
	usec_t left_at;         /* 0: it is here */
	bool lost;              /* with left_at: it was given up */
};
struct node_list {
	struct node_view *v;    /* owned; by name */
	size_t n;
	char *leader;           /* owned: its name; NULL: nobody leads */
	int64_t term;
	usec_t lease_remains;   /* of the leader */
	usec_t worked;          /* when the leader last said that its work is done; 0: never, nobody watched */
};
void node_list_done(struct node_list *l);
bool list_nodes_open(struct store *s, struct node_list *ret, struct err *e); /* those that are open */
/*
 * Those that left in the day before 'now', or were lost in the week, or are drained, and have not
 * come back. There is no leader in it.
 */
bool list_nodes_gone(struct store *s, usec_t now, struct node_list *ret, struct err *e);

/* ---- output on its way from node to node ---- */
#define RELAYS_MAX 64    /* that one node reads, and that one serves */
#define RELAY_WINDOW 2   /* parts of one that wait to be taken */
struct relay_part {
	int64_t number;         /* from 1 on */
	int64_t at;             /* offset of its first byte in what the command wrote */
	int64_t total, dropped; /* as they were when it was read */
	bool last;
	char *note;             /* owned: why there is nothing; NULL: there is */
	char *data;             /* owned: base64 */
};
void relay_part_done(struct relay_part *p);
struct relay_view {
	int64_t id;
	bool serves;            /* this engine has the output; else it reads it */
	int64_t run, attempt, from, tail, taken; /* of one it serves */
	bool follow;
	int64_t ready;          /* of one it reads: parts that wait */
	bool alive;             /* ... and whether who serves it has a lease */
};
struct relay_list {
	struct relay_view *v;   /* owned */
	size_t n;
};
void relay_list_done(struct relay_list *l);
bool list_relays_of_node(struct store *s, const char *node, struct relay_list *ret, struct err *e); /* of this engine */

/* ---- queues, and limits of owners ---- */
enum limit_scope { LIMIT_QUEUE, LIMIT_OWNER, LIMIT_SCOPE_MAX };
#define LIMIT_WEIGHT 100     /* of a queue that nobody gave one */
#define LIMIT_WEIGHT_MAX 10000
#define LIMIT_RUNNING_MAX 100000
struct limit {
	char *key;              /* owned: the queue's name, or the uid in digits */
	int64_t running;        /* runs at a time; 0: any number */
	int64_t weight;         /* of a queue: its share beside the others */
	struct rate rate;       /* n 0: none */
	int64_t active;         /* runs that are claimed or running */
	int64_t queued;         /* runs that wait; of an owner, counted up to LIMIT_QUEUED_MAX */
	int64_t jobs;           /* live jobs */
};
#define LIMIT_QUEUED_MAX 10000
struct limit_list {
	struct limit *v;
	size_t n;
};
void limit_list_done(struct limit_list *l);
/* All of them by key, or the one with this key (ERR_NOT_FOUND names what may have been meant). */
/* The number of an owner (core/job/owner.h); -1: he has never been here. */
bool owner_read_number(struct store *s, uint32_t uid, const char *name, int64_t *ret, struct err *e);
bool owner_read_counts(struct store *s, int64_t number, int64_t *ret_jobs, int64_t *ret_active, struct err *e); /* live ones */
bool owner_read_named(struct store *s, const char *name, int64_t *ret, struct err *e); /* of several the latest */
bool list_limits_read(struct store *s, enum limit_scope scope, const char *key /* NULL: all */, struct limit_list *ret,
	struct err *e);
