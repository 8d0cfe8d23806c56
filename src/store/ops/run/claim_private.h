/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a claim share: lanes, the runs in them, and what is known of their jobs. */
#pragma once
#include "base/map.h"
#include "core/decide/claim.h"
#include "store/ops/run/claims.h"
#include "store/set.h"
#include "store/store_private.h"

/* A queue or an owner: what it may have, and what it has. */
struct share {
	char *key;              /* owned: the queue's name, the uid */
	int64_t running, weight;
	struct rate rate;
	usec_t bucket;
	bool taken;             /* the bucket has changed */
	int64_t active, here;   /* claimed and running runs: everywhere, on this node */
};

/* The active runs of one owner in one queue. */
struct tally {
	int64_t uid, n;
	char *queue; /* owned */
};

/* A run that is due, as it was read, and what becomes of it. */
struct candidate {
	int64_t id, place;           /* place 0: it has none */
	usec_t due_at;
	struct claim_facts facts;
	char *held_by;               /* owned */
	bool gated;
	struct lane *lane;
	struct job_now *job;
	struct claim_verdict verdict;
};

/* What is known of a job while its runs are decided. */
struct permit_holder {
	int64_t place, run, fence;
	enum run_state state;
	struct candidate *here;      /* it got the place in this very claim */
};
struct job_now {
	int64_t id, taken, waiting;
	struct permit_holder *holders;      /* owned; of a job whose places are in use */
	size_t n_holders;
	bool permits_known, gate_known;
	bool skip_waiting;           /* a newer run replaces those that wait */
	struct candidate *held;      /* the last one that waits to replace, of this claim */
	bool unmet, unknown;
	usec_t unmet_slot;           /* the newest slot that a condition put off */
	struct rate rate;
	usec_t bucket, reserved;     /* reserved: as if those that wait for the rate had started */
	bool bucket_taken;
};

/* What waits in one queue for one owner with one priority. */
struct lane {
	char *queue;                 /* owned */
	int64_t uid;
	int64_t priority;
	usec_t front;                /* when the first that was not looked at is due; USEC_NEVER: there is none */
	struct share *of_queue, *of_owner;
	struct tally *tally;
	struct candidate **v;        /* owned; read so far */
	size_t n, next;
	usec_t last_due;             /* the last one read */
	int64_t last_id;
	bool read_all;               /* nothing more of it is due */
	usec_t then;                 /* when read_all: the first that is due later */
	size_t deferred;              /* looked at without a start */
	usec_t shut_at;              /* when a limit was last seen to close it; 0: not lately */
};

struct claim_pause {
	char *scope, *key, *spared;  /* owned */
	int64_t uid;
	usec_t at, until;            /* until 0: without an end */
	bool past;                   /* ended, also where another node's clock is behind */
	bool later;                  /* in force from 'at' on; others are in force now, also where the clock is behind */
};
void claim_pause_done(struct claim_pause *p);

struct claim {
	struct store *s;
	struct op_claim *c;
	struct share **queues;       /* owned */
	size_t n_queues;
	struct map owners;           /* uid → owned struct share */
	struct tally **tallies;      /* owned; by uid and queue */
	size_t n_tallies;
	struct claim_pause *pauses;  /* owned; of scopes: in force, or over and still deciding about slots inside them */
	size_t n_pauses;
	bool past;                   /* there are pauses that are over, of scopes or of single jobs */
	bool later;                  /* there are pauses of single jobs that are ordered for later */
	struct lane *lanes;          /* owned; by queue, owner and priority */
	size_t n_lanes;
	struct claim_lane *views;    /* owned; one for each */
	struct map jobs;             /* job → owned struct job_now */
	struct candidate **decided;  /* owned array; the candidates are their lanes' */
	size_t n_decided, started;
	struct set ended;            /* {run, state, reason}: replaced while they waited for a retry, or inside a past pause */
	struct map gone;             /* these runs: they may be due, too */
	struct set replaced;         /* runs that go on and must end */
};
void claim_done(struct claim *c);

/* claim_lanes.c */
bool claim_read(struct claim *c, struct err *e);             /* lanes, limits, active runs, pauses */
bool claim_next_lane(struct claim *c, struct lane **ret);         /* whose turn it is; false: nobody's */
void claim_count_active(struct lane *l, int64_t n);                 /* n more runs of that lane are active */
void claim_take_rates(struct lane *l, usec_t now);
void claim_return_rates(struct lane *l);                     /* what was to start does not */
void claim_next_wakeup(struct claim *c);                            /* tells the store when to look again */
bool claim_write_buckets(struct claim *c, struct err *e);

/* claim_past.c */
bool claim_drop_past(struct claim *c, struct err *e);        /* past pauses that are not needed any more */

/* claim_facts.c */
void claim_candidate_free(struct candidate *r);
bool claim_lane_read(struct claim *c, struct lane *l, size_t n, struct err *e); /* the next candidates, with all facts */
bool claim_read_tagged_jobs(struct store *s, const char *jobs, const char *tag, struct map *ret, struct err *e);
